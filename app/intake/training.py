"""From a request's ``training`` to what is fitted: checked, bounded, in the core's form."""

import numpy as np

from app.core.arrays import Codes, Floats
from app.core.errors import Faults, InvalidInput
from app.core.learners.columns import FeatureColumns
from app.core.learners.recipe import Recipe, complete_parameters
from app.core.learners.trained import Training
from app.formats import json
from app.formats.table import Levels, feature_names, table
from app.schemas.requests import SourceIn, TrainingIn

MOST_LEVELS = 1000
MOST_NUMBERS = 25_000_000
"""Rows × encoded columns, and rows × classes."""
MOST_WEIGHTS = 1_000_000
"""Encoded columns × classes."""
EXCLUDED = ("class_counts", "priors", "confusion_matrix", "outputs", "validation")


def training(source: SourceIn, names: tuple[str, ...], at: str) -> Training | None:
    """What a source asks to be trained; None where it brings scores. ``at``: where it stands."""
    given = source.training
    if given is None:
        return None
    for other in EXCLUDED:
        if getattr(source, other) is not None:
            message = "comes out of training; leave it out, or leave training out"
            raise InvalidInput.at(f"{at}/{other}", message)
    if source.matching is not None:
        message = (
            "goes with validation.features; a version that is trained here scores features "
            "instead. Register a version of the same rows as validation.features beside it"
        )
        raise InvalidInput.at(f"{at}/matching", message)
    at = f"{at}/training"
    if len(names) < 2:
        raise InvalidInput.at(at, "needs a model of at least two classes")
    recipe = Recipe(
        given.learner,
        complete_parameters(given.learner, given.parameters, f"{at}/parameters"),
        given.folds,
        given.missing,
        given.seed,
    )
    columns, values = _columns(given, at)
    labels = _labels(given, names, len(values), at)
    _require_size(values, columns, len(names), at)
    _require_values(values, columns, recipe, at)
    return Training(columns, values, labels, len(names), recipe)


def _columns(given: TrainingIn, at: str) -> tuple[FeatureColumns, Floats]:
    names = feature_names(given.features, given.feature_names, at)
    levels: Levels = {}
    faults = Faults()
    for position, name in enumerate(given.categorical):
        where = f"{at}/categorical/{position}"
        if name not in names:
            faults.add(
                where,
                f"{json.shown(name)} is not a column; columns are named by position "
                "x0, x1, … where feature_names is left out",
            )
        elif names.index(name) in levels:
            faults.add(where, f"repeats {json.shown(name)}")
        else:
            levels[names.index(name)] = {}
    faults.raise_if_any()
    gaps = given.missing == "impute"
    values = table(given.features, names, levels, True, gaps, f"{at}/features")
    for j, known in levels.items():
        if len(known) > MOST_LEVELS:
            message = f"{names[j][:60]} has {len(known)} levels, at most {MOST_LEVELS} are allowed"
            raise InvalidInput.at(f"{at}/categorical", message)
    return FeatureColumns(names, {j: tuple(known) for j, known in levels.items()}), values


def _labels(given: TrainingIn, names: tuple[str, ...], rows: int, at: str) -> Codes:
    labels = json.codes(given.labels, names, f"{at}/labels")
    if len(labels) != rows:
        message = f"has {len(labels)} labels for {rows} rows of features"
        raise InvalidInput.at(f"{at}/labels", message)
    few = np.flatnonzero(np.bincount(labels, minlength=len(names)) < 2)
    if len(few):
        listed = ", ".join(names[k][:60] for k in few[:10])
        message = f"has fewer than two rows of {listed}; cross-validation needs two of each class"
        raise InvalidInput.at(f"{at}/labels", message)
    return labels


def _require_size(values: Floats, columns: FeatureColumns, classes: int, at: str) -> None:
    width = columns.encoded_width
    for what, numbers, most in (
        (f"rows × {width} encoded columns", len(values) * width, MOST_NUMBERS),
        (f"rows × {classes} classes", len(values) * classes, MOST_NUMBERS),
        (f"{width} encoded columns × {classes} classes", width * classes, MOST_WEIGHTS),
    ):
        if numbers > most:
            message = f"is too large: {what} are {numbers} numbers, at most {most} are allowed"
            raise InvalidInput.at(f"{at}/features", message)


def _require_values(values: Floats, columns: FeatureColumns, recipe: Recipe, at: str) -> None:
    faults = Faults()
    for j in np.flatnonzero(np.isnan(values).all(axis=0)):
        faults.add(f"{at}/features", f"column {columns.names[j][:60]} has no value in any row")
    if recipe.counts:
        numeric = columns.numeric
        for row in faults.some(np.flatnonzero((values[:, numeric] < 0).any(axis=1))):
            message = "holds a negative number; multinomial naive Bayes takes counts"
            faults.add(f"{at}/features/{row}", message, row)
    faults.raise_if_any()


def description(found: Training, folds: int) -> dict[str, object]:
    """What a version says of its training; ``folds``: how many there were in the end."""
    recipe, columns = found.recipe, found.columns
    return {
        "learner": recipe.learner,
        "parameters": recipe.parameters,
        "feature_names": list(columns.names),
        "categorical": [columns.names[j] for j in columns.categorical],
        "missing": recipe.missing,
        "rows": len(found.labels),
        "folds": folds,
        "seed": recipe.seed,
    }
