"""Two classes in a fixed amount of memory: statistics of the log-odds that can be merged.

Rows from other hours or other machines are summed up once and never seen again. The log-odds
z = ln(g_1 / g_0) fall into bins of width h (wider far out, for classifiers that are sure of
everything and calibrated down); a bin keeps its weight and the first two moments of z
about its centre, all of which add up. For the likelihood a bin stands for two rows, at its mean
plus and minus its standard deviation, which have the same first two moments.

How good that is: the adjusted posterior q(z) is a logistic function, |q'''| ≤ 1/8, and the third
central moment in an interval of width h is at most h³ / (6 √3). The mean of q over any batch is
therefore off by at most h³ / 450 (the fourth-order rest included), and with it
θ (1 − θ) ℓ'(θ) for every θ. ``error_bound`` turns this into a bound on the estimate.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from app.core.arrays import AnyFloats, Floats
from app.core.prevalence.calibration import Calibration, OneVersusRest, Scaling
from app.core.prevalence.estimators.mle import MleResult, mle
from app.core.prevalence.likelihood.blocks import Blocks
from app.core.prevalence.likelihood.likelihood import Likelihood

WIDTH = 1 / 64
"""h of the inner bins, in units of log-odds."""
REACH = 32.0
"""Inner bins go from −REACH to REACH; beyond, each is wider than the one before by ``GROWTH``."""
GROWTH = 1 + 1 / 1024
LARGEST = 1500.0
"""No two float64 probabilities have log-odds beyond this."""
THIRD_ORDER = 1 / 450


def _edges() -> Floats:
    inner = np.arange(round(REACH / WIDTH) + 1) * WIDTH
    steps = int(np.ceil(np.log(LARGEST / REACH) / np.log(GROWTH)))
    outer = REACH * GROWTH ** np.arange(1, steps + 1)
    positive = np.concatenate([inner, outer])
    return np.concatenate([-positive[:0:-1], positive])


EDGES = _edges()
BINS = len(EDGES) - 1
CENTRES: Floats = 0.5 * (EDGES[1:] + EDGES[:-1])
WIDTHS: Floats = np.diff(EDGES)


@dataclass(frozen=True, eq=False)
class LogOddsSketch:
    """What is kept of any number of rows: about 300 kB.

    ``weight``, ``first``, ``second``: sums over the rows of each bin of 1, δ and δ², with δ the
    distance of z from the bin's centre. ``certain``: weights of the rows that exclude class 1,
    and of those that exclude class 0. ``unsupported``: weight of rows without any mass.
    """

    weight: Floats
    first: Floats
    second: Floats
    certain: Floats
    unsupported: float = 0.0

    @classmethod
    def empty(cls) -> "LogOddsSketch":
        """The sketch of no rows."""
        return cls(np.zeros(BINS), np.zeros(BINS), np.zeros(BINS), np.zeros(2))

    @classmethod
    def of(
        cls,
        posteriors: AnyFloats | Iterable[AnyFloats],
        weights: AnyFloats | Iterable[AnyFloats] | None = None,
    ) -> "LogOddsSketch":
        """Sketch of N × 2 raw posteriors, an array or chunks, with N row weights."""
        sketch = cls.empty()
        for block, block_weights in Blocks(posteriors, weights):
            sketch = sketch.merge(
                _of_block(block, np.ones(len(block)) if block_weights is None else block_weights)
            )
        return sketch

    def merge(self, other: "LogOddsSketch") -> "LogOddsSketch":
        """The sketch of both sets of rows; the order does not matter."""
        return LogOddsSketch(
            self.weight + other.weight,
            self.first + other.first,
            self.second + other.second,
            self.certain + other.certain,
            self.unsupported + other.unsupported,
        )

    @property
    def size(self) -> float:
        """Weight of all rows."""
        return float(self.weight.sum() + self.certain.sum()) + self.unsupported

    def atoms(self) -> tuple[Floats, Floats]:
        """At most 2 · BINS + 2 rows of posteriors that stand for the sketched ones; weights."""
        used = self.weight > 0
        weight = self.weight[used]
        mean = self.first[used] / weight
        deviation = np.sqrt(np.maximum(self.second[used] / weight - mean**2, 0.0))
        z = CENTRES[used] + mean
        atoms = np.concatenate([z - deviation, z + deviation, [-np.inf, np.inf]])
        weights = np.concatenate([weight / 2, weight / 2, self.certain])
        return np.column_stack([expit(-atoms), expit(atoms)]), weights

    def likelihood(self, source: Floats, calibration: Calibration | None = None) -> Likelihood:
        """The likelihood of the atoms, which stand for the sketched rows.

        ``source``: the two source priors of the (calibrated) posteriors.
        """
        posteriors, weights = self.atoms()
        return Likelihood.of(posteriors, source, weights, calibration)

    def estimate(self, source: Floats, calibration: Calibration | None = None) -> MleResult:
        """The maximum-likelihood priors of the sketched rows; unsupported rows do not count."""
        return mle(self.likelihood(source, calibration))

    def error_bound(self, result: MleResult, calibration: Calibration | None = None) -> float:
        """How far ``result`` is from the estimate on the rows themselves, to first order.

        The mean of h³ / 450 over the rows, over θ (1 − θ) mean w², with mean w² =
        H_11 − 2 H_01 + H_00; calibration stretches h by its largest scale. Infinite at the
        simplex's ends, where the rows may pull the estimate inside.
        """
        scale = _stretch(calibration)
        theta, H = float(result.prevalence[1]), result.hessian
        if H is None or not 0 < theta < 1:
            return float("inf")
        curvature = theta * (1 - theta) * float(H[1, 1] - 2 * H[0, 1] + H[0, 0])
        if curvature <= 0:
            return float("inf")
        cubed = float(self.weight @ np.abs(scale * WIDTHS) ** 3) / max(self.size, 1.0)
        return THIRD_ORDER * cubed / curvature


def _stretch(calibration: Calibration | None) -> float:
    """The steepest that calibrated log-odds grow with the raw ones."""
    if calibration is None:
        return 1.0
    if isinstance(calibration, Scaling):
        return float(np.abs(calibration.scale).max())
    if isinstance(calibration, OneVersusRest):
        return float(np.abs(calibration.slopes).sum())
    return float("inf")


def _of_block(block: Floats, weights: Floats) -> LogOddsSketch:
    """Sketch of a few rows."""
    first, second = block.T
    both = (first > 0) & (second > 0)
    without_one, without_zero = (first > 0) & (second <= 0), (first <= 0) & (second > 0)
    w = weights[both]
    z = np.log(second[both]) - np.log(first[both])
    bins = np.searchsorted(EDGES[1:-1], z, side="right")
    delta = z - CENTRES[bins]

    def summed(values: Floats) -> Floats:
        return np.bincount(bins, values, BINS).astype(np.float64, copy=False)

    certain = np.array([weights[without_one].sum(), weights[without_zero].sum()])
    return LogOddsSketch(
        summed(w),
        summed(w * delta),
        summed(w * delta**2),
        certain,
        float(weights.sum() - w.sum() - certain.sum()),
    )
