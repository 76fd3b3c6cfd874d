"""Figures without matplotlib, in milliseconds: a chart laid out once as texts and paths, which are written as SVG and
as PDF. Runs and sweeps leave them in their folders: with the texts around them, and as wide as a column of a page.
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ctxexp.files import write_file
from ctxexp.report import captions, charts
from ctxexp.report.captions import Caption
from ctxexp.report.style import Ink, file_stem
from ctxexp.report.wording import LAYER_AXIS, LabelledResults
from ctxexp.results import Results

TICKS = 5  # about as many on an axis of values
GAP = 10  # of texts from the page's edges
MARKERS: tuple[Sequence[tuple[float, float]], ...] = (
    tuple((math.cos(i * math.pi / 8), math.sin(i * math.pi / 8)) for i in range(16)),  # a circle
    ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    ((0, -1.2), (1.2, 1), (-1.2, 1)),
    ((0, 1.2), (1.2, -1), (-1.2, -1)),
)
DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (3, 1.4),
    (1, 1.2),
    (6, 1.4, 1, 1.4),
    (6, 1.4, 1, 1.4, 1, 1.4),
)  # in widths
_WIDTHS = (  # of Helvetica's characters from the space on, in thousandths of its size
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278 "
    "584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 "
    "667 667 611 278 278 278 469 556 333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 "
    "278 556 500 722 500 500 500 334 260 334 584"
)
WIDTHS = dict(enumerate(map(int, _WIDTHS.split()), start=32))


class Text(NamedTuple):
    """A line of text whose baseline begins, or has its middle or end, at (x, y)."""

    x: float
    y: float
    text: str
    size: float
    ink: str
    anchor: float = 0.0  # 0: it begins there, 0.5: its middle, 1: its end
    bold: bool = False
    is_turned: bool = False  # read from below


class Outline(NamedTuple):
    """A line through points, or the area inside."""

    points: Sequence[tuple[float, float]]
    stroke: str = ""
    width: float = 1.0
    dash: Sequence[float] = ()
    fill: str = ""
    opacity: float = 1.0


Mark = Text | Outline


@dataclass(frozen=True)
class Look:
    """Sizes of a figure in points: its width, the height of a panel with its axis, that of its edges, of its texts."""

    width: float
    height: float
    left: float
    right: float
    bottom: float
    size: float
    line: float


PAGE = Look(690, 260, 92, 34, 40, 12, 2.2)
COLUMN = Look(3.3 * 72, 142, 36, 6, 27, 7, 1.2)  # 84 mm, of two-column pages


def write_run_charts(results: Results, folder: Path, *, published: bool = False) -> list[Path]:
    """Write an SVG for each measure of one run, and for print the leading one as wide as a column; the paths."""
    figures = list(captions.run_figures(results, published=published))
    leading = [key.measure for key in results.main_keys if any(chart.name == key.curve_name for chart, _ in figures)]
    return write_charts(figures, folder, leading[:1])


def write_sweep_charts(runs: Sequence[LabelledResults], folder: Path, *, published: bool = False) -> list[Path]:
    """Write the comparison of runs (chart label, results): overview.svg, an SVG for each measure, and for print those
    that come first as wide as a column; the paths."""
    figures = captions.sweep_figures(runs, published=published)
    return write_charts(figures, folder, charts.leading_charts([chart.name for chart, _ in figures[1:]]))


def write_charts(figures: Iterable[tuple[charts.Chart, Caption]], folder: Path, for_print: Sequence[str]) -> list[Path]:
    """Write each chart with its caption as SVG; of those `for_print` the first panel without one as SVG and PDF."""
    paths = []
    for chart, caption in figures:
        stem = folder / file_stem(chart.name)
        paths.append(write_file(stem.with_name(f"{stem.name}.svg"), svg(*page(chart, caption))))
        if chart.name in for_print:
            drawing = column(chart)
            paths.append(write_file(stem.with_name(f"{stem.name}_column.svg"), svg(*drawing)))
            paths.append(write_file(stem.with_name(f"{stem.name}_column.pdf"), pdf(*drawing)))
    return paths


def page(chart: charts.Chart, caption: Caption) -> tuple[Look, float, list[Mark]]:
    """The chart with title, finding and facts above its panels, legend and notes below; and its height."""
    look = PAGE
    marks, y = _texts([caption.title], GAP, 17, look.width, bold=True)
    for text, size, ink in (caption.finding, 14.5, Ink.TEXT), ("; ".join(filter(None, caption.facts)), 12, Ink.FAINT):
        more, y = _texts([text], y, size, look.width, ink)
        marks += more
    columns = min(len(chart.panels), 2)
    for first in range(0, len(chart.panels), columns):
        row = chart.panels[first : first + columns]
        limits = charts.limits(row)
        heads = [
            wrap(text, look.size, look.width / columns - 2 * GAP) for text in chart.headings[first : first + columns]
        ]
        top = y + 10 + 14 * max(map(len, heads), default=0)
        for i, panel in enumerate(row):
            x = i * look.width / columns
            for n, text in enumerate(heads[i] if heads else ()):
                marks.append(Text(x + GAP, top - 14 * (len(heads[i]) - n) + 4, text, look.size, Ink.TEXT))
            marks += _panel(panel, replace(look, width=look.width / columns), x, top, limits[panel.scale])
        y = top + look.height
    more, y = _legend(chart.lines, look, y + 8)
    marks += more
    more, y = _texts(caption.notes, y, look.size, look.width, Ink.FAINT)
    return look, y + 8, [*marks, *more]


def column(chart: charts.Chart) -> tuple[Look, float, list[Mark]]:
    """The chart's first panel, to be set in a column of a page, where a caption says the rest; and its height."""
    look, panel = COLUMN, replace(chart.panels[0], direction="")
    if panel.threshold is not None:
        look = replace(look, right=look.right + 12)
    marks = _panel(panel, look, 0, 4, charts.limits([panel])[panel.scale])
    more, y = _legend(charts.legend(panel.lines), look, look.height + 4)
    return look, y, [*marks, *more]


