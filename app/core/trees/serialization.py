"""A versatile tree as named arrays of plain numbers, for whoever keeps it."""

from collections.abc import Mapping

import numpy as np

from app.core.arrays import AnyArray
from app.core.prevalence.calibration import Scaling
from app.core.trees.column import TrainingColumn
from app.core.trees.model import VersatileTree
from app.core.trees.tree import Tree

Arrays = Mapping[str, AnyArray]


def to_arrays(model: VersatileTree) -> dict[str, AnyArray]:
    """All but the names: those of classes and attributes are text, and kept as such.

    Attribute a's training column is ``column_a`` with its classes ``labels_a``.
    """
    arrays: dict[str, AnyArray] = {
        **{f"tree_{name}": array for name, array in model.tree.arrays().items()},
        "counts": model.counts,
        "categorical": model.categorical,
        "missing": np.array([column.missing for column in model.columns], dtype=np.int64),
    }
    for a, column in enumerate(model.columns):
        arrays[f"column_{a}"] = column.values
        arrays[f"labels_{a}"] = column.labels
    if isinstance(model.calibration, Scaling):
        arrays["calibration_scale"] = model.calibration.scale
        arrays["calibration_bias"] = model.calibration.bias
        arrays["calibration_floor"] = np.array([model.calibration.floor])
        arrays["calibration_regularised"] = np.array([model.calibration.regularised])
    return arrays


def of_arrays(
    classes: tuple[str, ...], attributes: tuple[str, ...], arrays: Arrays
) -> VersatileTree:
    """The tree of ``to_arrays``."""
    tree = Tree(
        arrays["tree_feature"].astype(np.intp),
        arrays["tree_threshold"],
        arrays["tree_children_left"].astype(np.intp),
        arrays["tree_children_right"].astype(np.intp),
        arrays["tree_missing_go_to_left"],
    )
    columns = tuple(
        TrainingColumn(arrays[f"column_{a}"], arrays[f"labels_{a}"], len(classes), int(missing))
        for a, missing in enumerate(arrays["missing"])
    )
    calibration = None
    if "calibration_scale" in arrays:
        floor = float(arrays["calibration_floor"][0])
        scale, bias = arrays["calibration_scale"], arrays["calibration_bias"]
        regularised = bool(arrays["calibration_regularised"][0])
        calibration = Scaling("bcts", scale, bias, floor, regularised)
    counts, categorical = arrays["counts"], arrays["categorical"]
    return VersatileTree(classes, attributes, categorical, tree, columns, counts, calibration)
