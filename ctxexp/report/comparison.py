"""Curves to figures, one look for all: a figure per measure of a run, the paper's four figures across runs. Finished
runs side by side: as a sweep's files (the interactive page, the figures, tables, and every curve as a CSV), and in a
notebook as a frame, figures and a table.

matplotlib's object interface only: nothing global is touched, nothing is left open, no display is needed.
"""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.errors import MetricError, near
from ctxexp.files import user_path, write_csv
from ctxexp.plugins.registry import Registry
from ctxexp.report import charts, references, terminal, wording
from ctxexp.report.claims import opposite_steps
from ctxexp.report.findings import LEADING, chart_finding, finding, finding_of, findings, marked_steps, sweep_finding
from ctxexp.report.frame import PAGE, Ink, Style, add_captions, colours, display_in_notebook, empty_figure, save_figure
from ctxexp.report.page import REPORT, write_report
from ctxexp.report.wording import LabelledResults, average_seeds
from ctxexp.results.frame import main_key, mix_mark
from ctxexp.results.values import COLUMNS, SHARE_OF_ROOM, Key, Values

if TYPE_CHECKING:
    import pandas as pd
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
    SVG; the paper's also as wide as a column of a page, with PDF."""
    all_charts = charts.sweep_charts(runs, all_published=published)
    if not all_charts:
        return []
    paths = save_figure(overview_figure(all_charts, runs), folder, "overview")
    for chart in all_charts:
        paths += save_figure(sweep_figure(chart, runs), folder, chart.name)
        if chart.name in charts.leading_charts([each.name for each in all_charts]):
            paths += save_figure(column_figure(chart), folder, f"{chart.name}_column", ("png", "svg", "pdf"))
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
    model = charts.paper_model(label, results, all_published=published)
    paper_curve = charts.published_curve(model, results, key)
    if paper_curve is not None:
        handles.append(
            charts.draw_line(axes, charts.Line("published", label, paper_curve, None, None, colour, 0, published=True))
        )
        names.append(f"published, {key.label()}")
    if key.statistic == "adjusted" and (at := charts.reference_line(measure, [results])) is not None:
        charts.draw_threshold(axes, at)
    if key.statistic in ("adjusted", "share_of_room"):
        charts.draw_chance(axes, f"chance of {'adjusted' if key.statistic == 'adjusted' else 'the share'}")
    y_label, direction = wording.axis_label(measure, "", [results], task), wording.direction([results], measure)
    y_label = f"{y_label}; share of the room" if key.statistic == "share_of_room" else y_label
    charts.finish_axes(axes, y_label, direction, log=charts.scale([results], measure, [line]) == charts.LOG)
    thin = charts.thin_intervals([(axes, [line])])
    count = wording.group_count_phrase(results, measure, task)
    facts = [results.info.definition(measure, task), *wording.shared_facts([(label, results)], measure)]
    facts.append(f"n = {count}" if count else "")
    notes = [SHARE_OF_ROOM] if key.statistic == "share_of_room" else []
    notes += [marked] if (marked := marked_steps(results, key)) else []
    add_captions(
        figure,
        f"{wording.full_title(measure, task, [results], variant=False)}: {label}",
        facts,
        handles,
        names,
        thin + notes + _notes([(label, results)], paper_curve is not None, [measure]),
        finding=finding_of(results, key, label),
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
    asks = any(chart.name in charts.PAPER_MEASURES for chart in headline_charts)
    heading = "How contextual are word vectors, layer by layer?" if asks else "What was measured, layer by layer"
    charts.share_scales(axes_and_panels, columns)
    _dress_sweep(figure, heading, wording.shared_facts(runs), axes_and_panels, runs, finding=sweep_finding(runs))
    return figure


def _notes(runs: Sequence[LabelledResults], cite: bool, measures: Sequence[str] = ()) -> list[str]:
    """Below everything: what each label stands for, what these measures give without context, and where published
    curves come from."""
    source = f"Published curves (bert-base-cased, gpt2, the original ELMo): {references.SOURCE}; {references.CAVEAT}."
    control_sentences = references.control_lines(runs, measures, most=CONTROLS)
    controls = [f"{line}." for line in control_sentences[:CONTROLS]]
    if len(control_sentences) > CONTROLS:
        controls[-1] = f"{controls[-1][:-1]}; {control_sentences[-1]}."
    if controls:
        controls[0] = f"{references.NO_CONTEXT}: {controls[0]}"
    seeds = [f"{seed_sentence}."] if (seed_sentence := references.training_runs(runs, measures)) else []
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
    notes = [SHARE_OF_ROOM] if any(panel.statistic == "share_of_room" for _, panel in drawn) else []
    notes = charts.thin_intervals([(axes, panel.lines) for axes, panel in drawn]) + notes + _notes(runs, cite, measures)
    add_captions(figure, title, facts, *_legend(lines), notes, finding=finding)


COMPARISON = "comparison.csv"


def write_summary(
    runs: Sequence[LabelledResults], folder: Path, registry: Registry, *, links: Mapping[str, str] | None = None
) -> list[Path]:
    """Write the comparison of a sweep's runs (figures, report.html, tables, comparison.csv); return the paths.

    `links` are where sinks show the runs, by label. Figures and page show means over seeds; tables and comparison.csv
    have every run.
    """
    published = any(results.info.published for _, results in runs)
    averages = average_seeds(runs)
    paths = sweep_figures(averages, folder, published=published)
    paths += terminal.write_tables(runs, folder, registry)
    more = terminal.write_figures(runs, folder, registry)
    page = write_report(averages, folder / REPORT, published=published, links=links, pictures=more)
    paths += [page, *more]
    comparison = folder / COMPARISON
    write_csv(Comparison(tuple(wording.unique_labels(runs))).frame, comparison)
    return [*paths, comparison]


@dataclass(frozen=True)
class Comparison:
    """Runs by label, each label once.

    Example:
        >>> import ctxexp
        >>> both = ctxexp.compare([ctxexp.Results(), ctxexp.Results()])
        >>> both, list(both.frame.columns[:4])
        (<Comparison of run, run #2>, ['run', 'measure', 'task', 'statistic'])
    """

    runs: tuple[tuple[str, Results], ...]

    @property
    def frame(self) -> pd.DataFrame:
        """The runs' frames (`ctxexp.Results.frame`) under each other, the run's label in the first column; `bands` says
        which means over words are of a text that doesn't fill all bands of frequency: `2 of 3 bands`."""
        import pandas as pd

        parts = [
            results.frame.assign(run=label, bands=[mix_mark(results, measure) for measure in results.frame.measure])
            for label, results in self.runs
        ] or [Values().frame().assign(run="", bands="")]
        return pd.concat(parts, ignore_index=True)[["run", *COLUMNS, "bands"]]

    def plot(self, measure: str | None = None) -> Figure:
        """The runs' curves of one measure by layer, one panel for each of its variants; None: the overview. A notebook
        shows it. Raises MetricError for an unknown measure, and where there is no value to draw."""
        all_charts = charts.sweep_charts(self.runs)
        curve_names = dict.fromkeys(
            Key(m, "", task).curve_name for _, results in self.runs for m, task in results.measure_tasks()
        )
        if measure is None:
            if not all_charts:
                raise MetricError(_nothing_to_draw(list(curve_names)))
            return display_in_notebook(overview_figure(all_charts, self.runs))
        for chart in all_charts:
            if measure in (chart.name, *(Key(panel.measure, "", panel.task).curve_name for panel in chart.panels)):
                return display_in_notebook(sweep_figure(chart, self.runs))
        if measure in curve_names or any(key.startswith(f"{measure}/") for key in curve_names):
            raise MetricError(_nothing_to_draw([measure]))
        raise MetricError(f"no measure {measure!r} in these runs{near(measure, [chart.name for chart in all_charts])}")

    def report(self, path: str | Path = "report.html") -> Path:
        """Write the interactive page of the runs, which fetches nothing; returns its path."""
        published = any(results.info.published for _, results in self.runs)
        return write_report(self.runs, user_path(path).absolute(), published=published)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(label for label, _ in self.runs)}>"

    @property
    def sentence(self) -> str:
        """What was found, in a few sentences: how the runs go from layer to layer, and their order at the last."""
        return sweep_finding(self.runs)

    def _repr_html_(self) -> str:
        """The sentences, and each measure's main curve by run and layer, each value above its 95% interval."""
        rows = {(key.curve_name, label): (results, key) for label, results in self.runs for key in results.main_keys}
        order = list(dict.fromkeys(curve for curve, _ in rows))
        at = sorted(rows, key=lambda row: order.index(row[0]))
        return f"<p>{escape(self.sentence)}</p>{_html_table({f'{row[0]}: {row[1]}': rows[row] for row in at})}"