def text_width(text: str, size: float) -> float:
    """The width of a text in Helvetica, about; a wide character of other scripts is as wide as high."""
    wide = [1000 if unicodedata.east_asian_width(c) in "WF" else WIDTHS.get(ord(c), 556) for c in text]
    return sum(wide) * size / 1000


def wrap(text: str, size: float, width: float) -> list[str]:
    """The text in lines no wider than that, a long word aside."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _texts(
    texts: Sequence[str], y: float, size: float, width: float, ink: str = Ink.TEXT, *, bold: bool = False
) -> tuple[list[Mark], float]:
    """The texts in lines from `y` on; and where they end."""
    marks: list[Mark] = []
    for text in texts:
        for line in wrap(text, size, width - 2 * GAP):
            y += 1.35 * size
            marks.append(Text(GAP, y - 0.3 * size, line, size, ink, bold=bold))
    return marks, y


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
    """Where values stand on the page: `left` to `right` and `top` to `bottom`; in logarithms if `log`."""

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

    def across(self, y: float, ink: str, dash: Sequence[float] = (), width: float = 1.0) -> Outline:
        """A line across."""
        return Outline([(self.left, y), (self.right, y)], ink, width, dash)


def _panel(panel: charts.Panel, look: Look, left: float, top: float, limits: tuple[float, float]) -> Iterator[Mark]:
    last = max(max(line.x) for line in panel.lines)
    edges = left + look.left, left + look.width - look.right, top, top + look.height - look.bottom
    axes = _Axes(*edges, last, *limits, panel.scale == charts.LOG)
    yield from _frame(axes, panel, look, left)
    thin, small = look.line / 2.2, look.size * 0.92
    if panel.has_chance_at_zero:
        yield axes.across(axes.y(0), Ink.TEXT, width=thin)
        yield Text((axes.left + axes.right) / 2, axes.y(0) - 3, panel.chance, small, Ink.TEXT, 0.5)
    if panel.threshold is not None:
        y = axes.y(panel.threshold)
        yield axes.across(y, Ink.TEXT, (5, 3), thin)
        yield Text(axes.right + 2, y + 0.3 * look.size, f"{panel.threshold:.0%}", small, Ink.TEXT)
    for line in panel.lines:
        yield from _band(axes, line, look)
    for line in charts.drawing_order(panel.lines):
        yield from _curve(axes, line, look)


def _frame(axes: _Axes, panel: charts.Panel, look: Look, left: float) -> Iterator[Mark]:
    """The axes with their ticks and labels."""
    size, thin = look.size, look.line / 2.2
    for value, text in _ticks(axes.low, axes.high, log=axes.log):
        y = axes.y_of_tick(value)
        yield axes.across(y, Ink.GRID, width=thin)
        yield Text(axes.left - 0.4 * size, y + 0.35 * size, text, size, Ink.TEXT, 1)
    for layer in range(0, axes.last + 1, -(-(axes.last + 1) // 14)):
        yield Text(axes.x(layer), axes.bottom + 1.3 * size, str(layer), size, Ink.TEXT, 0.5)
    yield Outline([(axes.left, axes.top), (axes.left, axes.bottom), (axes.right, axes.bottom)], Ink.TEXT, thin)
    yield Text((axes.left + axes.right) / 2, axes.bottom + 2.7 * size, LAYER_AXIS, size, Ink.TEXT, 0.5)
    small, room = size * 0.92, axes.bottom - axes.top
    for n, text in enumerate([*wrap(panel.y_label, small, room), *wrap(panel.direction, small, room)]):
        x, y = left + 0.92 * size + 1.15 * small * n, (axes.top + axes.bottom) / 2
        yield Text(x, y, text, small, Ink.TEXT, 0.5, is_turned=True)


def _band(axes: _Axes, line: charts.Line, look: Look) -> Iterator[Mark]:
    """The line's interval; a whisker where a layer has no neighbour with one."""
    if line.low is None or line.high is None:
        return
    for run in _runs(line, line.low + line.high):
        upper = [(axes.x(i), axes.y(float(line.high[i]))) for i in run]
        lower = [(axes.x(i), axes.y(float(line.low[i]))) for i in reversed(run)]
        if len(run) == 1:
            yield Outline(upper + lower, line.colour, look.line / 2)
        else:
            yield Outline(upper + lower, fill=line.colour, opacity=0.2)


