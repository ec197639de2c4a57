from dataclasses import replace

import numpy as np

from app.core.learners.columns import FeatureColumns
from models_store.trainings import digest
from tests.training.data import training

CLASSES = ("a", "b")


def test_the_digest_depends_on_everything_that_was_sent() -> None:
    asked = training()
    table, labels = asked.table.copy(), asked.labels.copy()
    table[0, 0] += 1
    labels[0] = 1 - labels[0]
    recipes = [
        replace(asked.recipe, seed=1),
        replace(asked.recipe, folds=4),
        replace(asked.recipe, missing="impute"),
        replace(asked.recipe, parameters={**asked.recipe.parameters, "C": 2.0}),
        replace(asked.recipe, learner="linear-svm"),
    ]
    changed = [
        asked,
        replace(asked, table=table),
        replace(asked, labels=labels),
        replace(asked, columns=FeatureColumns(("amount", "land"), asked.columns.levels)),
        replace(asked, columns=FeatureColumns(("amount", "country"), {1: ("BE", "NL", "DE")})),
        replace(asked, columns=FeatureColumns(("amount", "country"))),
        *(replace(asked, recipe=recipe) for recipe in recipes),
    ]
    digests = {digest(item, CLASSES, "bcts") for item in changed}
    digests |= {digest(asked, ("b", "a"), "bcts"), digest(asked, CLASSES, "none")}
    assert len(digests) == len(changed) + 2
    again = replace(asked, table=np.asfortranarray(asked.table))
    assert digest(again, CLASSES, "bcts") in digests
