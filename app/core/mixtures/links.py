"""How the target's regressions hang on the source's: one table of constraints.

Every link makes a component's coefficients an affine function of a few numbers θ,
β*_k = base_k + T_k θ, with one θ for all components or one for each, and its σ*_k the source's,
the source's times the slopes' link, or free. The estimator (``em``) knows nothing else.

Source: Bouveyron and Jacques, "Adaptive mixtures of regressions", §2.1 and table 1.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Floats
from app.core.errors import InvalidInput
from app.core.mixtures.mixture import RegressionMixture


@dataclass(frozen=True)
class Link:
    """One row of the table.

    ``intercept``: kept, scaled by a number of its own, tied to the slopes' number, that and
    shifted by a number of y's units, or free. ``slopes``: kept, scaled by one number, each by its
    own, or free. ``sigma``: kept, scaled by the slopes' number, or free. ``shared``: the same
    numbers for all components. ``proportions``: whether they are estimated too.
    """

    name: str
    intercept: Literal["kept", "scaled", "tied", "shifted", "free"]
    slopes: Literal["kept", "scaled", "each", "free"]
    sigma: Literal["kept", "scaled", "free"]
    shared: bool
    proportions: bool = False


_FIXED = (
    Link("M1", "kept", "kept", "kept", True),
    Link("M2a", "kept", "scaled", "scaled", True),
    Link("M2b", "scaled", "kept", "kept", True),
    Link("M2c", "tied", "scaled", "scaled", True),
    Link("M2d", "scaled", "scaled", "scaled", True),
    Link("M3a", "kept", "scaled", "scaled", False),
    Link("M3b", "scaled", "kept", "kept", False),
    Link("M3c", "tied", "scaled", "scaled", False),
    Link("M3d", "scaled", "scaled", "scaled", False),
    Link("M4a", "kept", "each", "free", True),
    Link("M4b", "scaled", "each", "free", True),
    Link("M5", "free", "free", "free", False),
    Link("additive", "shifted", "scaled", "scaled", False),
)


def _with_free_proportions(link: Link) -> Link:
    name = f"p-{link.name}" if link.name == "additive" else f"p{link.name}"
    return Link(name, link.intercept, link.slopes, link.sigma, link.shared, proportions=True)


LINKS: dict[str, Link] = {
    link.name: link for fixed in _FIXED for link in (fixed, _with_free_proportions(fixed))
}
"""All links by name, the 24 of the paper and the additive one."""

SINGLE = "single"
"""The plain regression of the target rows alone, a candidate beside the links."""

NAMES = (*LINKS, SINGLE)


def link_named(name: str) -> Link:
    """A row of the table; ``InvalidInput`` with all names for an unknown one."""
    if name not in LINKS:
        raise InvalidInput.at("/link", f"send auto or one of {', '.join(NAMES)}")
    return LINKS[name]


@dataclass(frozen=True)
class Structure:
    """A link, laid over a source mixture and the target's rows.

    ``base`` K × q and ``maps`` K × q × m: β*_k = base_k + maps_k θ. ``identified`` K × m: whether
    the source lets that number be estimated (a link times a source coefficient of 0 is none).
    Where the link scales σ, the last of θ does. ``labels`` say what each of θ acts on.
    """

    link: Link
    base: Floats
    maps: Floats
    labels: tuple[str, ...]
    identified: NDArray[np.bool_]
    sigmas: Floats

    @property
    def parameters(self) -> int:
        """How many numbers are estimated (what BIC counts)."""
        components = len(self.sigmas)
        numbers = self.identified[:1] if self.link.shared else self.identified
        free_sigmas = components if self.link.sigma == "free" else 0
        return int(numbers.sum()) + free_sigmas + (components - 1) * self.link.proportions


def structure(link: Link, source: RegressionMixture, rows: Floats) -> Structure:
    """Lay ``link`` over ``source``; ``rows`` n × q give a free regression its coordinates."""
    betas = source.coefficients
    count, terms = betas.shape
    base = np.zeros_like(betas)
    columns: list[Floats] = []
    labels: list[str] = []
    if link.intercept == "kept":
        base[:, 0] = betas[:, 0]
    if link.slopes == "kept":
        base[:, 1:] = betas[:, 1:]
    unit = np.broadcast_to(np.eye(terms), (count, terms, terms))
    if link.intercept == "scaled":
        columns.append(unit[:, 0] * betas[:, :1])
        labels.append("intercept")
    if link.intercept == "shifted":
        columns.append(unit[:, 0])
        labels.append("shift")
    if link.slopes == "scaled":
        whole = link.intercept in ("tied", "shifted")
        columns.append(betas if whole else betas * (np.arange(terms) > 0))
        labels.append("all" if whole else "slopes")
    if link.slopes == "each":
        columns.extend(unit[:, j] * betas[:, j : j + 1] for j in range(1, terms))
        labels.extend(f"slope {j}" for j in range(1, terms))
    if link.slopes == "free":
        columns.extend(np.broadcast_to(column, betas.shape) for column in _coordinates(rows).T)
        labels.extend(f"coordinate {j}" for j in range(terms))
    maps = np.stack(columns, axis=-1) if columns else np.zeros((count, terms, 0))
    identified = (maps != 0).any(axis=1)
    if link.shared:
        identified = np.broadcast_to(identified.any(axis=0), identified.shape)
    if link.sigma == "scaled":
        identified = np.array(identified)
        identified[:, -1] = True  # σ tells it, even where every coefficient that it scales is 0
    return Structure(link, base, maps, tuple(labels), identified, source.sigmas)


def _coordinates(rows: Floats) -> Floats:
    """Q × q: coefficients in which the rows' columns are orthonormal (as far as they have rank)."""
    triangle = np.linalg.qr(rows, mode="r")
    _, singular, right = np.linalg.svd(triangle)
    scale = np.ones(rows.shape[1])
    scale[: len(singular)] = np.where(singular > 1e-12 * singular[0], singular, 1.0)
    return np.asarray(right.T / scale)
