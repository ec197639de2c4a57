"""Numbered random problems; the same number is the same problem."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.lazy import cached_property
from app.core.prevalence.calibration import Scaling
from app.core.prevalence.estimators.mle import MleResult, mle
from app.core.prevalence.likelihood.blocks import BLOCK, with_labels
from app.core.prevalence.likelihood.likelihood import CHEAP, Likelihood

EVERY_LARGE = 100
LARGE = 40_000
"""Rows of every hundredth problem: several blocks, and a subsample to start on."""
MOST_TILTED = 28.0
"""The profile goes no further in ln a."""

Random = np.random.Generator


@dataclass(frozen=True)
class Problem:
    """N × C posteriors, source priors, and what else ``mle`` may be given.

    ``weights``, ``labels``: of the rows, or None; ``start``: where to start from, or None;
    ``tolerance``: or None for the usual one. ``tilt``: C factors of the source priors, 0 to leave
    a class out.
    """

    number: int
    posteriors: Floats
    source: Floats
    weights: Floats | None = None
    start: Floats | None = None
    labels: Codes | None = None
    calibration: Scaling | None = None
    tolerance: float | None = None
    tilt: Floats | None = None

    @cached_property
    def likelihood(self) -> Likelihood:
        """What is to be maximised."""
        likelihood = Likelihood.of(
            self.posteriors, self.source, self.weights, self.calibration, self.labels
        )
        return likelihood if self.tilt is None else likelihood.under(self.source * self.tilt)

    @cached_property
    def priors(self) -> Floats:
        """The source priors, tilted; they need not sum to one."""
        return self.source if self.tilt is None else self.source * self.tilt

    @cached_property
    def ratios(self) -> tuple[Floats, Floats]:
        """Ratios r_ik of the K known classes, up to a factor per row, and the rows' weights.

        Of the informative rows only. The solver never forms them.
        """
        rows = self.posteriors
        if self.calibration is not None:
            rows = self.calibration.apply(rows)
        if self.labels is not None:
            rows = with_labels(rows, self.labels)
        rows = rows[:, self.priors > 0]
        weights = np.ones(len(rows)) if self.weights is None else self.weights
        informative = (rows.sum(axis=1) > 0) & (weights > 0)
        rows, weights = rows[informative], weights[informative]
        ratios = rows / rows.sum(axis=1, keepdims=True) / self.priors[self.priors > 0]
        return ratios / ratios.max(axis=1, keepdims=True), weights

    def solve(self) -> MleResult:
        """The answer under test."""
        return mle(self.likelihood, self.tolerance, start=self.start)


def _gaussian(rng: Random, rows: int, classes: int) -> Floats:
    """Normal classes at some distance, sampled under one prior, scored under another."""
    centres = rng.normal(size=(classes, 3)) * rng.choice([0.03, 0.3, 1.0, 5.0])
    labels = rng.choice(classes, rows, p=rng.dirichlet(np.full(classes, 0.3)))
    x = centres[labels] + rng.normal(size=(rows, 3))
    return _softmax(x @ centres.T - 0.5 * (centres**2).sum(axis=1))


def _dirichlet(rng: Random, rows: int, classes: int) -> Floats:
    return rng.dirichlet(np.full(classes, rng.choice([0.02, 0.2, 1.0, 20.0])), rows)


def _steep(rng: Random, rows: int, classes: int) -> Floats:
    return _softmax(rng.normal(size=(rows, classes)) * 100)


def _one_hot(rng: Random, rows: int, classes: int) -> Floats:
    return np.eye(classes)[rng.choice(classes, rows, p=rng.dirichlet(np.ones(classes)))]


def _outputs(rng: Random, rows: int, classes: int) -> Floats:
    """Few different rows, as those of predicted outputs, over and over."""
    kinds = rng.dirichlet(np.full(classes, 0.3), classes + 1)
    return kinds[rng.choice(len(kinds), rows, p=rng.dirichlet(np.ones(len(kinds))))]


def _constant(rng: Random, rows: int, classes: int) -> Floats:
    return np.tile(rng.dirichlet(np.ones(classes)), (rows, 1))


KINDS: tuple[Callable[[Random, int, int], Floats], ...] = (
    _gaussian,
    _gaussian,
    _gaussian,
    _dirichlet,
    _steep,
    _one_hot,
    _outputs,
    _constant,
)


def _softmax(logits: Floats) -> Floats:
    shares: Floats = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _rounded(rng: Random, rows: Floats) -> Floats:
    """As printed with two decimals and rescaled."""
    rounded: Floats = np.round(rows, 2)
    rounded[rounded.sum(axis=1) == 0] = 1.0
    rounded /= rounded.sum(axis=1, keepdims=True)
    return rounded


def _zero_column(rng: Random, rows: Floats) -> Floats:
    rows = rows.copy()
    rows[:, rng.integers(rows.shape[1])] = 0
    return rows


def _twin_columns(rng: Random, rows: Floats) -> Floats:
    rows = rows.copy()
    one, other = rng.integers(rows.shape[1], size=2)
    rows[:, other] = rows[:, one] * rng.choice([1.0, 0.3])
    return rows


def _certain_rows(rng: Random, rows: Floats) -> Floats:
    rows = rows.copy()
    rows[: rng.integers(1, 4)] = np.eye(rows.shape[1])[rng.integers(rows.shape[1])]
    return rows


def _single(rng: Random, rows: Floats) -> Floats:
    cast: Floats = rows.astype(np.float32).astype(np.float64)
    return cast


def _as_it_is(rng: Random, rows: Floats) -> Floats:
    return rows


CHANGES: tuple[Callable[[Random, Floats], Floats], ...] = (
    _as_it_is,
    _as_it_is,
    _rounded,
    _zero_column,
    _twin_columns,
    _certain_rows,
    _single,
)


CLASSES = (1, 2, 2, 2, 3, 3, 4, 5, 5, 8, 8, 12, 20, 30, 50, 100)
SHARES = (0.3, 1.0, 10.0)


def problem(number: int) -> Problem:
    """Problem ``number`` of an endless list."""
    rng = np.random.default_rng([number, 20260131])
    classes = int(rng.choice(CLASSES))
    rows = int(rng.choice([1, 2, classes, 10, 100, 1000, 3000]))
    if classes >= 20:
        rows = _without_hessian(rng, classes) if rng.random() < 0.2 else min(rows, 1000)
    if number % EVERY_LARGE == 0:
        classes, rows = min(classes, 8), LARGE
    posteriors = KINDS[rng.integers(len(KINDS))](rng, rows, classes)
    posteriors = CHANGES[rng.integers(len(CHANGES))](rng, posteriors)
    made = Problem(number, posteriors, _source(rng, classes))
    if rng.random() < 0.2:
        made = replace(made, weights=_weights(rng, rows))
    if rng.random() < 0.1:
        made = replace(made, labels=_labels(rng, rows, classes))
    if rng.random() < 0.1:
        made = replace(made, posteriors=_whole(posteriors), calibration=_calibration(rng, classes))
    if rng.random() < 0.1:
        made = replace(made, start=np.eye(classes)[rng.choice(made.likelihood.known)])
    return made


def _without_hessian(rng: Random, classes: int) -> int:
    """So many rows that they are one block, but no Hessian comes with the multipliers."""
    return int(rng.integers(CHEAP // classes**2 + 1, BLOCK // classes + 1))


def _source(rng: Random, classes: int) -> Floats:
    if rng.random() < 0.1:
        return np.full(classes, 1 / classes)
    source: Floats = rng.dirichlet(np.full(classes, rng.choice(SHARES)))
    source += rng.choice([1e-12, 2e-5])
    if rng.random() < 0.05 and classes > 2:
        source[rng.integers(classes)] = 0
    source /= source.sum()
    return source


def _weights(rng: Random, rows: int) -> Floats:
    """Counts of rows, some zero or far too large, or any positive numbers."""
    weights = rng.integers(0, 5, rows).astype(np.float64)
    kind = rng.random()
    if kind < 0.2:
        weights[rng.integers(rows)] = rng.choice([1e6, 1e9])
    elif kind < 0.4:
        weights = rng.gamma(0.5, 2.0, rows)
    return weights


def _labels(rng: Random, rows: int, classes: int) -> Codes:
    labels = rng.integers(0, classes, rows)
    labels[rng.random(rows) < rng.choice([0.0, 0.5, 0.95])] = -1
    return labels


def _calibration(rng: Random, classes: int) -> Scaling:
    """As fitted to few rows, or to separable ones with their large biases."""
    scale = rng.gamma(2.0, 0.7, 1 if rng.random() < 0.5 else classes)
    bias = rng.normal(size=classes) * rng.choice([0.0, 1.0, 200.0])
    scales = np.broadcast_to(scale, classes).copy()
    floor = float(rng.choice([1e-300, 1e-9]))
    return Scaling("vector-scaling", scales, bias - bias.mean(), floor)


def _whole(rows: Floats) -> Floats:
    """Every row a row of probabilities."""
    mass = rows.sum(axis=1, keepdims=True)
    whole: Floats = np.where(mass > 0, rows / np.where(mass > 0, mass, 1.0), 1 / rows.shape[1])
    return whole


def again(original: Problem, top: Floats, seed: int) -> Problem:
    """The same rows by another entrance, as profiles and tests come in.

    From near a maximum, or from anywhere, under tilted priors or without a class, to some other
    tolerance.
    """
    rng = np.random.default_rng([original.number, seed])
    known = original.likelihood.known
    tilt = np.ones(len(original.source))
    k = rng.choice(known)
    kind = rng.random()
    if kind < 0.2 and len(known) > 1:
        tilt[k] = 0.0
    elif kind < 0.8:
        reach = rng.choice([0.01, 1.0, 8.0, MOST_TILTED])
        tilt[k] = np.exp(rng.uniform(-reach, reach))
    size = max(original.likelihood.size, 1.0)
    return replace(
        original,
        tilt=tilt,
        start=_start(rng, top * tilt, original.source * tilt),
        tolerance=[None, 5e-4 / size, 1e-3, 1.0][rng.integers(4)],
    )


def _start(rng: Random, near: Floats, priors: Floats) -> Floats | None:
    """``near`` itself, with a trace of every class, or some steps from it; any point; or None."""
    known = priors > 0
    kind = rng.integers(6)
    if kind == 0 or near.sum() <= 0:
        return None
    if kind == 1:
        near = near + 1e-9 * priors
    elif kind == 2:
        near = near * np.exp(rng.normal(size=len(near)) * rng.choice([1e-6, 0.01, 3.0]))
    elif kind == 3:
        near = rng.dirichlet(np.full(len(near), 0.3)) * known
    elif kind == 4:
        near = near * (rng.random(len(near)) < 0.5) + 1e-300 * priors
    start: Floats = near / near.sum()
    return start


def full_size() -> list[Problem]:
    """Known ways to fail, at the size where they were met; numbered −1, −2, …"""
    rng = np.random.default_rng(20260131)
    zeros = rng.dirichlet(np.full(9, 0.3), 1_000_000)
    zeros[:1000, 8] = 0
    zeros /= zeros.sum(axis=1, keepdims=True)
    certain = np.tile([0.98, 0.01, 0.01], (1_000_000, 1))
    certain[:3] = [0.0, 0.0, 1.0]
    many = _softmax(rng.normal(size=(20_000, 1000)) * 2)
    ninth = np.full(9, 1 / 9)
    return [
        Problem(-1, zeros, ninth, start=np.eye(9)[8]),
        Problem(-2, certain, np.array([0.9, 0.05, 0.05])),
        Problem(-3, many, rng.dirichlet(np.full(1000, 5.0))),
    ]
