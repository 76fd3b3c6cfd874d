"""The figures of runs: one for each measure of a run, and of several runs one for each measure and an overview; and
the texts around them.

matplotlib's object interface only: nothing global is touched, nothing is left open, no display is needed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ctxexp.report import charts, wording
from ctxexp.report.findings import chart_finding, sweep_finding
from ctxexp.report.reference_curves import CAVEAT, NO_CONTEXT, SOURCE, control_lines, training_runs
from ctxexp.report.style import PAGE, Ink, Style, add_captions, empty_figure, save_figure
from ctxexp.report.wording import LabelledResults
from ctxexp.results.results import main_key

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from ctxexp.results import Results

CONTROLS = 4  # lines below a figure on what it would show without context
COLUMN = 3.3  # inches (84 mm): of two-column pages


@dataclass(frozen=True)
class Caption:
    """The texts around a figure."""

    title: str
    finding: str
    facts: Sequence[str]
    notes: Sequence[str]


def sweep_figures(runs: Sequence[LabelledResults], folder: Path, *, published: bool = False) -> list[Path]:
    """Write the comparison of runs (chart label, results) for print: overview.png, then a PNG per measure; the paper's
    also as wide as a column of a page, as SVG and PDF."""
    all_charts = charts.sweep_charts(runs, all_published=published)
    if not all_charts:
        return []
    paths = save_figure(overview_figure(all_charts, runs), folder, "overview", ("png",))
    for chart in all_charts:
        paths += save_figure(sweep_figure(chart, runs), folder, chart.name, ("png",))
        if chart.name in charts.leading_charts([each.name for each in all_charts]):
            paths += save_figure(column_figure(chart), folder, f"{chart.name}_column", ("svg", "pdf"))
    return paths


def run_figure(results: Results, measure: str, task: str = "", *, published: bool = False) -> Figure | None:
    """One run's measure by layer: its main curve with its interval, raw and baseline thinner; None without a value."""
    panel = charts.run_panel(results, measure, task, all_published=published)
    if panel is None:
        return None
    figure = empty_figure(PAGE, 3.9)
    axes = figure.add_subplot()
    charts.draw_panel(axes, panel)
    _dress(figure, run_caption(results, panel), [(axes, panel)], *_legend(panel.lines))
    return figure


def run_caption(results: Results, panel: charts.Panel) -> Caption:
    """The texts around a run's figure of a measure."""
    measure, task = panel.measure, panel.task
    ((label, _),) = wording.unique_labels([(results.info.title or "run", results)])
    key = main_key(results, measure, task)
    finding = results.finding(key) if key else None
    count = wording.group_count_phrase(results, measure, task)
    facts = [panel.definition, *wording.shared_facts([(label, results)], measure), f"n = {count}" if count else ""]
    notes = _notes([(label, results)], any(line.published for line in panel.lines), [measure])
    return Caption(
        title=f"{wording.full_title(measure, task, [results], variant=False)}: {label}",
        finding=finding.sentence(label) if finding else "",
        facts=facts,
        notes=[*(finding.doubts if finding else ()), *notes],
    )


def sweep_caption(chart: charts.Chart, runs: Sequence[LabelledResults]) -> Caption:
    """The texts around a sweep's figure of a measure."""
    facts = wording.shared_facts(runs, chart.panels[0].measure)
    if len(chart.panels) == 1:
        facts.insert(0, chart.panels[0].definition)
    said = [chart_finding(runs, panel.key) for panel in chart.panels]
    each = [f"{which} panel: {one}" for which, one in zip(("First", "Second", "Third"), said, strict=False) if one]
    notes = _notes(runs, any(line.published for line in chart.lines), [panel.measure for panel in chart.panels])
    return Caption(chart.title, said[0] if len(set(said)) == 1 else " ".join(each), facts, notes)


def overview_caption(panels: Sequence[charts.Chart], runs: Sequence[LabelledResults]) -> Caption:
    """The texts around the charts that come first."""
    asks = any(chart.name in charts.HEADLINES for chart in panels)
    heading = "How contextual are word vectors, layer by layer?" if asks else "What was measured, layer by layer"
    cite = any(line.published for chart in panels for line in chart.panels[0].lines)
    return Caption(heading, sweep_finding(runs), wording.shared_facts(runs), _notes(runs, cite))


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
    charts.share_scales(axes_and_panels, columns)
    _dress(figure, sweep_caption(chart, runs), axes_and_panels, *_legend(chart.lines))
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
    headline_charts = charts.overview(all_charts)
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
    charts.share_scales(axes_and_panels, columns)
    lines = charts.Chart("", "", tuple(panel for _, panel in axes_and_panels)).lines
    _dress(figure, overview_caption(headline_charts, runs), axes_and_panels, *_legend(lines))
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


def _dress(
    figure: Figure,
    caption: Caption,
    drawn: Sequence[tuple[Axes, charts.Panel]],
    handles: Sequence[Line2D],
    names: Sequence[str],
) -> None:
    thin = charts.thin_intervals([(axes, panel.lines) for axes, panel in drawn])
    notes = [*thin, *caption.notes]
    add_captions(figure, caption.title, caption.facts, handles, names, notes, finding=caption.finding)
