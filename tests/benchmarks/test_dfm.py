from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from benchmarks.charts import charts
from benchmarks.dfm.__main__ import claims
from benchmarks.dfm.cytometry import removals
from benchmarks.dfm.gaussians import DIMENSIONS, NOISES, SHARES, _one
from benchmarks.dfm.methods import METHODS


def test_soft_random_features_withstand_a_far_class() -> None:
    found = _one(np.random.default_rng(1), 3, 600)
    assert found.shape == (len(NOISES), len(SHARES), len(METHODS))
    far = found[1, -1]
    assert far[METHODS.index("soft rffm")] < 0.06
    assert far[METHODS.index("rffm")] > 0.1
    assert found[:, 0].max() < 0.15


def test_every_claim_is_judged_and_drawn() -> None:
    rng = np.random.default_rng(2)
    shape = (len(NOISES), len(SHARES), len(DIMENSIONS), 2, len(METHODS))
    found = rng.random(shape)
    assert {line[2] for line in claims(found)} <= {"yes", "no"}
    text = charts(NOISES, METHODS, SHARES, found.mean(axis=(2, 3)), "share")
    lines = ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}polyline")
    assert len(list(lines)) == len(NOISES) * len(METHODS)


def test_cells_of_a_missing_type(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    names = ["Stanford/W2_1", "Stanford/W2_4", "Yale/FTV_1", "Yale/FTV_7"]
    labels = rng.integers(1, 4, 2400)
    centres = np.array([[0.0, 0], [6, 0], [0, 6]])
    np.savez(
        tmp_path / "hipc_tcell.npz",
        X=rng.normal(centres[labels - 1], 1.0).astype(np.float32),
        target=labels.astype(np.uint8),
        sample=np.repeat(np.arange(4), 600).astype(np.uint8),
        sample_names=np.array(names),
        classes=np.array(["", "a", "b", "c"]),
    )
    found = removals(tmp_path)
    assert found[0].name == "none"
    assert found[0].errors.shape == (4, len(METHODS))
    assert found[0].errors.mean() < 0.06
    soft = np.mean([removal.errors[:, METHODS.index("soft rffm")] for removal in found[1:]])
    hard = np.mean([removal.errors[:, METHODS.index("rffm")] for removal in found[1:]])
    assert soft < hard
