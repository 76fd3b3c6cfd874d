"""Charts written as SVG and PDF: the curves, their intervals and gaps, and the texts around them."""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from ctxexp.report import LabelledResults, charts, drawing
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
    places = [np.array(re.findall(r"([\d.]+),([\d.]+)", path), float) for path in paths]
    return [at for at in places if len(at) != 2 or round(at[1, 0] - at[0, 0]) != 30]


def first_chart(runs: list[LabelledResults]) -> charts.Chart:
    return charts.sweep_charts(runs)[0]


def test_a_run_s_curve_stands_at_its_values_under_what_it_shows(tmp_path: Path) -> None:
    run = results("bert", 5)
    root = tree(next(p for p in drawing.write_run_charts(run, tmp_path) if p.stem == "self_similarity"))
    for part in ("Self-similarity", "bert", "Definition 1", "layer (0 = input layer)", "5 layers of 16"):
        assert part in said(root), part
    panel = charts.run_panel(run, "self_similarity")
    lines = sorted(panel.lines, key=lambda line: line.thin)
    drawn = curves(root, "2.2") + curves(root, "1.32")
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
    root = tree(next(p for p in drawing.write_sweep_charts(runs, tmp_path) if p.stem == "m"))
    assert [len(places) for places in curves(root, "2.2")] == [2, 2, 1]
    bands = [e for e in root.iter(f"{NAME}path") if e.get("fill-opacity")]
    assert [e.get("d", "").count(",") for e in bands] == [4, 4]
    assert len(curves(root, "1.1")) == 1  # a whisker
    assert NASTY in said(root)


def test_a_run_has_its_leading_figure_as_wide_as_a_column_without_a_caption(tmp_path: Path) -> None:
    run = results("bert", 5)
    paths = {p.name: p for p in drawing.write_run_charts(run, tmp_path)}
    assert [name for name in paths if "column" in name] == ["self_similarity_column.svg", "self_similarity_column.pdf"]
    root = tree(paths["self_similarity_column.svg"])
    assert float(root.get("width", "").removesuffix("pt")) / 72 == pytest.approx(3.3)
    words = said(root)
    assert "layer (0 = input layer)" in words
    assert "raw, 95% interval" in words
    assert not [part for part in ("Definition 1", "bert of a test", "In bert") if part in words]
    written = paths["self_similarity_column.pdf"].read_bytes()
    (width,) = re.findall(rb"/MediaBox \[0 0 ([\d.]+) [\d.]+\]", written)
    assert float(width) / 72 == pytest.approx(3.3)
    places = [int(place) for place in re.findall(rb"(\d{10}) 00000 n", written)]
    assert [written[at:].startswith(b"%d 0 obj" % n) for n, at in enumerate(places, start=1)] == [True] * 6
    assert written[int(re.findall(rb"startxref\n(\d+)", written)[0]) :].startswith(b"xref")
    (stream,) = re.findall(rb"stream\n(.*)\nendstream", written, re.DOTALL)
    drawn = zlib.decompress(stream).decode("cp1252")
    shown = re.findall(r"\((.*)\) Tj", drawn)
    assert {"raw, 95% interval", "layer \\(0 = input layer\\)"} <= {*shown}
    strokes = re.findall(r"d (\S+ \S+ m .*l) [Sfb]$", drawn, re.MULTILINE)
    assert len(strokes) == sum(1 for _ in root.iter(f"{NAME}path"))  # the same lines


def test_curves_on_each_other_both_show() -> None:
    curve = np.array([0.5, 0.3, 0.2, 0.4])
    run, near, far = (
        results_with({"m/raw": values}, info=run_info(title="a")) for values in (curve, curve + 0.001, curve + 0.2)
    )
    chart = first_chart([("a", run), ("b", near), ("c", far), ("d", run)])
    assert [line.under for line in chart.panels[0].lines] == [2, 1, 0, 0]
    assert [line.under for line in chart.lines] == [0] * 4
    wide = replace(chart.panels[0], lines=chart.panels[0].lines[2:])
    assert [line.under for line in charts.lay_over(wide).lines] == [0, 0]
