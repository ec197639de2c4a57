"""``regression-mixture``: a mixture of regressions carried to another population."""

import hashlib
import json as stdlib_json
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from app.core.arrays import Floats
from app.core.errors import Faults, InvalidInput
from app.core.json_types import JsonObject
from app.core.mixtures.adapt import LinkFit, MixtureAdaptation, adapt
from app.core.mixtures.fit import MixtureFit, fit
from app.core.mixtures.gibbs import (
    BURN_IN,
    CHAINS,
    DRAWS,
    MixturePosterior,
    predict_posterior,
    sample,
)
from app.core.mixtures.mixture import RegressionMixture, check_mixture
from app.core.mixtures.predict import LEVELS, predict
from app.core.mixtures.priors import KAPPA, SHAPE, SPREAD, priors
from app.core.warnings import Warning, WarningCode
from app.formats import json
from app.http.body import Payload
from app.intake import parse
from app.kinds import Adapted, Load
from app.schemas.presenters import warnings as shown_warnings
from app.schemas.requests import In, Matrix, Metadata, NumberOrMore, Numbers, RowsOrNumbers, at_most
from app.training.process import Trainer
from models_store.adaptations import AdaptationRecord, Arrays, SourceRecord
from models_store.sources import Prepared

MOST_COVARIATES = 100
MOST_SOURCE_ROWS = 50_000
MOST_TARGET_ROWS = 10_000
MOST_LEVELS = 20
MOST_NUMBERS = 20_000_000
"""Starts, or chains, × rows × components: they are worked on together."""
OF_GIBBS = (
    "draws",
    "burn_in",
    "chains",
    "align",
    "level",
    "spread",
    "shape",
    "scale",
    "kappa",
)
APART = 1.05
"""Split R-hat of a number whose chains still tell different stories."""


class MixtureParametersIn(In):
    """A mixture that was fitted elsewhere; each component's intercept comes first."""

    proportions: Numbers
    coefficients: Matrix
    sigmas: Numbers
    degree: Annotated[int, Field(ge=1, le=20)] = 1


class MixtureSourceIn(In):
    """Parameters; or rows to fit a mixture to, with a number of components or a range of it."""

    parameters: MixtureParametersIn | None = None
    x: RowsOrNumbers | None = None
    y: Numbers | None = None
    components: Annotated[int | list[int] | None, at_most(2)] = None
    degree: Annotated[int, Field(ge=1, le=20)] = 1
    starts: Annotated[int, Field(ge=1, le=100)] = 10
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    metadata: Metadata = Field(default_factory=dict)


class MixtureOptionsIn(In):
    """How the links are fitted; or how many draws are made, and from which priors.

    β*_k ~ N(β_k, σ²_k · spread), σ²_k ~ inverse gamma(shape, scale), π* ~ Dirichlet(kappa · π).
    """

    starts: Annotated[int, Field(ge=1, le=100)] = 10
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    draws: Annotated[int, Field(ge=1, le=100_000)] = DRAWS
    burn_in: Annotated[int, Field(ge=0, le=100_000)] = BURN_IN
    chains: Annotated[int, Field(ge=1, le=64)] = CHAINS
    align: bool = False
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    spread: NumberOrMore | None = None
    shape: float = SHAPE
    scale: NumberOrMore | None = None
    kappa: float = KAPPA


class MixtureAdaptationIn(In):
    """Labelled rows of the target population, and the link that is wanted."""

    x: RowsOrNumbers
    y: Numbers
    link: str = "auto"
    criterion: Literal["bic", "press"] = "bic"
    method: Literal["em", "gibbs"] = "em"
    options: MixtureOptionsIn = MixtureOptionsIn()


class MixturePredictionsIn(In):
    """Rows to predict; with ``y`` their density too. ``levels`` of the quantiles."""

    x: RowsOrNumbers
    y: Numbers | None = None
    levels: Annotated[list[float] | None, Field(min_length=1), at_most(MOST_LEVELS)] = None


