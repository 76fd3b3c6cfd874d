"""Charts of a comparison as data, panels and lines by layer, which the figures and the page draw; and a panel drawn:
its curves with their intervals, the lines that they are read by, and its axes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp.report import reference_curves, wording
from ctxexp.report.style import Ink, Style, colours
from ctxexp.results.results import LEADING, main_key
from ctxexp.results.run_info import SIZE_MATCHED
from ctxexp.results.values import Key

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from ctxexp.results import Results

LOG = "log"
HEADLINES = (*LEADING, "anisotropy", "intra_sentence_similarity", "max_explainable_variance")
"""The measures that come first: the leading one, then those of the paper's four figures, in its order."""
LINE_WIDTH = 2  # points
AXES_POINTS = 190  # height of a panel's axes, of all figures about the same
_MARKERS = "osD^vPX<>h"
NO_MARKER, DOTTED = -1, 2  # a line's marker, and its dash
_DASHES = ("-", (0, (3, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (6, 1.5, 1, 1.5, 1, 1.5)))


@dataclass(frozen=True)
class Line:
    """One curve: y (n_layers,), NaN a gap; low and high are its 95% interval, or None."""

    label: str
    run_label: str  # a published curve has that of the run it stands beside
    y: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    colour: str
    marker: int  # tells lines apart without colour; the same for a model in all charts
    dash: int = 0  # 0: solid; runs of one encoder, by control or transform, share its colour and differ in style
    published: bool = False  # whether it is a curve of the paper
    thin: bool = False  # beside the line that the chart is of
    layers: tuple[int, ...] = ()  # those that were measured, where that isn't all

    @property
    def x(self) -> list[int]:
        """The layers at which the line has a point or a gap."""
        return list(self.layers or range(len(self.y)))


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    measure: str
    task: str
    statistic: str
    definition: str
    y_label: str
    lines: tuple[Line, ...]
    threshold: float | None = None
    direction: str = ""  # the meaning of high values: "higher = more contextual"
    scale: str = ""  # panels of one scale may share an axis; `LOG`: one in logarithms
    chance: str = "chance"  # name of the zero line where 0 is what chance gives

    @property
    def key(self) -> Key:
        """The curves' key."""
        return Key.of(self.measure, self.statistic, self.task)

    @property
    def has_chance_at_zero(self) -> bool:
        """Whether 0 is what chance gives."""
        return self.statistic in ("adjusted", "share_of_room")


@dataclass(frozen=True)
class Chart:
    """One figure: a measure, a panel for each of its definitions."""

    name: str
    title: str
    panels: tuple[Panel, ...]

    @property
    def lines(self) -> list[Line]:
        """The legend: one line for each label, in order, published curves after measured ones."""
        lines = {line.label: line for panel in self.panels for line in panel.lines}
        return sorted(lines.values(), key=lambda line: line.published)


def sweep_charts(
    runs: Sequence[wording.LabelledResults], *, all_published: bool = False, statistic: str = ""
) -> list[Chart]:
    """The headline charts, then one for each other measure; those with any finite value. A measure by task
    (`sts/STS12`) is one chart with one panel for each task, their mean first.

    `statistic` is share_of_room, adjusted, raw or baseline; a measure without it (anisotropy has none) shows its own,
    which none names too.
    Published curves stand beside runs of the paper's models that used the published weights; with `all_published`,
    beside all runs of these models.
    """
    runs = wording.unique_labels(runs)
    present = list(dict.fromkeys(measure_task for _, results in runs for measure_task in results.measure_tasks()))
    every = [results for _, results in runs]
    chart_of = {measure: wording.figure_name(measure, every) for measure, _ in present}
    charts = []
    for name in dict.fromkeys((*HEADLINES, *chart_of.values())):
        measure_tasks = [(measure, task) for measure, task in present if chart_of[measure] == name]
        measure_tasks.sort(key=lambda s: (s[0] != name, s[1] != "", s[1] != wording.AVERAGE))
        panels = [
            sweep_panel(runs, *measure_task, statistic, all_published=all_published) for measure_task in measure_tasks
        ]
        panels_with_lines = tuple(panel for panel in panels if panel.lines)
        if panels_with_lines:
            charts.append(
                Chart(name, wording.full_title(measure_tasks[0][0], "", every, variant=False), panels_with_lines)
            )
    titles = [chart.title for chart in charts]
    return [replace(c, title=f"{c.title} ({c.name})") if titles.count(c.title) > 1 else c for c in charts]


def leading_charts(names: Sequence[str]) -> list[str]:
    """The names of the charts that come first: the headlines, or else the first four."""
    return [name for name in names if name in HEADLINES] or list(names)[:4]


def overview(charts: Sequence[Chart]) -> list[Chart]:
    """The charts that come first."""
    names = leading_charts([chart.name for chart in charts])
    return [chart for chart in charts if chart.name in names]


def line_styles(runs: Sequence[wording.LabelledResults]) -> dict[str, tuple[str, int]]:
    """A colour and a line style by label: runs of one encoder share its colour, and each of them has a style. Where all
    are of one encoder, each transform has a colour instead."""
    single_encoder = len({results.info.model.encoder or label for label, results in runs}) == 1
    families: dict[tuple[str, str], list[tuple[bool, int, str]]] = {}
    for i, (label, results) in enumerate(runs):
        info = results.info
        changed = (info.control, info.transform.name) != ("none", "none")
        transform = info.transform.name if single_encoder and info.transform.name != "none" else ""
        families.setdefault((info.model.encoder or label, transform), []).append((changed, i, label))
    members = {transform or sorted(family)[0][2]: sorted(family) for (_, transform), family in families.items()}
    suffixes = {label: wording.seeds_suffix(results) for label, results in runs}
    # a mean over seeds has its runs' colour
    bare_names = {name: name.removesuffix(suffixes.get(name, "")) for name in members}
    hue = colours(list(bare_names.values()))
    return {
        label: (hue[bare_names[name]], dash)
        for name, family in members.items()
        for dash, (*_, label) in enumerate(family)
    }


def sweep_panel(
    runs: Sequence[wording.LabelledResults],
    measure: str,
    task: str,
    statistic: str,
    *,
    all_published: bool,
) -> Panel:
    """One measure across models. Only lines with a finite value; `statistic` falls back to the measure's own."""
    styles = line_styles(runs)
    # one statistic for the panel, even if some runs lack it
    each = [key.name for _, results in runs if (key := main_key(results, measure, task, wanted=statistic))]
    statistic = next((name for name in (statistic, *each) if name in each), statistic)
    key = Key.of(measure, statistic, task)
    lines: list[Line] = []
    overlaid_models: set[str] = set()
    for marker, ((label, results), shown) in enumerate(zip(runs, wording.mix_labels(measure, runs), strict=True)):
        colour, dash = styles[label]
        line = curve_line(results, key, label=label, colour=colour, marker=marker)
        if line is None:
            continue
        lines.append(replace(line, dash=dash, label=shown))
        model = paper_model_name(label, results, all_published=all_published)
        y = published_curve(model, results, key)
        if model is not None and y is not None and model not in overlaid_models:
            overlaid_models.add(model)
            lines.append(Line(f"{model}, published", label, y, None, None, colour, marker, published=True))
    every = [results for _, results in runs]
    definition = next((d for results in every if (d := results.info.definition(measure, task))), "")
    if name := next((name for results in every if (name := wording.baseline_label(results, key))), ""):
        own_size = f"chance at each {wording.group_size_phrase(every, measure)}"
        definition += f"; {own_size if name == SIZE_MATCHED else f'{name} chance'}"
    return Panel(
        measure=measure,
        task=task,
        statistic=statistic,
        definition=definition,
        y_label=wording.axis_label(measure, statistic, every, task),
        lines=tuple(lines),
        threshold=reference_line(measure, every) if statistic == "adjusted" else None,
        direction=wording.direction(every, measure),
        scale=scale(every, measure, lines),
    )


def run_panel(results: Results, measure: str, task: str = "", *, all_published: bool = False) -> Panel | None:
    """One run's measure by layer: its main curve with its interval, raw and baseline thinner, and the published curve;
    None without a value."""
    ((label, _),) = wording.unique_labels([(results.info.title or "run", results)])
    key, colour = main_key(results, measure, task), colours([label])[label]
    line = curve_line(results, key, label=key.label(), colour=colour, marker=0) if key else None
    if key is None or line is None:
        return None
    lines = [line if line.low is None else replace(line, label=f"{line.label}, 95% interval")]
    for other, look in _beside(results, key, colour).items():
        estimates = results.by_key.get(other)
        y = finite_curve(estimates.value if estimates else None)
        if y is not None and other != key:
            name = other.label(wording.level_word([results], measure))
            lines.append(Line(name, label, y, None, None, **look, thin=True, layers=line.layers))
    model = paper_model_name(label, results, all_published=all_published)
    if (paper_curve := published_curve(model, results, key)) is not None:
        lines.append(Line("published", label, paper_curve, None, None, colour, 0, published=True))
    return Panel(
        measure=measure,
        task=task,
        statistic=key.statistic if not key.baseline else "",
        definition=results.info.definition(measure, task),
        y_label=wording.axis_label(measure, "", [results], task),
        lines=tuple(lines),
        threshold=reference_line(measure, [results]) if key.statistic == "adjusted" else None,
        direction=wording.direction([results], measure),
        scale=scale([results], measure, [line]),
        chance="chance of adjusted",
    )


def _beside(results: Results, key: Key, colour: str) -> dict[Key, dict[str, Any]]:
    """The curves that stand beside a run's main one, with their colours, dashes and markers."""
    measure, task = key.measure, key.task
    looks: dict[Key, dict[str, Any]] = {Key(measure, "raw", task): {"colour": str(Ink.TEXT), "marker": 3}}
    for end in ("lowest", "highest"):
        looks[Key(measure, end, task)] = {"colour": colour, "marker": NO_MARKER, "dash": DOTTED}
    looks[Key(measure, "baseline", task)] = {"colour": str(Ink.FAINT), "marker": 4, "dash": 1}
    for marker, name in enumerate(wording.other_baselines([results], measure, task), start=5):
        look = {"marker": marker, "dash": DOTTED}
        looks[Key(measure, key.statistic, task, baseline=name)] = {**look, "colour": colour}
        looks[Key(measure, "baseline", task, baseline=name)] = {**look, "colour": str(Ink.FAINT)}
    if key.statistic == "raw":  # medians are of raw scores: beside an adjusted mean they would read as adjusted medians
        looks[Key(measure, "median", task)] = {"colour": str(Ink.TEXT), "marker": NO_MARKER, "dash": DOTTED}
    return looks


def scale(runs: Sequence[Results], measure: str, lines: Sequence[Line]) -> str:
    """The scale of a panel: `LOG` for positive lengths, one name for cosines and shares, else the unit."""
    unit = wording.unit_label(runs, measure)
    if unit in wording.LOG_UNITS and all((line.y[np.isfinite(line.y)] > 0).all() for line in lines):
        return LOG
    return "to 1" if unit in wording.UNITS_TO_ONE else unit


def reference_line(measure: str, runs: Sequence[Results]) -> float | None:
    """The height of the horizontal reference line across the measure's adjusted curves, as its metric declares; None:
    no line."""
    return next((at for r in runs if (at := r.info.measure(measure).line) is not None), None)


def published_curve(model: str | None, results: Results, key: Key) -> np.ndarray | None:
    """The published curve of the key's measure, of the same definition and kind of baseline; None if there is none."""
    if wording.baseline_label(results, key):
        return None
    published_key = key._replace(measure=results.info.definition_name(key.measure))
    return finite_curve(reference_curves.published_curves(model).get(published_key)) if model else None


def curve_line(results: Results, key: Key, *, label: str, colour: str, marker: int) -> Line | None:
    """The curve with its interval; None if it isn't there or has no finite value."""
    estimates = results.by_key.get(key)
    y = finite_curve(estimates.value if estimates else None)
    if y is None or estimates is None:
        return None
    low, high = (finite_curve(np.where(np.isnan(y), np.nan, end)) for end in (estimates.low, estimates.high))
    if low is None or high is None:
        low = high = None
    return Line(label, label, y, low, high, colour, marker, layers=results.info.model.layers)


def paper_model_name(label: str, results: Results, *, all_published: bool) -> str | None:
    """bert, gpt2 or elmo if the published curves of that model belong beside this run, else None."""
    words = (results.info.model.name or results.info.title or label).replace("(", " ").split()
    name = words[0].casefold() if words else ""
    if name not in reference_curves.published_models():
        return None
    return name if all_published or results.info.model.weights == "published" else None


def finite_curve(curve: np.ndarray | None) -> np.ndarray | None:
    """The curve as float64 with NaN for what can't be drawn; None if nothing can."""
    if curve is None:
        return None
    y = np.asarray(curve, dtype=np.float64).reshape(-1)
    y = np.where(np.isfinite(y), y, np.nan)
    return y if np.isfinite(y).any() else None


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw a panel's curves with the lines that they are read by."""
    for line in panel.lines:
        draw_line(axes, line)
    if panel.threshold is not None:
        draw_threshold(axes, panel.threshold)
    if panel.has_chance_at_zero:
        draw_chance(axes, panel.chance)
    finish_axes(axes, panel.y_label, panel.direction, log=panel.scale == LOG)


def share_scales(drawn: Sequence[tuple[Axes, Panel]], columns: int) -> None:
    """Give the panels of a row, of one scale, one y axis: what is higher on the page is more."""
    for first in range(0, len(drawn), columns):
        by_scale: dict[str, list[Axes]] = {}
        for axes, panel in drawn[first : first + columns]:
            by_scale.setdefault(panel.scale, []).append(axes)
        for row in by_scale.values():
            limits = np.array([axes.get_ylim() for axes in row])
            for axes in row:
                axes.set_ylim(limits[:, 0].min(), limits[:, 1].max())
            for axes in row[1:]:
                if axes.get_ylabel() == row[0].get_ylabel():
                    axes.set_ylabel("")


def thin_intervals(drawn: Sequence[tuple[Axes, Sequence[Line]]]) -> list[str]:
    """A note on lines whose bands can hardly be seen; none where all can."""
    widest: dict[str, float] = {}
    for axes, lines in drawn:
        low, high = axes.get_ylim()
        points = AXES_POINTS / (high - low)
        for line in lines:
            if line.low is not None and line.high is not None:
                band = float(np.nanmax(line.high - line.low)) * points
                widest[line.label] = max(band, widest.get(line.label, 0))
    thin = [label for label, band in widest.items() if band < 2 * LINE_WIDTH]
    if not thin:
        return []
    which = "" if len(thin) == len(widest) else f" of {', '.join(thin)}"
    return [f"The intervals{which} are thinner than the lines, or hardly wider."]


def line_style(line: Line) -> Style:
    """matplotlib's keywords for a curve."""
    marker = "" if line.marker == NO_MARKER else _MARKERS[line.marker % len(_MARKERS)]
    if line.published:
        return {
            "color": line.colour, "linestyle": (0, (4, 2)), "linewidth": 1.2, "marker": marker, "markersize": 4,
            "markerfacecolor": "white", "zorder": 5,
        }  # fmt: skip
    return {
        "color": line.colour,
        "linestyle": _DASHES[line.dash % len(_DASHES)],
        "linewidth": 1.1 if line.thin else LINE_WIDTH,
        "marker": marker,
        "markersize": 3.5 if line.thin else 5,
        "zorder": 2 if line.thin else 4,
    }


def draw_line(axes: Axes, line: Line) -> Line2D:
    """The line with its band; an interval without neighbours, which a band can't show, becomes a whisker."""
    x = np.array(line.x)
    (artist,) = axes.plot(x, line.y[x], **line_style(line))
    if line.low is not None and line.high is not None:
        low, high = line.low[x], line.high[x]
        axes.fill_between(x, low, high, color=line.colour, alpha=0.2, linewidth=0, zorder=1)
        has_interval = np.isfinite(low) & np.isfinite(high)
        is_isolated = has_interval & ~np.append(has_interval[1:], False) & ~np.append(False, has_interval[:-1])
        axes.vlines(x[is_isolated], low[is_isolated], high[is_isolated], color=line.colour, linewidth=1.5, zorder=3)
    return artist


def draw_threshold(axes: Axes, value: float) -> None:
    """The reference line of a metric, with its height in percent at its right."""
    axes.update_datalim([(0, 0)], updatex=False)  # the axis holds 0, so that a share's size can be seen
    axes.axhline(value, color=Ink.TEXT, linestyle="--", linewidth=1, zorder=2.5)
    place = axes.get_yaxis_transform()
    axes.text(1.005, value, f"{value:.0%}", transform=place, va="bottom", fontsize=8.5, color=Ink.TEXT)


def draw_chance(axes: Axes, text: str) -> None:
    """The zero line of adjusted values, named in its middle."""
    axes.update_datalim([(0, 0)], updatex=False)
    axes.axhline(0, color=Ink.TEXT, linewidth=1, zorder=1.5)
    axes.text(
        0.5, 0, text, transform=axes.get_yaxis_transform(), ha="center", va="bottom", fontsize=8.5, color=Ink.TEXT
    )


def finish_axes(axes: Axes, y_label: str, direction: str, *, log: bool) -> None:
    """Integer layers, a zero line where values cross it, a quiet grid; the y axis in logarithms where lengths differ by
    factors."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())

    axes.xaxis.set_major_locator(MaxNLocator(nbins=14, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    left, right = axes.dataLim.intervalx
    axes.set_xlim(min(left, 0) - 0.4, right + 0.4)
    low, high = axes.get_ylim()
    if low < 0 < high:
        axes.axhline(0, color=Ink.FAINT, linewidth=0.8, zorder=1.5)
    axes.set_xlabel(wording.LAYER_AXIS, fontsize=9.5)
    y_label = "\n".join(textwrap.wrap(y_label, 36) + textwrap.wrap(direction, 36))
    axes.set_ylabel(y_label, fontsize=9.5, parse_math=False)
    axes.tick_params(labelsize=9, length=3)
    axes.grid(axis="y", color=Ink.GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
