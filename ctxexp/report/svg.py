"""Charts as SVG, written in milliseconds without matplotlib: what runs and sweeps leave in their folders."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from ctxexp.files import write_file
from ctxexp.report import charts
from ctxexp.report.figures import Caption, overview_caption, run_caption, sweep_caption
from ctxexp.report.style import Ink
from ctxexp.report.wording import LAYER_AXIS, LabelledResults
from ctxexp.results import Results
from ctxexp.results.values import Key

WIDTH, HEIGHT = 690, 260  # pixels of a figure, and of a panel with its axis
LEFT, RIGHT, BOTTOM = 92, 34, 40  # of a panel's axes from its edges
TICKS = 5  # about as many on an axis of values
MARKERS: tuple[Sequence[tuple[float, float]], ...] = (
    (),  # a circle
    ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    ((0, -1.2), (1.2, 1), (-1.2, 1)),
    ((0, 1.2), (1.2, -1), (-1.2, -1)),
)
_DASHES = ("", "6 3", "2 2.5", "12 3 2 3", "12 3 2 3 2 3")


def write_run_charts(results: Results, folder: Path, *, published: bool = False) -> list[Path]:
    """Write an SVG for each measure of one run; the paths. A measure without a value is skipped."""
    paths = []
    for measure, task in results.measure_tasks():
        panel = charts.run_panel(results, measure, task, all_published=published)
        if panel is not None:
            chart = charts.Chart("", "", (panel,))
            paths.append(_write(folder, Key(measure, "", task).curve_name, chart, run_caption(results, panel)))
    return paths


def write_sweep_charts(runs: Sequence[LabelledResults], folder: Path, *, published: bool = False) -> list[Path]:
    """Write the comparison of runs (chart label, results): overview.svg, then an SVG for each measure; the paths."""
    all_charts = charts.sweep_charts(runs, all_published=published)
    if not all_charts:
        return []
    first = charts.overview(all_charts)
    panels = tuple(each.panels[0] for each in first)
    headings = [each.title for each in first]
    paths = [_write(folder, "overview", charts.Chart("", "", panels), overview_caption(first, runs), headings)]
    for chart in all_charts:
        headings = [panel.definition for panel in chart.panels] if len(chart.panels) > 1 else []
        paths.append(_write(folder, chart.name, chart, sweep_caption(chart, runs), headings))
    return paths


def _write(folder: Path, name: str, chart: charts.Chart, caption: Caption, headings: Sequence[str] = ()) -> Path:
    stem = re.sub(r"[^\w.-]+", "_", name).strip("._") or "figure"
    return write_file(folder / f"{stem}.svg", chart_svg(chart, caption, headings))


def chart_svg(chart: charts.Chart, caption: Caption, headings: Sequence[str] = ()) -> str:
    """The chart as SVG: title, finding and facts above its panels, legend and notes below."""
    parts, y = _texts([caption.title], 10, 17, Ink.TEXT, "font-weight='bold'")
    for text, size, ink in (caption.finding, 14.5, Ink.TEXT), ("; ".join(filter(None, caption.facts)), 12, Ink.FAINT):
        more, y = _texts([text], y, size, ink)
        parts += more
    columns = min(len(chart.panels), 2)
    for first in range(0, len(chart.panels), columns):
        row = chart.panels[first : first + columns]
        limits = {scale: _limits([p for p in row if p.scale == scale]) for scale in {p.scale for p in row}}
        heads = [textwrap.wrap(text, 52) for text in headings[first : first + columns]]
        top = y + 10 + 14 * max(map(len, heads), default=0)
        for i, panel in enumerate(row):
            x = i * WIDTH / columns
            for n, text in enumerate(heads[i] if heads else ()):
                parts.append(_text(x + 10, top - 14 * (len(heads[i]) - n) + 4, text, 12, Ink.TEXT))
            parts += _panel(panel, x, top, WIDTH / columns, limits[panel.scale])
        y = top + HEIGHT
    more, y = _legend(chart.lines, y + 8)
    parts += more
    more, y = _texts(caption.notes, y, 12, Ink.FAINT)
    body = "\n".join(parts + more)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{y + 8:.0f}' "
        f"viewBox='0 0 {WIDTH} {y + 8:.0f}' font-family='DejaVu Sans, Verdana, sans-serif'>\n"
        f"<rect width='100%' height='100%' fill='white'/>\n{body}\n</svg>\n"
    )


def _texts(texts: Sequence[str], y: float, size: float, ink: str, style: str = "") -> tuple[list[str], float]:
    """The texts wrapped to the page, each on lines of its own from `y` on; and where they end."""
    parts = []
    for text in texts:
        for line in textwrap.wrap(text, int(1.75 * WIDTH / size), break_on_hyphens=False):
            y += 1.35 * size
            parts.append(_text(10, y - 0.3 * size, line, size, ink, style))
    return parts, y


def _text(x: float, y: float, text: str, size: float, ink: str, style: str = "") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' fill='{ink}' {style}>{escape(text)}</text>"


def _limits(panels: Sequence[charts.Panel]) -> tuple[float, float]:
    """The ends of the axis of values that these panels share, with a margin; in logarithms where their scale is."""
    ends = [y for panel in panels for line in panel.lines for y in (line.y, line.low, line.high) if y is not None]
    values = np.concatenate(ends)
    values = values[np.isfinite(values)]
    if panels[0].scale == charts.LOG:
        values = np.log10(values[values > 0])
    elif any(panel.has_chance_at_zero or panel.threshold is not None for panel in panels):
        values = np.append(values, 0)
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low) or 0.5
    return low - margin, high + margin


def _ticks(low: float, high: float, *, log: bool) -> list[tuple[float, str]]:
    """Places on the axis and their labels."""
    if log:
        values = [digit * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for digit in (1, 2, 5)]
        return [(math.log10(value), f"{value:g}") for value in values if low <= math.log10(value) <= high]
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough)
    digits = max(0, -math.floor(math.log10(step)))
    return [(i * step, f"{i * step:.{digits}f}") for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


@dataclass(frozen=True)
class _Axes:
    """Where values stand on the page: `left` to `right` and `top` to `bottom` in pixels; in logarithms if `log`."""

    left: float
    right: float
    top: float
    bottom: float
    last: int  # layer
    low: float
    high: float
    log: bool

    def x(self, layer: float) -> float:
        """The place of a layer."""
        return self.left + (layer + 0.4) / (self.last + 0.8) * (self.right - self.left)

    def y(self, value: float) -> float:
        """The place of a value."""
        return self.y_of_tick(math.log10(max(value, 10**self.low)) if self.log else value)

    def y_of_tick(self, value: float) -> float:
        """The place of a value as the axis has it, in logarithms where that is so."""
        return self.top + (self.high - value) / (self.high - self.low) * (self.bottom - self.top)

    def across(self, y: float, ink: str, style: str = "") -> str:
        """A line across."""
        ends = f"x1='{self.left:.1f}' x2='{self.right:.1f}' y1='{y:.1f}' y2='{y:.1f}'"
        return f"<line {ends} stroke='{ink}' {style}/>"


def _panel(panel: charts.Panel, left: float, top: float, width: float, limits: tuple[float, float]) -> list[str]:
    last = max(max(line.x) for line in panel.lines)
    log = panel.scale == charts.LOG
    axes = _Axes(left + LEFT, left + width - RIGHT, top, top + HEIGHT - BOTTOM, last, *limits, log)
    parts = _frame(axes, panel, left)
    if panel.has_chance_at_zero:
        middle = (axes.left + axes.right) / 2
        parts.append(axes.across(axes.y(0), Ink.TEXT))
        parts.append(_text(middle, axes.y(0) - 4, panel.chance, 11, Ink.TEXT, "text-anchor='middle'"))
    if panel.threshold is not None:
        y = axes.y(panel.threshold)
        parts.append(axes.across(y, Ink.TEXT, "stroke-dasharray='5 3'"))
        parts.append(_text(axes.right + 3, y + 4, f"{panel.threshold:.0%}", 11, Ink.TEXT))
    for line in panel.lines:
        parts += _band(axes, line)
    for line in sorted(panel.lines, key=lambda line: not line.thin):
        parts += _line(axes, line)
    return parts


def _frame(axes: _Axes, panel: charts.Panel, left: float) -> list[str]:
    """The axes with their ticks and labels."""
    parts = []
    for value, text in _ticks(axes.low, axes.high, log=axes.log):
        y = axes.y_of_tick(value)
        parts += [axes.across(y, Ink.GRID), _text(axes.left - 5, y + 4, text, 12, Ink.TEXT, "text-anchor='end'")]
    for layer in range(0, axes.last + 1, -(-(axes.last + 1) // 14)):
        parts.append(_text(axes.x(layer), axes.bottom + 16, str(layer), 12, Ink.TEXT, "text-anchor='middle'"))
    corner = f"M{axes.left:.1f},{axes.top:.1f}V{axes.bottom:.1f}H{axes.right:.1f}"
    parts.append(f"<path d='{corner}' fill='none' stroke='{Ink.TEXT}'/>")
    middle = (axes.left + axes.right) / 2
    parts.append(_text(middle, axes.bottom + 33, LAYER_AXIS, 12.5, Ink.TEXT, "text-anchor='middle'"))
    for n, text in enumerate([*textwrap.wrap(panel.y_label, 36), *textwrap.wrap(panel.direction, 36)]):
        x, y = left + 11 + 13 * n, (axes.top + axes.bottom) / 2
        turned = f"text-anchor='middle' transform='rotate(-90 {x:.1f} {y:.1f})'"
        parts.append(_text(x, y, text, 11, Ink.TEXT, turned))
    return parts


def _band(axes: _Axes, line: charts.Line) -> list[str]:
    """The line's interval; a whisker where a layer has no neighbour with one."""
    if line.low is None or line.high is None:
        return []
    parts = []
    for run in _runs(line, line.low + line.high):
        upper = [f"{axes.x(i):.1f},{axes.y(float(line.high[i])):.1f}" for i in run]
        lower = [f"{axes.x(i):.1f},{axes.y(float(line.low[i])):.1f}" for i in reversed(run)]
        path = "M" + "L".join(upper + lower) + "Z"
        look = f"stroke='{line.colour}'" if len(run) == 1 else "stroke='none'"
        parts.append(f"<path d='{path}' fill='{line.colour}' fill-opacity='0.2' {look}/>")
    return parts