class RegressionMixtures:
    """The kind."""

    classes = False
    adapts = MixtureAdaptationIn
    predicts = MixturePredictionsIn

    def prepare(
        self, source: object, classes: tuple[str, ...], at: str, trainer: Trainer
    ) -> tuple[Prepared, dict[str, object]]:
        """Check the parameters, or fit them."""
        given = parse.part(MixtureSourceIn, source, at)
        with parse.placed(at):
            mixture, report, warnings = _source(given)
        # JSON holds every number exactly; there is nothing else to keep.
        content = {**_shown(mixture), "fit": report, "warnings": warnings}
        text = stdlib_json.dumps(content, sort_keys=True)
        return Prepared(hashlib.sha256(text.encode()).hexdigest(), content, {}), given.metadata

    def version(self, record: SourceRecord) -> dict[str, object]:
        """The mixture, and how it was fitted."""
        return record.content

    def adapt(self, record: SourceRecord, load: Load, payload: Payload) -> Adapted:
        """The link between the two populations, chosen or as asked."""
        given = parse.envelope(MixtureAdaptationIn, payload.json())
        source = _mixture(record.content)
        x = _rows(given.x, "/x", MOST_TARGET_ROWS)
        y = _list(given.y, "/y", MOST_TARGET_ROWS)
        options = given.options
        others = ("starts",) if given.method == "gibbs" else OF_GIBBS
        parse.leave_out(options, others, f"is no option of {given.method}", "/options")
        together = options.chains if given.method == "gibbs" else options.starts
        what = "chains" if given.method == "gibbs" else "starts"
        _require_work(together, len(y), source.components, f"/options/{what}")
        if given.method == "gibbs":
            return _drawn(source, x, y, given)
        found = adapt(source, x, y, given.link, given.criterion, options.starts, options.seed)
        chosen = found.chosen
        content = {
            "size": len(y),
            "method": given.method,
            "criterion": found.criterion,
            "seed": found.seed,
            "link": _link(chosen),
            **_shown(chosen.mixture),
            "responsibilities": found.responsibilities.tolist(),
            "log_likelihood": chosen.log_likelihood,
            "links": _table(found),
        }
        return Adapted(content, {}, chosen.warnings)

    def predict(
        self, record: AdaptationRecord, kept: Arrays, load: Load, payload: Payload
    ) -> dict[str, object]:
        """Means, components and quantiles of further rows."""
        given = parse.envelope(MixturePredictionsIn, payload.json())
        mixture = _mixture(record.content)
        x = _rows(given.x, "/x", payload.max_rows)
        y = None if given.y is None else _list(given.y, "/y", payload.max_rows)
        levels = LEVELS if given.levels is None else tuple(given.levels)
        posterior = _posterior(kept, mixture)
        if posterior is None:
            said = predict(mixture, x, y, levels)
        else:
            said = predict_posterior(posterior, x, y, levels)
        return {
            "adaptation": record.id,
            "size": len(x),
            "levels": list(said.levels),
            "mean": said.mean,
            "component_means": said.component_means,
            "probabilities": said.probabilities,
            "quantiles": said.quantiles,
            "log_density": said.log_density,
        }


def _drawn(source: RegressionMixture, x: Floats, y: Floats, given: MixtureAdaptationIn) -> Adapted:
    """The target's regressions drawn from their posterior."""
    options = given.options
    parse.leave_out(given, ("link",), "is for em; gibbs draws the coefficients freely")
    parse.leave_out(given, ("criterion",), "is for em; gibbs has no links to choose from")
    spread = SPREAD if options.spread is None else _spread(options.spread, "/options/spread")
    scale = None if options.scale is None else _spread(options.scale, "/options/scale")
    prior = priors(source, spread, options.shape, scale, options.kappa)
    found = sample(
        source,
        x,
        y,
        prior,
        options.draws,
        options.burn_in,
        options.chains,
        options.align,
        options.level,
        options.seed,
    )
    content = {
        "size": len(y),
        "method": given.method,
        "seed": found.seed,
        "draws": options.draws,
        "burn_in": options.burn_in,
        "chains": options.chains,
        **_shown(found.mixture),
        "responsibilities": found.responsibilities.tolist(),
        "level": found.level,
        "numbers": [vars(one) for one in found.summaries],
        "switched": found.switched,
        "aligned": found.aligned,
    }
    kept = {
        "drawn_coefficients": found.coefficients,
        "drawn_sigmas": found.sigmas,
        "drawn_proportions": found.proportions,
    }
    return Adapted(content, kept, _unmixed(found))


def _unmixed(found: MixturePosterior) -> tuple[Warning, ...]:
    worst = max(one.split_rhat for one in found.summaries)
    if not worst > APART:
        return ()
    message = (
        f"the chains have not come together (split R-hat up to {worst:.3f}): ask for more draws, "
        "or for a longer burn_in"
    )
    return (Warning(WarningCode.CHAINS_APART, message),)


def _posterior(kept: Arrays, mixture: RegressionMixture) -> MixturePosterior | None:
    """What was drawn; None for an adaptation by em."""
    if "drawn_sigmas" not in kept:
        return None
    return MixturePosterior(
        kept["drawn_coefficients"],
        kept["drawn_sigmas"],
        kept["drawn_proportions"],
        mixture,
        (),
        np.zeros((0, mixture.components)),
        0.0,
        False,
        0.0,
        0,
    )


def _spread(values: object, at: str) -> Floats | float:
    """A number, a list of them, or rows."""
    if isinstance(values, list) and values and isinstance(values[0], list):
        return _rows(values, at, MOST_COVARIATES + 1)
    if isinstance(values, list):
        return _list(values, at, MOST_COVARIATES + 1)
    return float(_list([values], at, 1)[0])