def _curve(axes: _Axes, line: charts.Line, look: Look) -> Iterator[Mark]:
    """The curve, with gaps where it is NaN, and its points."""
    for run in _runs(line, line.y):
        places = [(axes.x(i), axes.y(float(line.y[i]))) for i in run]
        yield _stroke(line, places, look)
        for x, y in places:
            yield from _marker(line, x, y, look)


def _runs(line: charts.Line, values: np.ndarray) -> list[list[int]]:
    """The line's layers at which the values (n_layers,) are finite, in stretches without a gap."""
    runs: list[list[int]] = [[]]
    for layer in line.x:
        if np.isfinite(values[layer]):
            runs[-1].append(layer)
        else:
            runs.append([])
    return [run for run in runs if run]


def _stroke(line: charts.Line, places: Sequence[tuple[float, float]], look: Look) -> Outline:
    width = look.line * (0.6 if line.is_quiet else 1.0)
    dash = [part * look.line for part in (DASHES[1] if line.published else DASHES[line.dash % len(DASHES)])]
    return Outline(places, line.colour, width + line.under * charts.CASING * look.line / 2.2, dash)


def _marker(line: charts.Line, x: float, y: float, look: Look) -> Iterator[Mark]:
    """The line's marker there: lines are told apart without colour too."""
    if line.marker == charts.NO_MARKER:
        return
    r = look.line * (1.1 if line.is_quiet else 1.45)
    corners = [(x + r * dx, y + r * dy) for dx, dy in MARKERS[line.marker % len(MARKERS)]]
    yield Outline(
        [*corners, corners[0]], line.colour, look.line / 2.2, fill="#ffffff" if line.published else line.colour
    )


def _legend(lines: Sequence[charts.Line], look: Look, y: float) -> tuple[list[Mark], float]:
    """An entry a measured line, as many in a row as fit, and one for all published ones; and where they end."""
    size, sample = look.size * 1.05, 2.5 * look.size
    marks: list[Mark] = []
    x, y = float(GAP), y + 1.3 * size
    for line, label in charts.legend_entries(lines):
        width = sample + size + text_width(label, size)
        if x > GAP and x + width > look.width - GAP:
            x, y = float(GAP), y + 1.55 * size
        at = y - 0.33 * size
        marks.append(_stroke(line, [(x, at), (x + sample, at)], look))
        marks += _marker(line, x + sample / 2, at, look)
        marks.append(Text(x + sample + 0.5 * size, y, label, size, Ink.TEXT))
        x += width + 0.6 * size
    return marks, y + 0.6 * size


def svg(look: Look, height: float, marks: Iterable[Mark]) -> str:
    """The drawing as SVG."""
    unit = "" if look.width == PAGE.width else "pt"
    size = f"{look.width:g} {height:.0f}"
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{look.width:g}{unit}' height='{height:.0f}{unit}' "
        f"viewBox='0 0 {size}' font-family='Helvetica, Arial, Liberation Sans, sans-serif'>",
        "<rect width='100%' height='100%' fill='white'/>",
        *map(_svg_mark, marks),
        "</svg>\n",
    ]
    return "\n".join(lines)


