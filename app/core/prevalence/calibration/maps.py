"""The maps from raw to calibrated posteriors, as values: no fitting here."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from app.core.arrays import (
    AnyFloats,
    Floats,
    Mask,
    divide_rows,
    row_maxima,
    row_sums,
    subtract_rows,
)

Method = Literal[
    "none",
    "temperature",
    "no-bias-vector-scaling",
    "vector-scaling",
    "bcts",
    "platt",
    "platt-targets",
    "isotonic",
]
METHODS: tuple[Method, ...] = (
    "bcts",
    "temperature",
    "vector-scaling",
    "no-bias-vector-scaling",
    "platt",
    "platt-targets",
    "isotonic",
    "none",
)
"""In the order in which equals are preferred."""

SMALLEST = 1e-300
FINER = 2.0**600
"""Between scores times this no slope overflows, be they subnormally near, nor underflows."""
SAFE_BIAS = 100.0
"""Products of several e^bias, and what a batch adds, stay far from the end of the range."""
SAFE_EXPONENT = 200.0
"""The largest of C probabilities is at least 1/C; its power is then above e to minus this."""


class Calibration(Protocol):
    """A map of posteriors. ``bias``: C values, the part of it that a likelihood factors out.

    ``left_out`` is that part as ``powers`` leaves it out: the bias, unless it is so large that its
    exponential squared would overflow; then nothing.

    ``floor`` replaces exact zeros: half the smallest positive posterior of the validation set if
    that holds a zero, else a number that only guards the logarithm. ``regularised``: the
    validation set did not determine a scale (separable or constant scores), which was drawn
    towards one.
    """

    @property
    def method(self) -> Method:
        """The name that it was asked for by."""

    @property
    def bias(self) -> Floats:
        """C values; zero where the map has no such factor."""

    @property
    def left_out(self) -> Floats:
        """C values; what ``powers`` lacks of the map's logarithm."""

    @property
    def floor(self) -> float:
        """What stands for exact zeros."""

    @property
    def regularised(self) -> bool:
        """Whether a scale had to be drawn towards one."""

    def apply(self, posteriors: Floats) -> Floats:
        """Calibrated posteriors, N × C."""

    def powers(self, posteriors: AnyFloats) -> Floats:
        """Calibrated posteriors but for e^bias and a factor per row, N × C in double precision.

        A likelihood needs no more than that.
        """


@dataclass(frozen=True)
class Scaling:
    """g → softmax(scale · ln max(g, floor) + bias), scale and bias by class (C values each)."""

    method: Method
    scale: Floats
    bias: Floats
    floor: float = 0.0
    regularised: bool = False

    @classmethod
    def identity(cls, classes: int) -> "Scaling":
        """Posteriors as they are."""
        return cls("none", np.ones(classes), np.zeros(classes))

    @property
    def common(self) -> float | None:
        """The scale that all classes share; None if they differ."""
        first = float(self.scale[0])
        return first if (self.scale == first).all() else None

    def of_classes(self, present: Mask) -> "Scaling":
        """The same map on some of the classes."""
        scale, bias = self.scale[present], self.bias[present]
        return Scaling(self.method, scale, bias, self.floor, self.regularised)

    def apply(self, posteriors: Floats) -> Floats:
        """Calibrated posteriors, N × C; the argument itself when there is nothing to do."""
        if self.method == "none":
            return posteriors
        return _softmax(self.scale * log_scores(posteriors, self.floor) + self.bias)

    def _over_the_first(self, posteriors: AnyFloats) -> Floats:
        """Both powers of two over the first: one and their odds; half the logarithms."""
        rows = np.empty(posteriors.shape, order="F")
        rows[:, 0] = 1.0
        first, second, odds = *posteriors.T, rows[:, 1]
        if self.common is not None:
            np.divide(second, first, out=odds, dtype=np.float64)
            np.log(odds, out=odds)
            odds *= self.common
        else:
            np.log(second, out=odds, dtype=np.float64)
            odds *= self.scale[1]
            odds -= self.scale[0] * np.log(first, dtype=np.float64)
        np.exp(odds, out=odds)
        return rows

    @property
    def steep(self) -> bool:
        """Whether the biases are those of a separable validation set of very sure posteriors."""
        return bool(np.abs(self.bias).max() > SAFE_BIAS)

    @property
    def left_out(self) -> Floats:
        """The bias, or nothing where that is too large."""
        return np.zeros(len(self.bias)) if self.steep else self.bias

    def powers(self, posteriors: AnyFloats) -> Floats:
        """max(g, floor)^scale, up to a factor per row; with e^bias where that is too large."""
        if self.steep or self.method == "none":
            return self.apply(posteriors.astype(np.float64, copy=False))
        if posteriors.shape[1] == 2:
            raised, lowest = _raised(posteriors, self.floor)
            if lowest > 0 and -np.log(lowest) * float(np.abs(self.scale).max()) <= SAFE_EXPONENT:
                return self._over_the_first(raised)
        logs = log_scores(posteriors, self.floor)
        logs *= self.scale if self.common is None else self.common
        largest = float(self.scale.max()) * np.log(posteriors.shape[1])
        if largest > SAFE_EXPONENT or float(self.scale.min()) < 0:
            subtract_rows(logs, row_maxima(logs))
        np.exp(logs, out=logs)
        return logs


