"""What can be asked of an adaptation."""

from dataclasses import dataclass
from typing import Literal

Strategy = Literal["versatile", "original", "linear", "percentile", "ks-linear", "ks-percentile"]
Correction = Literal["none", "holm"]
SecondTest = Literal["plain", "bootstrap"]


@dataclass(frozen=True)
class Steps:
    """What a strategy does: look for a shift first, fit a map, take percentiles.

    With a map *and* percentiles the second test chooses.
    """

    tests: bool
    maps: bool
    percentiles: bool


STRATEGIES: dict[Strategy, Steps] = {
    "versatile": Steps(tests=True, maps=True, percentiles=True),
    "original": Steps(tests=True, maps=False, percentiles=False),
    "linear": Steps(tests=False, maps=True, percentiles=False),
    "percentile": Steps(tests=False, maps=False, percentiles=True),
    "ks-linear": Steps(tests=True, maps=True, percentiles=False),
    "ks-percentile": Steps(tests=True, maps=False, percentiles=True),
}
"""The paper's six (section 4): VM, OM, ⟨α, β⟩, Perc, KS+⟨α, β⟩, KS+Perc."""


@dataclass(frozen=True)
class TreeOptions:
    """How to adapt.

    ``strategy``: see ``STRATEGIES``.
    ``significance``: of both tests.
    ``correction``: of the first tests, over all attributes that can be adapted.
    ``second_test``: how the test after the map gets its p-value.
    ``minimum_batch``: values that percentiles need.
    ``seed``: of the bootstrap.
    """

    strategy: Strategy = "versatile"
    significance: float = 0.05
    correction: Correction = "none"
    second_test: SecondTest = "plain"
    minimum_batch: int = 30
    seed: int = 0
