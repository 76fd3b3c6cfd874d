"""Charts written as SVG: the curves, their intervals and gaps, and the texts around them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from ctxexp.report import charts, svg
from tests.sample_results import results, results_with, run_info

NAME = "{http://www.w3.org/2000/svg}"
NASTY = "bert <&'\"> $x$ é漢"


def tree(path: Path) -> ElementTree.Element:
    return ElementTree.fromstring(path.read_text(encoding="utf-8"))


def said(root: ElementTree.Element) -> str:
    return " ".join(element.text or "" for element in root.iter(f"{NAME}text"))


def curves(root: ElementTree.Element, width: str) -> list[np.ndarray]:
    """The places (n, 2) of the curves that are drawn in this width, the legend's left out."""
    paths = [e.get("d", "") for e in root.iter(f"{NAME}path") if e.get("stroke-width") == width]
    return [np.array(re.findall(r"([\d.]+),([\d.]+)", path), float) for path in paths if "h30" not in path]


def test_a_run_s_curve_stands_at_its_values_under_what_it_shows(tmp_path: Path) -> None:
    run = results("bert", 5)
    root = tree(next(p for p in svg.write_run_charts(run, tmp_path) if p.stem == "self_similarity"))
    for part in ("Self-similarity", "bert", "Definition 1", "layer (0 = input layer)", "5 layers of 16"):
        assert part in said(root), part
    panel = charts.run_panel(run, "self_similarity")
    assert panel is not None
    lines = sorted(panel.lines, key=lambda line: line.thin)
    drawn = curves(root, "2.2") + curves(root, "1.3")
    assert len(lines) == len(drawn) > 1
    scales = []
    for places, line in zip(drawn, lines, strict=True):
        assert np.corrcoef(places[:, 1], line.y)[0, 1] == pytest.approx(-1, abs=1e-3)  # up is more
        assert np.ptp(np.diff(places[:, 0])) < 0.2
        scales.append(np.ptp(places[:, 1]) / np.ptp(line.y))
    assert scales == pytest.approx([scales[0]] * len(scales), rel=0.02)  # on one axis


def test_gaps_stay_gaps_and_any_label_is_text(tmp_path: Path) -> None:
    curve = np.array([0.5, 0.4, np.nan, 0.3, 0.2, np.nan, 0.1])
    own = {"m/raw": curve, "m/raw_ci_low": curve - 0.1, "m/raw_ci_high": curve + 0.1}
    runs = [(NASTY, results_with(own, info=run_info(title=NASTY, measures={"m": {"definition": NASTY}})))]
    root = tree(next(p for p in svg.write_sweep_charts(runs, tmp_path) if p.stem == "m"))
    assert [len(places) for places in curves(root, "2.2")] == [2, 2, 1]
    bands = [e for e in root.iter(f"{NAME}path") if e.get("fill-opacity")]
    assert [e.get("d", "").count(",") for e in bands] == [4, 4, 2]
    assert [e.get("stroke") == "none" for e in bands] == [True, True, False]  # the last is a whisker
    assert NASTY in said(root)