@dataclass(frozen=True)
class OneVersusRest:
    """g_k → σ(slope_k · ln(g_k / (1 − g_k)) + intercept_k), rescaled to sum to one.

    Odds beyond ``floor`` : 1 are taken as that.
    """

    method: Method
    slopes: Floats
    intercepts: Floats
    floor: float
    regularised: bool = False

    @property
    def bias(self) -> Floats:
        """Zero: nothing factors out."""
        return np.zeros(len(self.slopes))

    @property
    def left_out(self) -> Floats:
        """Zero: ``powers`` lacks nothing of the map."""
        return self.bias

    def apply(self, posteriors: Floats) -> Floats:
        """Calibrated posteriors, N × C."""
        return _softmax(self._logs(posteriors))

    def powers(self, posteriors: AnyFloats) -> Floats:
        """The sigmoids, up to a factor per row."""
        return self.apply(posteriors.astype(np.float64, copy=False))

    def _logs(self, posteriors: Floats) -> Floats:
        """Ln σ, without a detour through σ, which may be zero for every class."""
        logits = log_odds(posteriors, self.floor)
        logits *= self.slopes
        logits += self.intercepts
        logs: Floats = -np.logaddexp(0.0, -logits)
        return logs


@dataclass(frozen=True)
class Isotonic:
    """g_k → a non-decreasing curve per class, linear between its knots; then rescaled.

    ``knots`` and ``values``: as many arrays as classes, the curve of class k through
    (knots[k], values[k]). Values lie within (0, 1), so that no row is impossible.
    """

    knots: tuple[Floats, ...]
    values: tuple[Floats, ...]
    method: Method = "isotonic"
    floor: float = 0.0
    regularised: bool = False

    @property
    def bias(self) -> Floats:
        """Zero: nothing factors out."""
        return np.zeros(len(self.knots))

    @property
    def left_out(self) -> Floats:
        """Zero: ``powers`` lacks nothing of the map."""
        return self.bias

    def apply(self, posteriors: Floats) -> Floats:
        """Calibrated posteriors, N × C."""
        finer = np.multiply(posteriors, FINER, dtype=np.float64)
        curves = zip(finer.T, self.knots, self.values, strict=True)
        rows = np.column_stack([np.interp(g, x * FINER, y) for g, x, y in curves])
        divide_rows(rows, row_sums(rows), rows)
        return rows

    def powers(self, posteriors: AnyFloats) -> Floats:
        """The calibrated posteriors themselves."""
        return self.apply(posteriors.astype(np.float64, copy=False))


def log_scores(posteriors: AnyFloats, floor: float) -> Floats:
    """Ln max(g, floor), N × C in double precision."""
    logs: Floats = np.log(at_least(posteriors, floor), dtype=np.float64)
    return logs


def at_least(posteriors: AnyFloats, floor: float) -> AnyFloats:
    """max(g, floor), N × C; the argument itself where that is so already, which is seen faster."""
    return _raised(posteriors, floor)[0]


def _raised(posteriors: AnyFloats, floor: float) -> tuple[AnyFloats, float]:
    """The same, and a lower bound on what is in it."""
    lowest = float(posteriors.min(initial=1.0))
    if lowest >= floor:
        return posteriors, lowest
    return np.maximum(posteriors, floor, dtype=np.float64), floor


def log_odds(posteriors: Floats, floor: float) -> Floats:
    """ln(g / (1 − g)), N × C, both parts at least ``floor``."""
    odds: Floats = log_scores(posteriors, floor) - log_scores(1.0 - posteriors, floor)
    return odds


def floor_of(posteriors: Floats) -> float:
    """Half the smallest positive posterior if there is a zero; else a guard for the logarithm."""
    smallest = float(posteriors.min())
    if smallest > 0:
        return SMALLEST
    return max(float(posteriors[posteriors > 0].min()) / 2, SMALLEST)


def _softmax(logits: Floats) -> Floats:
    subtract_rows(logits, row_maxima(logits))
    np.exp(logits, out=logits)
    divide_rows(logits, row_sums(logits), logits)
    return logits
