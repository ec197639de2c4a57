"""Bombs of JSON against a real server: a short run of ``benchmarks.siege``."""

import numpy as np
import pytest

from benchmarks.siege import measure

MOST_GROWTH = 900
"""MB: inflated bodies, 512 MB of them at most, and what holds them while they inflate."""


@pytest.mark.parametrize("name", ["names of 120 MB", "texts and numbers of 120 MB"])
def test_neither_memory_nor_others_suffer(name: str) -> None:
    seen = measure(name, 4.0)
    assert seen.got, "the attacker got no answer"
    assert set(seen.got) <= {"400", "413", "422", "429"}
    assert seen.failed == 0
    assert seen.most - seen.before < MOST_GROWTH
    calm, worst = (float(np.quantile(seconds, 0.99)) for seconds in (seen.calm, seen.probe))
    assert worst < max(0.25, 5 * calm)