def _source(
    given: MixtureSourceIn,
) -> tuple[RegressionMixture, dict[str, object] | None, list[dict[str, object]]]:
    """The mixture, what is told of its fit, and warnings."""
    rows = {name: getattr(given, name) for name in ("x", "y", "components")}
    if given.parameters is not None:
        for name, value in rows.items():
            if value is not None:
                raise InvalidInput.at(f"/{name}", "fits parameters, which are given; send one")
        sent = given.parameters
        with parse.placed("/parameters"):
            mixture = check_mixture(
                _list(sent.proportions, "/proportions", MOST_COVARIATES),
                _rows(sent.coefficients, "/coefficients", MOST_COVARIATES),
                _list(sent.sigmas, "/sigmas", MOST_COVARIATES),
                sent.degree,
            )
        return mixture, None, []
    for name, value in rows.items():
        if value is None:
            raise InvalidInput.at(f"/{name}", "is missing; or send parameters")
    x, y = _rows(given.x, "/x", MOST_SOURCE_ROWS), _list(given.y, "/y", MOST_SOURCE_ROWS)
    components = _components(given.components)
    most = components[1] if isinstance(components, tuple) else components
    _require_work(given.starts, len(y), most, "/starts")
    found = fit(
        x,
        y,
        components,
        given.degree,
        given.starts,
        given.seed,
    )
    return found.mixture, _report(found), [w.model_dump() for w in shown_warnings(found.warnings)]


def _components(given: int | list[int] | None) -> int | tuple[int, int]:
    if isinstance(given, list):
        if len(given) != 2:
            raise InvalidInput.at("/components", "is a number, or the first and last of a range")
        return given[0], given[1]
    assert given is not None
    return given


def _report(found: MixtureFit) -> dict[str, object]:
    return {
        "rows": len(found.responsibilities),
        "log_likelihood": found.log_likelihood,
        "bic": found.bic,
        "icl": found.icl,
        "parameters": found.parameters,
        "starts": found.starts,
        "agreed": found.agreed,
        "steps": found.steps,
        "status": found.status,
        "seed": found.seed,
        "tried": [{"components": k, "bic": bic} for k, bic in found.table],
    }


def _shown(mixture: RegressionMixture) -> dict[str, object]:
    return {
        "components": mixture.components,
        "degree": mixture.degree,
        "proportions": mixture.proportions.tolist(),
        "coefficients": mixture.coefficients.tolist(),
        "sigmas": mixture.sigmas.tolist(),
    }


def _link(found: LinkFit) -> dict[str, object]:
    return {
        "name": found.name,
        "parameters": {name: list(values) for name, values in found.links.items()},
        "unidentified": list(found.unidentified),
        "count": found.parameters,
        "bic": found.bic,
        "log_likelihood": found.log_likelihood,
        "status": found.status,
        "steps": found.steps,
        "starts": found.starts,
        "agreed": found.agreed,
    }


def _table(found: MixtureAdaptation) -> list[dict[str, object]]:
    """Every link that was fitted, the chosen one marked."""
    return [
        {
            **_link(one),
            "chosen": one is found.chosen,
            "error": one.error,
            "oracle_minimum_over_components_error": one.oracle_error,
            "press": None if one.cross is None else one.cross.press,
            "cross_validated_error": None if one.cross is None else one.cross.mean,
            "cross_validated_log_density": None if one.cross is None else one.cross.log_density,
            "warnings": [warning.code for warning in one.warnings],
        }
        for one in found.table
    ]


def _mixture(content: JsonObject) -> RegressionMixture:
    """The mixture that ``_shown`` wrote."""
    return RegressionMixture(
        np.array(content["proportions"]),
        np.array(content["coefficients"]),
        np.array(content["sigmas"]),
        content["degree"],
    )


def _rows(values: object, at: str, most: int) -> Floats:
    """Rows of numbers, all as long as the first; a list of numbers is one column."""
    if isinstance(values, list) and values and type(values[0]) in json.NUMBERS:
        return _list(values, at, most)[:, None]
    first = values[0] if isinstance(values, list | np.ndarray) and len(values) else None
    width = len(first) if isinstance(first, list | np.ndarray) else 1
    if not 0 < width <= MOST_COVARIATES:
        raise InvalidInput.at(at, f"has {width} columns; send 1 to {MOST_COVARIATES}")
    found = json.matrix(values, width, at)
    _require_few(len(found), at, most)
    return found


def _list(values: object, at: str, most: int) -> Floats:
    """A list of numbers."""
    if not isinstance(values, list) or not values:
        raise InvalidInput.at(at, "must be a list of numbers")
    _require_few(len(values), at, most)
    faults = Faults()
    for position, value in enumerate(values):
        if type(value) not in json.NUMBERS or not abs(value) < 1e300:
            faults.add(f"{at}/{position}", f"is {json.shown(value)}, must be a number", position)
    faults.raise_if_any()
    return np.array(values, dtype=np.float64)


def _require_work(together: int, rows: int, components: int, at: str) -> None:
    numbers = together * rows * components
    if numbers > MOST_NUMBERS:
        message = f"of {rows} rows and {components} components is too much at once; lower it"
        raise InvalidInput.at(at, message)


def _require_few(rows: int, at: str, most: int) -> None:
    if rows > most:
        raise InvalidInput.at(at, f"has {rows} rows, at most {most} are allowed here")
