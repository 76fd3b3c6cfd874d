"""The figures of runs: one for each measure of a run, and of several runs one for each measure and an overview.

matplotlib's object interface only: nothing global is touched, nothing is left open, no display is needed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ctxexp.report import charts, wording
from ctxexp.report.findings import chart_finding, sweep_finding
from ctxexp.report.reference_curves import CAVEAT, NO_CONTEXT, SOURCE, control_lines, training_runs
from ctxexp.report.style import PAGE, Ink, Style, add_captions, colours, empty_figure, save_figure
from ctxexp.report.wording import LabelledResults
from ctxexp.results.results import main_key
from ctxexp.results.values import Key

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from ctxexp.results import Results

CONTROLS = 4  # lines below a figure on what it would show without context
COLUMN = 3.3  # inches (84 mm): of two-column pages


def run_figures(results: Results, folder: Path, *, published: bool = False) -> list[Path]:
    """Write a PNG for each measure of one run; the paths. A measure without a value is skipped."""
    paths: list[Path] = []
    for measure, task in results.measure_tasks():
        figure = run_figure(results, measure, task, published=published)
        if figure is not None:
            paths += save_figure(figure, folder, Key(measure, "", task).curve_name, ("png",))
    return paths


def sweep_figures(runs: Sequence[LabelledResults], folder: Path, *, published: bool = False) -> list[Path]:
    """Write the comparison of runs (chart label, results): overview.png, then one figure per measure, each as PNG and
    SVG; the paper's also as wide as a column of a page, as SVG and PDF."""
    all_charts = charts.sweep_charts(runs, all_published=published)
    if not all_charts:
        return []
    paths = save_figure(overview_figure(all_charts, runs), folder, "overview")
    for chart in all_charts:
        paths += save_figure(sweep_figure(chart, runs), folder, chart.name)
        if chart.name in charts.leading_charts([each.name for each in all_charts]):
            paths += save_figure(column_figure(chart), folder, f"{chart.name}_column", ("svg", "pdf"))
    return paths


def run_figure(results: Results, measure: str, task: str = "", *, published: bool = False) -> Figure | None:
    """One run's measure by layer: its main curve with its interval, raw and baseline thinner; None without a value."""
    ((label, _),) = wording.unique_labels([(results.info.title or "run", results)])
    colour = colours([label])[label]
    key = main_key(results, measure, task)
    if key is None:
        return None
    line = charts.curve_line(results, key, label=key.label(), colour=colour, marker=0)
    if line is None:
        return None
    figure = empty_figure(PAGE, 3.9)
    axes = figure.add_subplot()
    handles, names = [charts.draw_line(axes, line)], [line.label + (", 95% interval" if line.low is not None else "")]
    beside: dict[Key, Style] = {
        Key(measure, "raw", task): {"linestyle": "-", "color": Ink.TEXT, "marker": "^"},
        **{Key(measure, end, task): {"linestyle": ":", "color": colour, "marker": ""} for end in ("lowest", "highest")},
        Key(measure, "baseline", task): {"linestyle": (0, (4, 2)), "color": Ink.FAINT, "marker": "v"},
    }
    for name, marker in zip(wording.other_baselines([results], measure, task), "sD*Xd", strict=False):
        style: Style = {"linestyle": (0, (1, 1)), "marker": marker}
        beside[Key(measure, key.statistic, task, baseline=name)] = {**style, "color": colour}
        beside[Key(measure, "baseline", task, baseline=name)] = {**style, "color": Ink.FAINT}
    if key.statistic == "raw":  # medians are of raw scores: beside an adjusted mean they would read as adjusted medians
        beside[Key(measure, "median", task)] = {"linestyle": (0, (1, 2)), "color": Ink.TEXT, "marker": "."}
    for other, style in beside.items():
        y = charts.finite_curve(estimates.value if (estimates := results.by_key.get(other)) else None)
        if y is not None and other != key:
            handles += axes.plot(line.x, y[line.x], linewidth=1.1, markersize=3.5, zorder=2, **style)
            names.append(other.label(wording.level_word([results], measure)))
    model = charts.paper_model_name(label, results, all_published=published)
    paper_curve = charts.published_curve(model, results, key)
    if paper_curve is not None:
        handles.append(
            charts.draw_line(axes, charts.Line("published", label, paper_curve, None, None, colour, 0, published=True))
        )
        names.append(f"published, {key.label()}")
    if key.statistic == "adjusted" and (at := charts.reference_line(measure, [results])) is not None:
        charts.draw_threshold(axes, at)
    if key.statistic == "adjusted":
        charts.draw_chance(axes, "chance of adjusted")
    y_label, direction = wording.axis_label(measure, "", [results], task), wording.direction([results], measure)
    charts.finish_axes(axes, y_label, direction, log=charts.scale([results], measure, [line]) == charts.LOG)
    thin = charts.thin_intervals([(axes, [line])])
    count = wording.group_count_phrase(results, measure, task)
    facts = [results.info.definition(measure, task), *wording.shared_facts([(label, results)], measure)]
    facts.append(f"n = {count}" if count else "")
    finding = results.finding(key)
    add_captions(
        figure,
        f"{wording.full_title(measure, task, [results], variant=False)}: {label}",
        facts,
        handles,
        names,
        [*thin, *finding.doubts, *_notes([(label, results)], paper_curve is not None, [measure])],
        finding=finding.sentence(label),
    )
    return figure


