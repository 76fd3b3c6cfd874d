"""What a comparison shows, before anything is drawn: charts of lines by layer. The figures and the page draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.papers.ethayarajh_2019 import released as reference
from ctxexp.report.palette import colours
from ctxexp.report.wording import Run, attribute, axis_label, canonical, define, figure_of, mains, title, unique_labels

if TYPE_CHECKING:
    from ctxexp.results import Results

PAPER = ("anisotropy", "self_similarity", "intra_sentence_similarity", "max_explainable_variance")
"""The measures of the paper's four figures, in its order."""

_NEVER_MAIN = ("n", "undefined", "sd", "baseline", "size_matched_baseline", "size_matched_adjusted")
"""Counts, spreads and chance levels: never the line that stands for a measure."""


@dataclass(frozen=True)
class Line:
    """One curve: y (n_layers,), NaN a gap; low and high are its 95% interval, or None."""

    label: str
    model: str  # the run's label; a published curve has that of the run it stands beside
    y: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    colour: str
    marker: int  # tells lines apart without colour; the same for a model in all charts
    published: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    measure: str
    statistic: str
    definition: str
    y_label: str
    lines: tuple[Line, ...]
    threshold: float | None = None


@dataclass(frozen=True)
class Chart:
    """One figure: a measure, a panel for each of its definitions."""

    name: str
    title: str
    panels: tuple[Panel, ...]

    @property
    def lines(self) -> list[Line]:
        """One line a label, in order, the published after the measured: the legend."""
        lines = {line.label: line for panel in self.panels for line in panel.lines}
        return sorted(lines.values(), key=lambda line: line.published)


def sweep_charts(runs: Sequence[Run], *, published: bool = False, statistic: str = "adjusted") -> list[Chart]:
    """The paper's four charts, then one for each other measure; those with any finite value. A measure by task
    (`sts/STS12`) is one chart, a panel a task, their mean first.

    `statistic` is raw, baseline or adjusted; a measure without it (anisotropy has no baseline) shows its own. Published
    curves come along for the paper's models where the run used the published weights, or for all of them on request.
    """
    runs = unique_labels(runs)
    present = list(dict.fromkeys(measure for _, results in runs for measure in results.measures()))
    every = [results for _, results in runs]
    chart_of = {measure: figure_of(measure, every) for measure in present}
    charts = []
    for name in dict.fromkeys((*PAPER, *chart_of.values())):
        measures = [m for m in present if chart_of[m] == name]
        measures.sort(key=lambda m: (m != name, not m.endswith("/avg")))
        panels = [sweep_panel(runs, m, statistic, published=published) for m in measures]
        if statistic == "adjusted":
            panels += [sweep_panel(runs, m, "size_matched_adjusted", published=False) for m in measures]
        kept = tuple(panel for panel in panels if panel.lines)
        if kept:
            charts.append(Chart(name, title(measures[0].split("/")[0], every), kept))
    titles = [chart.title for chart in charts]
    return [replace(c, title=f"{c.title} ({c.name})") if titles.count(c.title) > 1 else c for c in charts]


def sweep_panel(runs: Sequence[Run], measure: str, statistic: str, *, published: bool) -> Panel:
    """One measure across models. Only lines with a finite value; `statistic` falls back to the measure's own."""
    shade = colours([label for label, _ in runs])
    shown = statistic
    if not statistic.startswith("size_matched"):  # one statistic a panel, whoever lacks it
        each = [main_statistic(results, measure, statistic) for _, results in runs if measure in results.measures()]
        shown = statistic if statistic in each else next(iter(each), statistic)
    lines: list[Line] = []
    overlaid: set[str] = set()
    for marker, (label, results) in enumerate(runs):
        line = curve_line(results, measure, shown, label=label, colour=shade[label], marker=marker)
        if line is None:
            continue
        lines.append(line)
        model = paper_model(label, results, published=published)
        y = published_curve(model, results, measure, shown)
        if model is not None and y is not None and model not in overlaid:
            overlaid.add(model)
            lines.append(Line(f"{model}, published", label, y, None, None, shade[label], marker, published=True))
    definition = next((d for _, results in runs if (d := define(measure, results))), "")
    if statistic.startswith("size_matched"):
        over = [attribute(r, measure, "over") for _, r in runs]
        own = "sentence's own length" if "sentence" in over else "word's own size"
        definition += f"; baseline of each {own}"
    return Panel(
        measure=measure,
        statistic=shown,
        definition=definition,
        y_label=axis_label(measure, shown, [results for _, results in runs]),
        lines=tuple(lines),
        threshold=line_of(measure, [r for _, r in runs]) if shown in ("adjusted", "size_matched_adjusted") else None,
    )


def line_of(measure: str, runs: Sequence[Results]) -> float | None:
    """The value at which the measure's metric wants a line drawn across its adjusted curves; None if at none."""
    return next((at for r in runs if (at := attribute(r, measure, "line")) is not None), None)


def published_curve(model: str | None, results: Results, measure: str, statistic: str) -> np.ndarray | None:
    """The published curve of what this run measured under the label, by the same definition; None if there is none."""
    return finite(reference.published(model).get(f"{canonical(results, measure)}/{statistic}")) if model else None


def curve_line(results: Results, measure: str, statistic: str, *, label: str, colour: str, marker: int) -> Line | None:
    """The curve with its interval; None if it isn't there or has no finite value."""
    key = f"{measure}/{statistic}"
    y = finite(results.get(key))
    if y is None:
        return None
    low, high = finite(results.get(f"{key}_ci_low")), finite(results.get(f"{key}_ci_high"))
    if low is None or high is None or not len(low) == len(high) == len(y):
        return Line(label, label, y, None, None, colour, marker)
    gap = np.isnan(y)
    return Line(label, label, y, np.where(gap, np.nan, low), np.where(gap, np.nan, high), colour, marker)


def main_statistic(results: Results, measure: str, wanted: str = "adjusted") -> str:
    """`wanted` if it has a value, else what stands for the measure: its metric's choice, adjusted, raw, the first."""
    statistics = [key.rsplit("/", 1)[1] for key in results.curves if key.rsplit("/", 1)[0] == measure]
    others = [s for s in statistics if s not in _NEVER_MAIN and not s.endswith(("_ci_low", "_ci_high"))]
    for statistic in (wanted, *mains(results, measure), *others):
        if finite(results.get(f"{measure}/{statistic}")) is not None:
            return statistic
    return wanted


def paper_model(label: str, results: Results, *, published: bool) -> str | None:
    """bert, gpt2 or elmo if the published curves of that model belong beside this run."""
    words = (results.info.model.name or results.info.title or label).replace("(", " ").split()
    name = words[0].casefold() if words else ""
    if name not in reference.models():
        return None
    return name if published or results.info.model.weights == "published" else None


def finite(curve: np.ndarray | None) -> np.ndarray | None:
    """The curve as float64 with NaN for what can't be drawn; None if nothing can."""
    if curve is None:
        return None
    y = np.asarray(curve, dtype=np.float64).reshape(-1)
    y = np.where(np.isfinite(y), y, np.nan)
    return y if np.isfinite(y).any() else None
