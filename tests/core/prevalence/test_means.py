import numpy as np

from app.core.prevalence.means import RowMean


def test_means_and_variances_are_those_of_the_columns() -> None:
    rows = np.random.default_rng(0).random((40, 3))
    found = RowMean.of(rows)
    np.testing.assert_array_equal(found.mean, rows.mean(axis=0))
    np.testing.assert_allclose(found.variances, rows.var(axis=0, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(found.products / 39, np.cov(rows.T), rtol=1e-12)
