"""Small trainings."""

from typing import Any

import numpy as np

from app.core.learners.columns import FeatureColumns
from app.core.learners.recipe import Learner, Recipe, complete_parameters
from app.core.learners.trained import Training

COLUMNS = FeatureColumns(("amount", "country"), {1: ("BE", "NL", "FR")})


def training(
    learner: Learner = "logistic-regression",
    rows: int = 90,
    classes: int = 2,
    folds: int = 5,
    **parameters: Any,
) -> Training:
    """Classes that overlap; a numeric and a categorical column."""
    rng = np.random.default_rng(3)
    labels = np.arange(rows) % classes
    table = np.column_stack([rng.normal(labels * 1.5, 1.0), rng.integers(0, 3, rows)])
    recipe = Recipe(learner, complete_parameters(learner, parameters, ""), folds)
    return Training(COLUMNS, table, labels, classes, recipe)
