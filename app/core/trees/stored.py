"""A versatile tree as named arrays and back: what is sorted stays sorted."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.trees.column import Column
from app.core.trees.model import VersatileTree
from app.core.trees.tree import Tree

TREE = "tree."


def to_arrays(model: VersatileTree) -> dict[str, NDArray[Any]]:
    """Its tree, node counts and training columns, end to end; in single precision where exact."""
    values = [column.values for column in model.columns]
    single = all(column.dtype == np.float32 for column in values)
    together = np.concatenate(values) if single else np.concatenate(values).astype(np.float64)
    return {
        **{f"{TREE}{name}": array for name, array in model.tree.arrays().items()},
        "counts": model.counts,
        "values": together,
        "labels": np.concatenate([column.labels for column in model.columns]),
        "sizes": np.array([[column.size, column.missing] for column in model.columns]),
        "categorical": model.categorical,
    }


def of_arrays(
    kept: Mapping[str, NDArray[Any]], classes: tuple[str, ...], attributes: tuple[str, ...]
) -> VersatileTree:
    """The tree that ``to_arrays`` took apart."""
    tree = {name.removeprefix(TREE): a for name, a in kept.items() if name.startswith(TREE)}
    codes = {name: tree[name].astype(np.intp) for name in ("feature", *CHILDREN)}
    columns, start = [], 0
    for size, missing in kept["sizes"].tolist():
        part = slice(start, start + size)
        columns.append(_column(kept["values"][part], kept["labels"][part], len(classes), missing))
        start += size
    return VersatileTree(
        classes,
        attributes,
        kept["categorical"],
        Tree(**{**tree, **codes}),
        tuple(columns),
        kept["counts"],
    )


CHILDREN = ("children_left", "children_right")


def _column(
    values: NDArray[np.floating], labels: NDArray[np.unsignedinteger], classes: int, missing: int
) -> Column:
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return Column(single if np.array_equal(single, values) else values, labels, classes, missing)
