"""Charts as data: panels, their lines by layer and the texts around them, of a run, of a measure across runs and of a
sweep as a whole. Files, notebooks and the page draw the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp.report import reference_curves, wording
from ctxexp.report.style import Ink, colours, family
from ctxexp.results.results import LEADING, main_key
from ctxexp.results.run_info import SIZE_MATCHED
from ctxexp.results.values import Key

if TYPE_CHECKING:
    from ctxexp.results import Results

LOG = "log"
HEADLINES = (*LEADING, "anisotropy", "intra_sentence_similarity", "max_explainable_variance")
"""The measures that come first: the leading one, then those of the paper's four figures, in its order."""
NO_MARKER, DOTTED = -1, 2  # a line's marker, and its dash
SAME = 0.01  # of the height of a panel: curves nearer than that lie on each other
CASING = 2.6  # points that a line is wider by for each that lies on it


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
    under: int = 0  # how many of the panel's lines lie on this one: so much wider it is, to be seen

    @property
    def x(self) -> list[int]:
        """The layers at which the line has a point or a gap."""
        return list(self.layers or range(len(self.y)))

    @property
    def is_quiet(self) -> bool:
        """Whether it stands beside the line that the chart is of."""
        return self.thin or self.published


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
    """One figure: a measure, a panel for each of its definitions, which `headings` name where there are several."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    headings: tuple[str, ...] = ()

    @property
    def lines(self) -> list[Line]:
        """The legend: one line for each label, in order, published curves after measured ones."""
        return legend([line for panel in self.panels for line in panel.lines])


def legend(lines: Iterable[Line]) -> list[Line]:
    """One line for each label, in order, as wide as it is alone; published curves after measured ones."""
    by_label = {line.label: replace(line, under=0) for line in lines}
    return sorted(by_label.values(), key=lambda line: line.published)


def legend_entries(lines: Sequence[Line]) -> list[tuple[Line, str]]:
    """A line and its name, one for each measured line, and one for all published ones."""
    entries = [(line, line.label) for line in lines if not line.published]
    published = next((line for line in lines if line.published), None)
    return [*entries, (published, "published")] if published else entries


def drawing_order(lines: Iterable[Line]) -> list[Line]:
    """The lines, those first on which others may lie."""
    return sorted(lines, key=lambda line: (not line.thin, line.published))


def limits(panels: Sequence[Panel]) -> dict[str, tuple[float, float]]:
    """The ends of the axis of values that panels of one scale share, with a margin; in logarithms where it is `LOG`:
    what is higher on the page is more."""
    ends: dict[str, tuple[float, float]] = {}
    for scale in {panel.scale for panel in panels}:
        same = [panel for panel in panels if panel.scale == scale]
        values = np.concatenate(
            [y for panel in same for line in panel.lines for y in (line.y, line.low, line.high) if y is not None]
        )
        values = values[np.isfinite(values)]
        if scale == LOG:
            values = np.log10(values[values > 0])
        elif any(panel.has_chance_at_zero or panel.threshold is not None for panel in same):
            values = np.append(values, 0)
        low, high = float(values.min()), float(values.max())
        margin = 0.05 * (high - low) or 0.5
        ends[scale] = low - margin, high + margin
    return ends


def lay_over(panel: Panel) -> Panel:
    """The panel, its lines as wide as shows how many lie on them: within a hundredth of its height in most layers."""
    low, high = limits([panel])[panel.scale]
    lines = drawing_order(panel.lines)
    ys = [np.log10(line.y) if panel.scale == LOG else line.y for line in lines]
    under = {
        line.label: sum(_coincide(ys[i], other, SAME * (high - low)) for other in ys[i + 1 :])
        for i, line in enumerate(lines)
    }
    return replace(panel, lines=tuple(replace(line, under=under[line.label]) for line in panel.lines))


def _coincide(a: np.ndarray, b: np.ndarray, room: float) -> bool:
    apart = np.abs(a[: len(b)] - b[: len(a)])
    return bool(np.nanmedian(apart) <= room) if np.isfinite(apart).any() else False


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
            title = wording.full_title(measure_tasks[0][0], "", every, variant=False)
            headings = tuple(panel.definition for panel in panels_with_lines) if len(panels_with_lines) > 1 else ()
            charts.append(Chart(name, title, panels_with_lines, headings))
    titles = [chart.title for chart in charts]
    return [replace(c, title=f"{c.title} ({c.name})") if titles.count(c.title) > 1 else c for c in charts]


def leading_charts(names: Sequence[str]) -> list[str]:
    """The names of the charts that come first: the headlines, or else the first four."""
    return [name for name in names if name in HEADLINES] or list(names)[:4]


def line_styles(runs: Sequence[wording.LabelledResults]) -> dict[str, tuple[str, int]]:
    """A colour and a line style by label: a run's own colour is a shade of its model's, or a hue where all
    are of one model; of the runs of one encoder each has its own style."""
    # a mean over seeds has its runs' colour
    names = {label: label.removesuffix(wording.seeds_suffix(results)) for label, results in runs}
    models = {family(name) for name in names.values()}
    if len(models) == 1:
        (model,) = models
        rests = {label: name[len(model) :].strip(" ([:,+])") if len(names) > 1 else "" for label, name in names.items()}
        names = {label: rest or model for label, rest in rests.items()}
    hue = colours(list(names.values()))
    by_encoder: dict[str, list[tuple[bool, int, str]]] = {}
    for i, (label, results) in enumerate(runs):
        changed = (results.info.control, results.info.transform.name) != ("none", "none")
        by_encoder.setdefault(results.info.model.encoder or label, []).append((changed, i, label))
    dashes = {label: dash for same in by_encoder.values() for dash, (*_, label) in enumerate(sorted(same))}
    return {label: (hue[name], dashes[label]) for label, name in names.items()}


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
    panel = Panel(
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
    return lay_over(panel) if lines else panel


def run_panel(results: Results, measure: str, task: str = "", *, all_published: bool = False) -> Panel | None:
    """One run's measure by layer: its main curve with its interval, raw and baseline thinner, and the published curve;
    None without a value."""
    ((label, _),) = wording.unique_labels([(results.info.title or "run", results)])
    key, (colour, _) = main_key(results, measure, task), line_styles([(label, results)])[label]
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
    panel = Panel(
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
    return lay_over(panel)


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
