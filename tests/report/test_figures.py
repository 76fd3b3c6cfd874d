from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ctxexp import Results
from ctxexp.report import charts, colours, reference_curves, save_figure, wording
from ctxexp.report.captions import overview, run_figure, sweep_caption, sweep_figures
from ctxexp.report.drawing import write_run_charts, write_sweep_charts
from ctxexp.report.plots import chart_figure
from ctxexp.results import Key
from tests.sample_results import (
    METRICS,
    VARIANCE,
    figure_text,
    measure_infos,
    results,
    results_with,
    run_info,
    with_value,
)
from tests.shipped import MaxExplainableVariance


def drawn(axes: Any) -> list[np.ndarray]:
    """The y values of the lines drawn over layers, rules across the axes left out."""
    return [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines if not is_rule(axes, line)]


def run_plot(run: Results, measure: str) -> Any:
    """The figure of a run's measure."""
    figure = run_figure(run, measure)
    return chart_figure(*figure)


def chart_plot(chart: charts.Chart, runs: Any = ()) -> Any:
    """The figure of a sweep's chart."""
    return chart_figure(chart, sweep_caption(chart, runs))


def overview_plot(every: Any, runs: Any) -> Any:
    return chart_figure(*overview(every, runs))


def is_rule(axes: Any, line: Any) -> bool:
    return line.get_transform() == axes.get_yaxis_transform()


def test_a_sweep_draws_the_papers_four_figures_and_an_overview() -> None:
    runs = [("bert", results("bert", 5)), ("gpt2", results("gpt2", 5, seed=1)), ("elmo", results("elmo", 3, seed=2))]
    drawn_charts = charts.sweep_charts(runs)
    assert {chart.name for chart in drawn_charts} == {*charts.HEADLINES[1:], "word_norm"}
    for chart in drawn_charts:
        figure = chart_plot(chart, runs)
        assert len(figure.axes) == len(chart.panels)
        for axes, panel in zip(figure.axes, chart.panels, strict=True):
            key = f"{panel.measure}/{'mean_cosine' if panel.measure == 'anisotropy' else panel.statistic}"
            for (_, run), line in zip(runs, drawn(axes), strict=True):
                np.testing.assert_array_equal(line, run.by_name[key])
            lines = [line for line in axes.lines if not is_rule(axes, line)]
            assert [line.get_color() for line in lines] == list(colours(["bert", "gpt2", "elmo"]).values())
    overview = overview_plot(drawn_charts, runs)
    assert len(overview.axes) == 4
    assert [text.get_text() for text in overview.legends[0].get_texts()] == ["bert", "gpt2", "elmo"]


def test_size_matched_levels_are_named_and_have_no_published_curve() -> None:
    """Published curves are adjusted by the paper's one level: against another they would be another measure."""
    (by_size,) = measure_infos("size-matched", **{f"{VARIANCE}_released": METRICS[f"{VARIANCE}_released"]}).values()
    usual = replace(by_size, level="drawn")
    for about, published in ((by_size, 0), (usual, 1)):
        measures = {**measure_infos(**METRICS), f"{VARIANCE}_released": about}
        run = results("bert", 13, measures=measures)
        panel = charts.sweep_panel([("bert", run)], f"{VARIANCE}_released", "", "adjusted", all_published=True)
        assert sum(line.published for line in panel.lines) == published
        raw = charts.sweep_panel([("bert", run)], f"{VARIANCE}_released", "", "raw", all_published=True)
        assert sum(line.published for line in raw.lines) == 1
        own = "random groups of each word's own size"
        said = f"chance: {own}" if about is by_size else "chance: 1,000 occurrences, one per sentence"
        assert said in wording.shared_facts([("bert", run)], f"{VARIANCE}_released")
        assert (f"one per sentence or {own}" in "; ".join(wording.shared_facts([("bert", run)]))) is (about is by_size)
        assert panel.definition.endswith("; chance at each word's own size") is (about is by_size)


def test_undefined_layers_are_gaps_in_line_and_band() -> None:
    run = with_value(results("bert", 5), "self_similarity", "raw", 2, np.nan)
    run = with_value(run, "self_similarity", "raw", 4, np.inf)
    figure = run_plot(run, "self_similarity")
    axes = figure.axes[0]
    assert np.isnan(drawn(axes)[0]).tolist() == [False, False, True, False, True]
    polygons = axes.collections[0].get_paths()
    assert [(p.vertices[:, 0].min(), p.vertices[:, 0].max()) for p in polygons] == [(0, 1), (3, 3)]
    low, high = (run.by_name[f"self_similarity/raw_ci_{edge}"] for edge in ("low", "high"))
    y = polygons[0].vertices[:, 1]
    assert (y.min(), y.max()) == (low[:2].min(), high[:2].max())
    whiskers = axes.collections[1].get_segments()  # layer 3 has no neighbour: a band would be invisible
    np.testing.assert_array_equal(whiskers, [[[3, low[3]], [3, high[3]]]])


def test_what_is_missing_or_undefined_is_skipped_quietly(tmp_path: Path) -> None:
    run = results("bert", 3)
    frame = run.frame[~run.frame["measure"].str.startswith("intra")]
    run = replace(run, frame=frame.assign(value=frame["value"].where(frame["measure"] != "word_norm")))
    names = {p.stem for p in write_run_charts(run, tmp_path)}
    assert names == {"anisotropy", "self_similarity", "self_similarity_column", VARIANCE, f"{VARIANCE}_released"}
    for runs in ([("empty", Results())], []):
        assert write_sweep_charts(runs, tmp_path / "none") == sweep_figures(runs) == []
    assert not (tmp_path / "none").exists()
    lone = [("bert", run), ("empty", Results())]
    assert [line.label for line in charts.sweep_charts(lone)[0].lines] == ["bert"]


