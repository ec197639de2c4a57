"""Five normal classes and three kinds of noise (feature matching, section 4.2 and figure 1)."""

from dataclasses import dataclass

import numpy as np

from app.core.arrays import Codes, Floats
from benchmarks.dfm.methods import METHODS, Source

CLASSES = 5
REACH = 4.0
"""Centres are uniform in a cube of this half-width."""
NOISES = ("background", "a new class far away", "a new class among the others")
SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
DIMENSIONS = (2, 4, 6, 8, 10)


@dataclass(frozen=True)
class Normal:
    """A normal class: centre, and a root of its covariance."""

    centre: Floats
    root: Floats

    @classmethod
    def drawn(cls, rng: np.random.Generator, centre: Floats) -> "Normal":
        """With standard deviations of 0.5 to 1.5 along random directions."""
        width = len(centre)
        directions = np.linalg.qr(rng.normal(size=(width, width)))[0]
        return cls(centre, directions * rng.uniform(0.5, 1.5, width))

    def rows(self, rng: np.random.Generator, count: int) -> Floats:
        """Rows of it."""
        drawn = rng.standard_normal((count, len(self.centre))) @ self.root.T
        return np.asarray(self.centre + drawn)


def errors(points: int, repetitions: int, seed: int) -> Floats:
    """‖â − a‖₂ by noise, share of noise, dimension, repetition and method."""
    shape = (len(NOISES), len(SHARES), len(DIMENSIONS), repetitions, len(METHODS))
    results = np.empty(shape)
    for j, width in enumerate(DIMENSIONS):
        for r in range(repetitions):
            results[:, :, j, r] = _one(np.random.default_rng([seed, width, r]), width, points)
    return results


def _one(rng: np.random.Generator, width: int, points: int) -> Floats:
    """By noise, share of noise and method."""
    centres = rng.uniform(-REACH, REACH, (CLASSES, width))
    classes = [Normal.drawn(rng, centre) for centre in centres]
    labels = rng.integers(0, CLASSES, points)
    rows = _rows(rng, classes, labels)
    source = Source.of(rows, labels)
    away = rng.normal(size=width)
    far = Normal.drawn(rng, 5 * REACH * away / np.linalg.norm(away))
    near = Normal.drawn(rng, rng.uniform(-REACH, REACH, width))
    shares = rng.dirichlet(np.ones(CLASSES))
    results = np.empty((len(NOISES), len(SHARES), len(METHODS)))
    for e, noise in enumerate(SHARES):
        count = round(points * noise / (1 - noise))
        for k, kind in enumerate(NOISES):
            clean = _rows(rng, classes, rng.choice(CLASSES, points, p=shares))
            if kind == NOISES[0]:
                strange = rng.uniform(rows.min(axis=0), rows.max(axis=0), (count, width))
            else:
                strange = (far if kind == NOISES[1] else near).rows(rng, count)
            answers = source.estimates(np.concatenate([clean, strange]))
            truth = (1 - noise) * shares
            results[k, e] = [np.linalg.norm(answers[m] - truth) for m in METHODS]
    return results


def _rows(rng: np.random.Generator, classes: list[Normal], labels: Codes) -> Floats:
    rows = np.empty((len(labels), len(classes[0].centre)))
    for k, normal in enumerate(classes):
        own = labels == k
        rows[own] = normal.rows(rng, int(own.sum()))
    return rows
