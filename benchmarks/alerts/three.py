"""Three classes: the expected false alarms of windows of posteriors, by the service's own test."""

import numpy as np
from scipy.special import chdtri, logsumexp

from app.core.arrays import Codes, Floats
from app.core.prevalence.estimators.mle import mle
from app.core.prevalence.likelihood.likelihood import Likelihood
from app.core.prevalence.source import Source, ValidationSet, derive
from app.core.prevalence.watching.source_set import SourceSet
from app.core.prevalence.watching.window import window_test

SHARES = np.array([0.7, 0.2, 0.1])
DISTANCE = 2.0
DIRECTIONS = 8


def three(size: int, validation: int, sources: int, windows: int, level: float) -> Floats:
    """Rejections over the level, of each source: against the set, and against the point.

    Importance sampling as in ``rates``, from shares in all directions around the source.
    """
    rng = np.random.default_rng(1)
    tilted = _tilted(float(np.sqrt(chdtri(2, level) / size)))
    results = []
    for _ in range(sources):
        labels, rows = _draw(rng, np.tile(SHARES, (validation, 1)))
        source = Source(("a", "b", "c"), validation=ValidationSet(labels, rows))
        model = derive(source, reporting=False)
        kept = SourceSet.of(model)
        rejected = np.zeros(2)
        for window in range(windows):
            _, rows = _draw(rng, np.tile(tilted[window % len(tilted)], (size, 1)))
            ratios = rows / SHARES
            logs = np.log(ratios @ np.vstack([SHARES, tilted]).T).sum(axis=0)
            weight = np.exp(logs[0] - logsumexp(logs[1:]) + np.log(len(tilted)))
            batch = Likelihood.of(rows, model.priors, calibration=model.calibration)
            test = window_test(batch, mle(batch), kept, level)
            rejected += weight * np.array(
                [test.detected, test.point_statistic > chdtri(test.degrees_of_freedom, level)]
            )
        results.append(rejected / windows / level)
    return np.array(results)


def _tilted(radius: float) -> Floats:
    """Shares around the source, ``radius`` away in the metric of a sharp classifier."""
    root = np.sqrt(SHARES)
    across = np.linalg.svd(root[None, :])[2][1:]
    angles = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    steps = np.column_stack([np.cos(angles), np.sin(angles)]) @ across
    shares = np.maximum(SHARES + 1.2 * radius * steps * root, 0.002)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _draw(rng: np.random.Generator, shares: Floats) -> tuple[Codes, Floats]:
    """Labels, and posteriors that are right at the source shares."""
    labels = (rng.random(len(shares))[:, None] > np.cumsum(shares, axis=1)).sum(axis=1)
    labels = np.minimum(labels, 2)
    side = DISTANCE / np.sqrt(2)
    x = rng.normal(size=shares.shape) + side * np.eye(3)[labels]
    g = np.exp(side * x) * SHARES
    return labels, g / g.sum(axis=1, keepdims=True)
