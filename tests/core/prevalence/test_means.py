import numpy as np

from app.core.prevalence.likelihood.means import RowMean


def test_means_and_variances_are_those_of_the_columns() -> None:
    rows = np.random.default_rng(0).random((40, 3))
    found = RowMean.of(rows)
    np.testing.assert_array_equal(found.mean, rows.mean(axis=0))
    np.testing.assert_allclose(found.variances, rows.var(axis=0, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(found.products / 39, np.cov(rows.T), rtol=1e-12)


def test_rows_of_single_precision_are_summed_in_double() -> None:
    rows = np.random.default_rng(1).dirichlet([1, 2, 3], 100_000).astype(np.float32)
    found = RowMean.of(rows)
    assert found.mean.dtype == np.float64
    np.testing.assert_allclose(found.mean, rows.astype(np.float64).mean(axis=0), rtol=1e-14)