def test_a_panel_never_mixes_statistics() -> None:
    run, other = results("bert", 3), results("gpt2", 3)
    frame = other.frame  # of a run without a chance level
    other = replace(other, frame=frame[(frame["measure"] != "self_similarity") | (frame["statistic"] != "raw")])
    (chart,) = (c for c in charts.sweep_charts([("gpt2", other), ("bert", run)]) if c.name == "self_similarity")
    assert [(p.statistic, [line.label for line in p.lines]) for p in chart.panels] == [("adjusted", ["gpt2", "bert"])]


def test_published_curves_lie_beside_published_weights_or_where_asked() -> None:
    def overlays(**options: Any) -> dict[str, np.ndarray]:
        panels = (panel for chart in charts.sweep_charts(runs, **options) for panel in chart.panels)
        return {f"{p.measure}/{line.label}": line.y for p in panels for line in p.lines if line.published}

    runs = [("bert", results("bert", 5)), ("llama", results("llama", 5))]
    assert overlays() == {}
    asked = overlays(all_published=True)
    assert {key.split("/")[1] for key in asked} == {"bert, published"}
    np.testing.assert_array_equal(
        asked["self_similarity/bert, published"],
        reference_curves.published_curves("bert")[Key("self_similarity", "raw")],
    )
    assert f"{VARIANCE}/bert, published" not in asked  # released were only the released code's ratios
    assert f"{VARIANCE}_released/bert, published" in asked
    runs = [("gpt2", results("gpt2", 13, weights="published"))]
    assert "anisotropy/gpt2, published" in overlays()
    (chart, *_) = charts.sweep_charts(runs)
    figure = chart_plot(chart, runs)
    measured, published = (line for line in figure.axes[0].lines if not is_rule(figure.axes[0], line))
    assert published.get_color() == measured.get_color()
    assert published.is_dashed()
    assert "Ethayarajh 2019" in figure_text(figure)
    single = run_plot(runs[0][1], "anisotropy")
    assert "Ethayarajh 2019" in figure_text(single)


@pytest.mark.parametrize("label", ["$x_1$ & <b>", "_hidden", "模型 🙂", "two\nlines", "x" * 150])
def test_any_label_is_drawn_as_it_is(label: str, tmp_path: Path) -> None:
    run = results(label, 3, corpus=label, baseline=label)
    assert run_plot(run, "self_similarity") is not None
    (chart, *_) = charts.sweep_charts([(label, run)])
    figure = chart_plot(chart, [(label, run)])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [" ".join(label.split())]
    save_figure(figure, tmp_path, label)


def test_nothing_overlaps_or_leaves_the_page() -> None:
    runs = [(f"a model with a long name, number {i}", results("bert", 13, seed=i)) for i in range(7)]
    for figure in (
        overview_plot(charts.sweep_charts(runs), runs),
        *(chart_plot(chart, runs) for chart in charts.sweep_charts(runs)),
    ):
        figure.draw_without_rendering()
        page = figure.bbox
        legend = figure.legends[0].get_window_extent()
        boxes = [axes.get_tightbbox() for axes in figure.axes] + [legend]
        boxes += [text.get_window_extent() for text in figure.texts if text.get_text()]
        for i, box in enumerate(boxes):
            assert box.x0 >= page.x0
            assert box.x1 <= page.x1
            assert box.y0 >= page.y0
            assert box.y1 <= page.y1
            for other in boxes[:i]:
                assert not box.overlaps(other) or min(box.y1, other.y1) - max(box.y0, other.y0) < 1


def test_plugins_measures_are_drawn_with_safe_file_names(tmp_path: Path) -> None:
    theirs = {"definition": "theirs", "unit": "bits"}
    made = results_with(
        {"theirs/score": np.arange(3.0)}, info=run_info(title="bert", measures={"../their measure": theirs})
    )
    run = replace(made, frame=made.frame.assign(measure="../their measure"))
    figure = run_plot(run, "../their measure")
    assert figure.axes[0].get_ylabel() == "bits"
    assert "theirs" in figure_text(figure)
    paths = [*write_run_charts(run, tmp_path), *write_sweep_charts([("bert", run)], tmp_path)]
    assert {p.parent for p in paths} == {tmp_path}
    assert {"their_measure.svg", "their_measure_column.pdf"} <= {p.name for p in paths}


def test_a_misleading_label_gets_no_published_curve() -> None:
    """Published is the released code's estimator: under any label that one, and under its own label no other."""
    released, centred = (MaxExplainableVariance(definition=d) for d in ("released", "centred"))
    for measure, metric, known in (("mine", released, True), (f"{VARIANCE}_released", centred, False)):
        info = results("bert", 13, measures=measure_infos(**{measure: metric})).info
        run = results_with({f"{measure}/adjusted": np.zeros(13)}, info=info)
        (chart,) = charts.sweep_charts([("bert", run)], all_published=True)
        assert chart.name == VARIANCE
        assert any(line.published for line in chart.lines) is known
        assert chart.panels[0].definition == metric.definition
