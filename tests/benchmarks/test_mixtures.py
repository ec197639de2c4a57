import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks.charts import charts
from benchmarks.mixtures import __main__ as mixtures


def test_it_prints_and_writes_nothing_but_what_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mixtures, "selections", lambda *_: "")
    for words in ([], ["--picture", "curves.svg"]):
        monkeypatch.setattr(sys, "argv", ["mixtures", "--repeats", "1", *words])
        mixtures.main()
    assert [path.name for path in tmp_path.rglob("*")] == ["curves.svg"]
    plain, drawn = capsys.readouterr().out.split("# Adaptive mixtures of regressions\n")[1:]
    assert "curves.svg" not in plain
    assert "![Median error by rows](curves.svg)" in drawn
    ElementTree.parse(tmp_path / "curves.svg")


def test_gaps_are_left_out_of_a_logarithmic_chart() -> None:
    y = np.array([[[1.0, np.nan], [2.0, 3.0], [-1.0, 4.0]]])
    text = charts(["t"], ["a", "b"], [1, 10, 100], y, "n", logarithmic=True)
    lines = ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}polyline")
    first, second = [line.attrib["points"].split() for line in lines]
    across = [float(point.split(",")[0]) for point in first]
    assert across[1] - across[0] == pytest.approx(across[2] - across[1])
    assert len(second) == 2