def run_sentence(results: Results) -> str:
    """What was found, in a sentence."""
    return finding(results)


def run_findings(results: Results, label: str) -> list[str]:
    """A sentence a measure."""
    return findings(results, label)


def run_controls(results: Results, label: str, measures: Iterable[str] | None) -> list[str]:
    """A line a main curve, and one on further controls."""
    lines = references.control_lines([(label or results.info.title or "run", results)], measures)
    return [*lines, *filter(None, [references.controls_of_run(results)])]


def run_opposite_steps(results: Results, key: Key) -> tuple[list[int], str]:
    """The layers, and the note below a table or chart on them."""
    return opposite_steps(results, key), marked_steps(results, key)


def run_report(results: Results, path: str | Path) -> Path:
    """The interactive page of one run."""
    return of_run(results).report(path)


def run_plot(results: Results, measure: str | None) -> Figure:
    """One run's figure of a measure, with raw values and baseline; else as `Comparison.plot` of this run."""
    figure = run_figure(results, measure) if measure else None
    return display_in_notebook(figure) if figure else of_run(results).plot(measure)


def run_html(results: Results) -> str:
    """The leading measure's figure, or the run's sentence where there is nothing to draw, and each measure's main curve
    by layer, each value above its 95% interval, as HTML."""
    keys = sorted(results.main_keys, key=lambda key: key.measure != LEADING)
    figure = run_figure(results, keys[0].measure, keys[0].task) if keys else None
    says = f"<p>{escape(results.sentence)}</p>"
    if figure is not None:  # which says the same
        png = base64.b64encode(figure._repr_png_()).decode()  # type: ignore[attr-defined]  # of `empty_figure`
        says = f'<img width="640" alt="{escape(results.sentence)}" src="data:image/png;base64,{png}">'
    return says + _html_table({key.curve_name: (results, key) for key in keys})


