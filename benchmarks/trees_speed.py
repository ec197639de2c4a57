"""What adapting costs, beside scikit-learn's own predict on the same rows and one sort of each.

A tree of depth 12 over 20 attributes, a batch of a million rows: shifted linearly, by a monotone
map, or not at all, by thirds of the attributes. Everything is timed in one run, on one core.
"""

import argparse
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from app.core.trees.adaptation import adaptation, predictions, predictions_at
from app.core.trees.options import TreeOptions
from app.training.trees import TreeTraining, grow
from benchmarks.report import heading, table

DEPTH, WIDTH = 12, 20
NAMES = tuple(f"x{a}" for a in range(WIDTH))


def draw(rng: np.random.Generator, rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
    features = rng.normal(size=(rows, WIDTH))
    noise = rng.normal(size=rows)
    labels = (features[:, :6].sum(axis=1) + features[:, 6] * features[:, 7] + noise > 0).astype(int)
    return features, labels


def shifted(features: NDArray[Any]) -> NDArray[Any]:
    rows = features.copy()
    rows[:, 0::3] = 1.8 * rows[:, 0::3] + 32
    rows[:, 1::3] = np.exp(rows[:, 1::3])
    return rows


def timed(work: Callable[[], object], repeats: int) -> list[float]:
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--training-rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    features, labels = draw(rng, asked.training_rows)
    model = grow(TreeTraining(features, labels, ("a", "b"), NAMES, (), DEPTH, 5))
    peer = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=5, random_state=0)
    peer.fit(features, labels)
    batch = shifted(draw(rng, asked.rows)[0])
    found = adaptation(model, batch, TreeOptions())

    def adapt_and_predict() -> object:
        adapted = adaptation(model, batch, TreeOptions())
        return predictions_at(model, adapted.leaves, None)

    works: dict[str, Callable[[], object]] = {
        "scikit-learn's predict": lambda: peer.predict(batch),
        "one sort per attribute": lambda: [np.sort(batch[:, a]) for a in range(WIDTH)],
        "leaves of this tree": lambda: model.tree.leaves(batch),
        "adapting and predicting": adapt_and_predict,
        "predicting further rows": lambda: predictions(model, found.thresholds, None, batch),
    }
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(asked.repeats):
        for name, work in works.items():
            seconds[name] += timed(work, 1)
    print("# Adapting a tree to a million rows\n")
    print(heading("trees_speed"))
    print(f"{asked.rows} rows × {WIDTH}, depth {model.tree.depth}, {asked.training_rows} training")
    print(f"rows, {len(found.moved)} attributes moved; seconds, {asked.repeats} repeats.\n")
    rows = [
        [name, f"{np.median(times):.3f}", f"{min(times):.3f}", f"{max(times):.3f}"]
        for name, times in seconds.items()
    ]
    print(table(["what", "median", "least", "most"], rows))
    base = np.array(seconds["scikit-learn's predict"]) + seconds["one sort per attribute"]
    ratios = np.array(seconds["adapting and predicting"]) / base
    print(f"Adapting and predicting over predict and sorts: {np.median(ratios):.2f} ", end="")
    print(f"({ratios.min():.2f} to {ratios.max():.2f}).")


if __name__ == "__main__":
    main()
