"""The figures of a run, one for each measure, and of several, an overview first: their charts, each with the texts that
stand around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report import charts, wording
from ctxexp.report.findings import chart_finding, sweep_finding
from ctxexp.report.reference_curves import CAVEAT, NO_CONTEXT, SOURCE, control_lines, training_runs
from ctxexp.report.wording import LabelledResults
from ctxexp.results.results import main_key
from ctxexp.results.values import Key

if TYPE_CHECKING:
    from ctxexp.results import Results

CONTROLS = 4  # lines below a figure on what it would show without context
PANEL_POINTS, LINE_POINTS = 190, 2  # about the height of a panel's axes, and the width of its lines


@dataclass(frozen=True)
class Caption:
    """The texts around a figure."""

    title: str
    finding: str
    facts: Sequence[str]
    notes: Sequence[str]


Figure = tuple[charts.Chart, Caption]


def run_figures(results: Results, *, published: bool = False) -> Iterator[Figure]:
    """A figure a measure and task of one run; none of a measure without a value."""
    for measure, task in results.measure_tasks():
        figure = run_figure(results, measure, task, published=published)
        if figure is not None:
            yield figure


def run_figure(results: Results, measure: str, task: str = "", *, published: bool = False) -> Figure | None:
    """One run's measure by layer: its main curve with its interval, raw and baseline thinner; None without a value."""
    panel = charts.run_panel(results, measure, task, all_published=published)
    if panel is None:
        return None
    ((label, _),) = wording.unique_labels([(results.info.title or "run", results)])
    key = main_key(results, measure, task)
    finding = results.finding(key) if key else None
    count = wording.group_count_phrase(results, measure, task)
    caption = Caption(
        title=f"{wording.full_title(measure, task, [results], variant=False)}: {label}",
        finding=finding.sentence(label) if finding else "",
        facts=[panel.definition, *wording.shared_facts([(label, results)], measure), f"n = {count}" if count else ""],
        notes=[*(finding.doubts if finding else ()), *_notes([(label, results)], [panel], [measure])],
    )
    return charts.Chart(Key(measure, "", task).curve_name, "", (panel,)), caption


def sweep_figures(runs: Sequence[LabelledResults], *, published: bool = False) -> list[Figure]:
    """The figures of several runs: the overview, then one a measure; empty where nothing has a value."""
    every = charts.sweep_charts(runs, all_published=published)
    return [overview(every, runs), *((chart, sweep_caption(chart, runs)) for chart in every)] if every else []


def overview(every: Sequence[charts.Chart], runs: Sequence[LabelledResults]) -> Figure:
    """The charts that come first as one, the first definition of each."""
    names = charts.leading_charts([chart.name for chart in every])
    first = [chart for chart in every if chart.name in names]
    panels = tuple(_by_run(chart.panels[0]) for chart in first)
    asks = any(name in charts.HEADLINES for name in names)
    title = "How contextual are word vectors, layer by layer?" if asks else "What was measured, layer by layer"
    caption = Caption(title, sweep_finding(runs), wording.shared_facts(runs), _notes(runs, panels))
    return charts.Chart("overview", title, panels, tuple(chart.title for chart in first)), caption


def _by_run(panel: charts.Panel) -> charts.Panel:
    """The panel with the runs' labels alone, so that all panels have one legend."""
    lines = (line if line.published else replace(line, label=line.run_label) for line in panel.lines)
    return replace(panel, lines=tuple(lines))


def sweep_caption(chart: charts.Chart, runs: Sequence[LabelledResults]) -> Caption:
    """The texts around a sweep's figure of a measure."""
    facts = wording.shared_facts(runs, chart.panels[0].measure)
    if len(chart.panels) == 1:
        facts.insert(0, chart.panels[0].definition)
    said = [chart_finding(runs, panel.key) for panel in chart.panels]
    each = [f"{which} panel: {one}" for which, one in zip(("First", "Second", "Third"), said, strict=False) if one]
    notes = _notes(runs, chart.panels, [panel.measure for panel in chart.panels])
    return Caption(chart.title, said[0] if len(set(said)) == 1 else " ".join(each), facts, notes)


def _notes(runs: Sequence[LabelledResults], panels: Sequence[charts.Panel], measures: Sequence[str] = ()) -> list[str]:
    """Below everything: which intervals can't be seen, what each label stands for, what these measures give without
    context, and where published curves come from."""
    source = f"Published curves (bert-base-cased, gpt2, the original ELMo): {SOURCE}; {CAVEAT}."
    control_sentences = control_lines(runs, measures, most=CONTROLS)
    controls = [f"{line}." for line in control_sentences[:CONTROLS]]
    if len(control_sentences) > CONTROLS:
        controls[-1] = f"{controls[-1][:-1]}; {control_sentences[-1]}."
    if controls:
        controls[0] = f"{NO_CONTEXT}: {controls[0]}"
    notes = [*thin_intervals(panels), *wording.encoder_lines(runs), *controls]
    if seed_sentence := training_runs(runs, measures):
        notes.append(f"{seed_sentence}.")
    cite = any(line.published for panel in panels for line in panel.lines)
    return [*notes, *[source] * cite]


def thin_intervals(panels: Sequence[charts.Panel]) -> list[str]:
    """A note on lines whose bands can hardly be seen; none where all can."""
    widest: dict[str, float] = {}
    for panel in panels:
        low, high = charts.limits([panel])[panel.scale]
        for line in panel.lines:
            if line.low is not None and line.high is not None:
                ends = np.stack([line.low, line.high])
                if panel.scale == charts.LOG:
                    ends = np.log10(np.maximum(ends, 10**low))
                band = float(np.nanmax(ends[1] - ends[0])) / (high - low) * PANEL_POINTS
                widest[line.label] = max(band, widest.get(line.label, 0))
    thin = [label for label, band in widest.items() if band < 2 * LINE_POINTS]
    if not thin:
        return []
    which = "" if len(thin) == len(widest) else f" of {', '.join(thin)}"
    return [f"The intervals{which} are thinner than the lines, or hardly wider."]