def _line(axes: _Axes, line: charts.Line) -> list[str]:
    """The curve, with gaps where it is NaN, and its points."""
    parts = []
    for run in _runs(line, line.y):
        places = [(axes.x(i), axes.y(float(line.y[i]))) for i in run]
        path = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f"<path d='{path}' {_stroke(line)}/>")
        parts += [_mark(line, x, y) for x, y in places]
    return parts


def _runs(line: charts.Line, values: np.ndarray) -> list[list[int]]:
    """The line's layers at which the values (n_layers,) are finite, in stretches without a gap."""
    runs: list[list[int]] = [[]]
    for layer in line.x:
        if np.isfinite(values[layer]):
            runs[-1].append(layer)
        else:
            runs.append([])
    return [run for run in runs if run]


def _stroke(line: charts.Line) -> str:
    dash = "4 2" if line.published else _DASHES[line.dash % len(_DASHES)]
    width = 1.3 if line.thin or line.published else 2.2
    return f"fill='none' stroke='{line.colour}' stroke-width='{width}'" + (
        f" stroke-dasharray='{dash}'" if dash else ""
    )


def _mark(line: charts.Line, x: float, y: float) -> str:
    """The line's marker there: lines are told apart without colour too."""
    if line.marker == charts.NO_MARKER:
        return ""
    fill = "white" if line.published else line.colour
    r = 2.4 if line.thin or line.published else 3.2
    corners = MARKERS[line.marker % len(MARKERS)]
    if not corners:
        return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{r}' fill='{fill}' stroke='{line.colour}'/>"
    points = " ".join(f"{x + r * dx:.1f},{y + r * dy:.1f}" for dx, dy in corners)
    return f"<polygon points='{points}' fill='{fill}' stroke='{line.colour}'/>"


def _legend(lines: Sequence[charts.Line], y: float) -> tuple[list[str], float]:
    """An entry a measured line, as many in a row as fit, and one for all published ones; and where they end."""
    own = [line for line in lines if not line.published]
    entries = [(line, line.label) for line in own]
    if len(own) < len(lines):
        published = next(line for line in lines if line.published)
        entries.append((published, "published"))
    parts, x, y = [], 14.0, y + 16
    for line, label in entries:
        width = 52 + 7.4 * len(label)
        if x > 14 and x + width > WIDTH:
            x, y = 14.0, y + 20
        parts.append(f"<path d='M{x:.1f},{y - 4:.1f}h30' {_stroke(line)}/>")
        parts += [_mark(line, x + 15, y - 4), _text(x + 36, y, label, 13, Ink.TEXT)]
        x += width
    return parts, y + 6