def _svg_mark(mark: Mark) -> str:
    if isinstance(mark, Outline):
        points = "L".join(f"{x:.1f},{y:.1f}" for x, y in mark.points)
        dash = f" stroke-dasharray='{' '.join(f'{part:.3g}' for part in mark.dash)}'" if mark.dash else ""
        fill = f"fill='{mark.fill or 'none'}'" + f" fill-opacity='{mark.opacity}'" * (mark.opacity < 1)
        stroke = f" stroke='{mark.stroke}' stroke-width='{mark.width:.3g}'" if mark.stroke else ""
        return f"<path d='M{points}' {fill}{stroke}{dash}/>"
    x, y = f"{mark.x:.1f}", f"{mark.y:.1f}"
    anchor = {0: "", 0.5: " text-anchor='middle'", 1: " text-anchor='end'"}[mark.anchor]
    more = " font-weight='bold'" * mark.bold + f" transform='rotate(-90 {x} {y})'" * mark.is_turned
    return (
        f"<text x='{x}' y='{y}' font-size='{mark.size:.3g}' fill='{mark.ink}'{anchor}{more}>{escape(mark.text)}</text>"
    )


def pdf(look: Look, height: float, marks: Iterable[Mark]) -> bytes:
    """The drawing as PDF, a point a point, in Helvetica, which every reader has; what that lacks becomes `?`."""
    content = zlib.compress("\n".join(["1 j", *(_pdf_mark(mark, height) for mark in marks)]).encode("cp1252"))
    font = "<< /Type /Font /Subtype /Type1 /Encoding /WinAnsiEncoding /BaseFont /Helvetica%s >>"
    resources = "<< /Font << /F0 5 0 R /F1 6 0 R >> /ExtGState << /G << /ca 0.2 >> /S << /ca 1 >> >> >>"
    box = f"[0 0 {look.width:.6g} {height:.6g}]"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox {box} /Contents 4 0 R /Resources {resources} >>".encode(),
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(content), content),
        (font % "").encode(),
        (font % "-Bold").encode(),
    ]
    file, places = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, start=1):
        places.append(len(file))
        file += b"%d 0 obj\n%b\nendobj\n" % (number, text)
    n = len(objects) + 1
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"trailer\n<< /Size {n} /Root 1 0 R >>\nstartxref\n{len(file)}\n%%EOF\n"
    return file + f"xref\n0 {n}\n0000000000 65535 f \n{table}{trailer}".encode()


def _pdf_mark(mark: Mark, height: float) -> str:
    if isinstance(mark, Outline):
        points = [f"{x:.2f} {height - y:.2f}" for x, y in mark.points]
        path = f"{points[0]} m " + " ".join(f"{point} l" for point in points[1:])
        paint = {(True, False): "S", (False, True): "f", (True, True): "b"}[bool(mark.stroke), bool(mark.fill)]
        colours = _rgb(mark.stroke, "RG") + _rgb(mark.fill, "rg")
        dash = " ".join(f"{part:.3g}" for part in mark.dash)
        return f"/{'G' if mark.opacity < 1 else 'S'} gs {colours}{mark.width:.3g} w [{dash}] 0 d {path} {paint}"
    text = mark.text.replace("\u2212", "\u2013").encode("cp1252", "replace").decode("cp1252")
    text = re.sub(r"([\\()])", r"\\\1", text)
    back = mark.anchor * text_width(mark.text, mark.size)
    place = (
        f"0 1 -1 0 {mark.x:.2f} {height - mark.y - back:.2f}"
        if mark.is_turned
        else (f"1 0 0 1 {mark.x - back:.2f} {height - mark.y:.2f}")
    )
    return f"/S gs {_rgb(mark.ink, 'rg')}BT /F{int(mark.bold)} {mark.size:.3g} Tf {place} Tm ({text}) Tj ET"


def _rgb(colour: str, operator: str) -> str:
    """The colour, set for strokes (`RG`) or areas and texts (`rg`); empty for none."""
    channels = [f"{int(colour[i : i + 2], 16) / 255:.3g}" for i in (1, 3, 5)] if colour else []
    return " ".join([*channels, operator, ""]) if channels else ""