def sweep_figure(chart: charts.Chart, runs: Sequence[LabelledResults] = ()) -> Figure:
    """One measure across models, a panel for each of its definitions."""
    columns = min(len(chart.panels), 2)
    rows = -(-len(chart.panels) // columns)
    figure = empty_figure(PAGE, 3.5 * rows)
    axes_and_panels = []
    for position, panel in enumerate(chart.panels, start=1):
        axes = figure.add_subplot(rows, columns, position)
        charts.draw_panel(axes, panel)
        axes_and_panels.append((axes, panel))
        if len(chart.panels) > 1:
            heading = "\n".join(textwrap.wrap(panel.definition, 42))
            axes.set_title(heading, loc="left", fontsize=9.5, color=Ink.TEXT, parse_math=False)
    facts = wording.shared_facts(runs, chart.panels[0].measure)
    if len(chart.panels) == 1:
        facts.insert(0, chart.panels[0].definition)
    measures = [panel.measure for panel in chart.panels]
    charts.share_scales(axes_and_panels, columns)
    said = [chart_finding(runs, panel.key) for panel in chart.panels]
    each = [f"{which} panel: {one}" for which, one in zip(("First", "Second", "Third"), said, strict=False) if one]
    finding = said[0] if len(set(said)) == 1 else " ".join(each)
    _dress_sweep(figure, chart.title, facts, axes_and_panels, runs, measures, finding=finding)
    return figure


def column_figure(chart: charts.Chart) -> Figure:
    """The first definition of a measure across models, to be set in a column of a page: what its title and facts would
    say, a caption does."""
    figure = empty_figure(COLUMN, 2.5)
    axes = figure.add_subplot()
    charts.draw_panel(axes, replace(chart.panels[0], direction=""))
    axes.tick_params(labelsize=7)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_fontsize(8)
    handles, names = _legend(chart.panels[0].lines)
    key = figure.legend(
        handles, [str(i) for i in range(len(names))], loc="outside lower center", ncols=3, frameon=False
    )
    for text, name in zip(key.get_texts(), names, strict=True):
        text.set(parse_math=False, text=name, fontsize=7)
    return figure


def overview_figure(all_charts: Sequence[charts.Chart], runs: Sequence[LabelledResults] = ()) -> Figure:
    """The paper's figures on one picture, the first definition of each."""
    names = charts.leading_charts([chart.name for chart in all_charts])
    headline_charts = [chart for chart in all_charts if chart.name in names]
    columns = min(len(headline_charts), 2)
    rows = -(-len(headline_charts) // columns)
    figure = empty_figure(PAGE, 3.1 * rows)
    axes_and_panels = []
    for position, chart in enumerate(headline_charts, start=1):
        axes = figure.add_subplot(rows, columns, position)
        charts.draw_panel(axes, chart.panels[0])
        axes_and_panels.append((axes, chart.panels[0]))
        style: Style = {"transform": axes.transAxes, "va": "bottom", "parse_math": False}
        under = textwrap.wrap(chart.panels[0].definition.replace("Definition ", "Definition\u00a0"), 38)
        pad = 8 + 12 * len(under)
        axes.set_title(
            chart.title, loc="left", fontsize=10, fontweight="bold", color=Ink.TEXT, pad=pad, parse_math=False
        )
        axes.text(0, 1.025, "\n".join(under), fontsize=9, color=Ink.FAINT, **style)
    asks = any(chart.name in charts.HEADLINES for chart in headline_charts)
    heading = "How contextual are word vectors, layer by layer?" if asks else "What was measured, layer by layer"
    charts.share_scales(axes_and_panels, columns)
    _dress_sweep(figure, heading, wording.shared_facts(runs), axes_and_panels, runs, finding=sweep_finding(runs))
    return figure


def _notes(runs: Sequence[LabelledResults], cite: bool, measures: Sequence[str] = ()) -> list[str]:
    """Below everything: what each label stands for, what these measures give without context, and where published
    curves come from."""
    source = f"Published curves (bert-base-cased, gpt2, the original ELMo): {SOURCE}; {CAVEAT}."
    control_sentences = control_lines(runs, measures, most=CONTROLS)
    controls = [f"{line}." for line in control_sentences[:CONTROLS]]
    if len(control_sentences) > CONTROLS:
        controls[-1] = f"{controls[-1][:-1]}; {control_sentences[-1]}."
    if controls:
        controls[0] = f"{NO_CONTEXT}: {controls[0]}"
    seeds = [f"{seed_sentence}."] if (seed_sentence := training_runs(runs, measures)) else []
    return wording.encoder_lines(runs) + controls + seeds + [source] * cite


def _legend(lines: Sequence[charts.Line]) -> tuple[list[Line2D], list[str]]:
    """An entry a measured line, and one for all published ones: their colours and markers are their models'."""
    from matplotlib.lines import Line2D

    own_lines = [line for line in lines if not line.published]
    handles, names = (
        [Line2D([], [], **charts.line_style(line)) for line in own_lines],
        [line.label for line in own_lines],
    )
    if len(own_lines) < len(lines):
        handles.append(Line2D([], [], color=Ink.FAINT, linestyle=(0, (4, 2)), linewidth=1.2))
        names.append("published")
    return handles, names


def _dress_sweep(
    figure: Figure,
    title: str,
    facts: Sequence[str],
    drawn: Sequence[tuple[Axes, charts.Panel]],
    runs: Sequence[LabelledResults],
    measures: Sequence[str] = (),
    *,
    finding: str,
) -> None:
    lines = charts.Chart("", "", tuple(panel for _, panel in drawn)).lines
    cite = any(line.published for line in lines)
    notes = charts.thin_intervals([(axes, panel.lines) for axes, panel in drawn]) + _notes(runs, cite, measures)
    add_captions(figure, title, facts, *_legend(lines), notes, finding=finding)
