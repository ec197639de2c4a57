"""The bandwidth that separates the classes most.

Maximises Δ_min (hard) or λ_min (soft) of the Gram matrix over a grid of 0.1 to 10 times the median
distance. Means within a class leave out the pairs of a row with itself: with them the criterion of
a small class has its maximum at zero.
"""

from typing import Literal

import numpy as np

from app.core import deadline
from app.core.arrays import Codes, Floats
from app.core.prevalence.matching.geometry import delta_min, lambda_min
from app.core.prevalence.matching.kernels import squared_distances

Criterion = Literal["delta-min", "lambda-min"]
STEPS = 21
MOST_ROWS = 1500
"""Rows, about evenly from the classes, whose pairs are looked at."""


def grid(distance: float) -> Floats:
    """The bandwidths that are tried."""
    return np.asarray(distance * np.geomspace(0.1, 10.0, STEPS))


def choose(rows: Floats, labels: Codes, classes: int, criterion: Criterion, seed: int) -> float:
    """The bandwidth for n × d standardised rows with n labels.

    Of a model of one class λ_min decides. Classes of a single row count its pair with itself.
    """
    picked = sample(labels, classes, MOST_ROWS, seed)
    rows, labels = rows[picked], labels[picked]
    squares = squared_distances(rows, rows)
    distance = median_distance(squares)
    if distance == 0:
        return 1.0
    measure = lambda_min if criterion == "lambda-min" or classes == 1 else delta_min
    tried = grid(distance)
    values = []
    for sigma in tried:
        deadline.check()
        values.append(measure(without_diagonal(np.exp(squares * (-0.5 / sigma**2)), labels)))
    return float(tried[int(np.argmax(values))])


def median_distance(squares: Floats) -> float:
    """The median distance of pairs of different rows; the mean where most are equal."""
    upper = np.sqrt(squares[np.triu_indices(len(squares), 1)])
    if not len(upper):
        return 0.0
    return float(np.median(upper)) or float(upper.mean())


def without_diagonal(values: Floats, labels: Codes) -> Floats:
    """C × C means of an n × n kernel matrix, pairs of a row with itself left out."""
    classes = int(labels.max()) + 1
    belongs = np.eye(classes)[labels]
    counts = belongs.sum(axis=0)
    totals = belongs.T @ values @ belongs
    pairs = np.outer(counts, counts)
    own = np.bincount(labels, values.diagonal(), classes)
    several = counts > 1
    totals[several, several] -= own[several]
    pairs[several, several] -= counts[several]
    return np.asarray(totals / pairs)


def sample(labels: Codes, classes: int, most: int, seed: int) -> Codes:
    """At most about ``most`` positions, rare classes whole and the others to equal numbers."""
    if len(labels) <= most:
        return np.arange(len(labels))
    rng = np.random.default_rng(seed)
    counts = np.bincount(labels, minlength=classes)
    left, each = most, 0
    for position, count in enumerate(np.sort(counts)):
        each = max(left // (classes - position), 2)
        if count > each:
            break
        left -= int(count)
    positions = []
    for k in range(classes):
        own = np.flatnonzero(labels == k)
        positions.append(own if len(own) <= each else rng.choice(own, each, replace=False))
    return np.sort(np.concatenate(positions))
