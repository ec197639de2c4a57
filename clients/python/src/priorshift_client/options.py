"""Options of a request, as plain dictionaries; what is left out keeps the service's default."""

from collections.abc import Mapping
from enum import Enum
from typing import Literal, TypedDict

References = Literal["auto", "chi-square", "scaled-chi-square", "bootstrap"]


class Unchanged(Enum):
    """Of a change: what is left out stays as it is, where None says something."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED


class IntervalOptions(TypedDict, total=False):
    """Which interval is wanted."""

    level: float
    method: Literal["auto", "wald", "profile", "bootstrap"]
    of: Literal["population", "batch"]
    seed: int


class ShiftOptions(TypedDict, total=False):
    """What counts as a detected shift."""

    significance: float
    minimum_effect: float
    reference: References
    seed: int


class MethodOptions(TypedDict, total=False):
    """Of em: tolerance, max_iterations. Of bayes: prior, seed. Of cde: refit. Of matching: soft."""

    tolerance: float
    max_iterations: int
    prior: Mapping[str, float]
    seed: int
    refit: bool
    soft: bool
