from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from app.core.learners.columns import FeatureColumns
from app.core.learners.folds import stratified_folds
from app.core.learners.trained import Trained
from app.training.procedures import ModelTooLarge, learn, refit
from tests.training.data import training


class TestLearn:
    def test_every_row_is_scored_by_a_model_that_did_not_see_it(self) -> None:
        asked = training(classes=3)
        numbers = replace(asked, columns=FeatureColumns(("amount", "code")))
        found = learn(numbers)
        fold = stratified_folds(asked.labels, 5, 0)
        for k in range(5):
            theirs = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
            theirs.fit(asked.table[fold != k], asked.labels[fold != k])
            expected = theirs.predict_proba(asked.table[fold == k])
            np.testing.assert_allclose(found.posteriors[fold == k], expected, atol=1e-9)
        assert (found.folds, found.fits, found.short) == (5, 6, 0)

    def test_the_model_is_of_all_rows(self) -> None:
        asked = replace(training(), columns=FeatureColumns(("amount", "code")))
        kept = Trained.of_arrays(learn(asked).arrays)
        theirs = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        expected = theirs.fit(asked.table, asked.labels).predict_proba(asked.table)
        np.testing.assert_allclose(kept.posteriors(asked.table), expected, atol=1e-9)

    def test_a_rare_class_lowers_the_number_of_folds(self) -> None:
        asked = training(rows=20)
        labels = asked.labels.copy()
        labels[6:] = 0
        found = learn(replace(asked, labels=labels))
        assert found.folds == 3
        assert np.isfinite(found.posteriors).all()

    def test_a_level_of_one_row_only(self) -> None:
        asked = training()
        table = asked.table.copy()
        table[:, 1] = 0
        table[7, 1] = 2
        found = learn(replace(asked, table=table))
        assert np.isfinite(found.posteriors).all()

    def test_short_searches_are_counted(self) -> None:
        assert learn(training(C=1e5, max_iter=1)).short == 6

    def test_a_model_too_large_to_keep_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("app.training.procedures.MOST_BYTES", 1000)
        with pytest.raises(ModelTooLarge, match="fewer or smaller trees"):
            learn(training("random-forest"))


class TestRefit:
    def test_is_the_algorithm_with_class_weights(self) -> None:
        asked = replace(
            training("random-forest", n_estimators=10), columns=FeatureColumns(("a", "b"))
        )
        batch = np.random.default_rng(9).normal(1.2, 1.0, (200, 2))
        found = refit(asked, batch, 50).result
        ratio, counted = 1.0, []
        for _ in range(found.iterations):
            theirs = RandomForestClassifier(10, random_state=0)
            weights = np.where(asked.labels == 0, ratio, 1.0)
            theirs.fit(asked.table, asked.labels, weights)
            share = float((theirs.predict(batch) == 1).mean())
            share = min(max(share, 1 / 400), 1 - 1 / 400)
            counted.append(share)
            ratio = (0.5 / 0.5) / (share / (1 - share))
        np.testing.assert_allclose(found.trace, counted)
        assert counted[-1] in counted[:-1]
        assert found.status in ("converged", "cycle")

    def test_ends_after_so_many_fits(self) -> None:
        batch = np.column_stack([np.linspace(-2, 3, 1000), np.zeros(1000)])
        found = refit(training(), batch, 2)
        assert found.fits == found.result.iterations == 2
        assert found.result.status == "max-iterations"

    def test_a_batch_of_one_class_is_clamped(self) -> None:
        batch = np.column_stack([np.full(10, -50.0), np.zeros(10)])
        assert refit(training(), batch, 50).result.prevalence == 0.05