def of_run(results: Results) -> Comparison:
    """The comparison of one run alone, under its title."""
    return Comparison(((results.info.title or "run", results),))


def _html_table(rows: Mapping[str, tuple[Results, Key]]) -> str:
    """A row a curve, its cells by layer; an interval stands below its value."""
    import pandas as pd

    cells: dict[str, list[str]] = {}
    for name, (results, key) in rows.items():
        scale = ", ".join(filter(None, [key.label(), mix_mark(results, key.measure)]))
        line = cells.setdefault(f"{escape(name)}<br><small>{escape(scale)}</small>", [])
        for numbers in zip(*results.by_key[key], strict=True):
            text, *ends = (f"{number:.3f}" if np.isfinite(number) else "" for number in numbers)
            line.append(f"{text}<br><small>[{', '.join(ends)}]</small>" if all(ends) else text)
    table = pd.DataFrame.from_dict(cells, orient="index").rename_axis("layer", axis="columns")
    html: str = table.to_html(escape=False, na_rep="")
    return html


def _nothing_to_draw(measures: list[str]) -> str:
    """Why there is nothing to draw."""
    if not measures:
        return "nothing to draw: these runs hold no curve by layer"
    which = f"{', '.join(measures)} {'are' if len(measures) > 1 else 'is'}"
    return (
        f"nothing to draw: {which} undefined (NaN) in every layer, for want of contexts: lower min_contexts, or give "
        "more text"
    )
