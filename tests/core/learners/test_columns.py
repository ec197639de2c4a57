import numpy as np

from app.core.learners import columns as features
from app.core.learners.columns import MISSING, UNKNOWN, FeatureColumns

COLUMNS = FeatureColumns(("amount", "country", "age"), {1: ("BE", 1.0, "é", "1")})


def test_come_back_from_their_array() -> None:
    assert FeatureColumns.of_array(COLUMNS.array()) == COLUMNS


def test_know_where_they_stand() -> None:
    assert COLUMNS.numeric.tolist() == [0, 2]
    assert COLUMNS.categorical == (1,)
    assert COLUMNS.encoded_width == 6


def test_count_what_is_missing_and_unknown() -> None:
    table = np.array([[UNKNOWN, UNKNOWN, 0.0], [MISSING, MISSING, 0.0]])
    assert features.missing(table) == 2
    assert features.unknown(table, COLUMNS) == 1
