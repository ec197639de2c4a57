import numpy as np
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from app.core.learners.columns import MISSING, UNKNOWN, FeatureColumns
from app.core.learners.encoding import Encoding

COLUMNS = FeatureColumns(("amount", "country", "age"), {1: ("BE", "NL", "FR")})
TABLE = np.array(
    [[1.0, 0.0, 30.0], [2.5, 1.0, 40.0], [-3.0, 1.0, 20.0], [7.0, 2.0, 20.0], [0.5, 0.0, 31.0]]
)


def test_is_that_of_scikit_learn() -> None:
    numeric = StandardScaler().fit_transform(TABLE[:, [0, 2]])
    levels = OneHotEncoder(sparse_output=False).fit_transform(TABLE[:, [1]])
    found = Encoding.fit(TABLE, COLUMNS, standardise=True).apply(TABLE)
    np.testing.assert_allclose(found, np.hstack([numeric, levels]), rtol=1e-14)


def test_learners_that_do_not_need_it_get_numbers_as_they_are() -> None:
    found = Encoding.fit(TABLE, COLUMNS, standardise=False).apply(TABLE)
    np.testing.assert_array_equal(found[:, :2], TABLE[:, [0, 2]])


def test_missing_values_become_median_and_most_frequent_level() -> None:
    table = TABLE.copy()
    table[:, 1] = [2.0, 1.0, 2.0, 0.0, MISSING]
    table[0, 0] = MISSING
    encoding = Encoding.fit(table, COLUMNS, standardise=False)
    assert encoding.fill.tolist() == [1.5, 2.0, 30.0]
    found = encoding.apply(table)
    assert found[0, 0] == 1.5
    assert found[4, 2:].tolist() == [0.0, 0.0, 1.0]


def test_an_unknown_level_is_all_zero() -> None:
    row = np.array([[0.0, UNKNOWN, 0.0]])
    assert Encoding.fit(TABLE, COLUMNS, standardise=False).apply(row)[0, 2:].tolist() == [0, 0, 0]


def test_levels_that_a_fold_lacks_are_unknown_to_it() -> None:
    encoding = Encoding.fit(TABLE[1:3], COLUMNS, standardise=False)
    found = encoding.apply(TABLE)
    assert found.shape == (5, 3)
    assert found[:, 2].tolist() == [0, 1, 1, 0, 0]


def test_a_constant_column_is_centred_and_not_divided() -> None:
    table = np.full((7, 1), 0.1)
    encoding = Encoding.fit(table, FeatureColumns(("x",)), standardise=True)
    assert encoding.scale.tolist() == [1.0]
    np.testing.assert_allclose(encoding.apply(table), 0.0, atol=1e-15)


def test_a_column_without_a_value_in_this_fold_is_filled_with_zero() -> None:
    table = np.full((3, 1), MISSING)
    assert Encoding.fit(table, FeatureColumns(("x",)), standardise=True).fill.tolist() == [0.0]


def test_the_whole_encoding_is_that_of_all_rows() -> None:
    fitted = Encoding.fit(TABLE, COLUMNS, standardise=True)
    whole = Encoding.whole(COLUMNS, fitted.centre, fitted.scale, fitted.fill)
    np.testing.assert_array_equal(whole.apply(TABLE), fitted.apply(TABLE))
