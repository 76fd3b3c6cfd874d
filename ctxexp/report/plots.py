"""Charts drawn with matplotlib, for notebooks and for axes of one's own.

Its object interface only: nothing global is touched, nothing is left open, no display is needed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report import charts, wording
from ctxexp.report.captions import LINE_POINTS, Caption
from ctxexp.report.drawing import DASHES
from ctxexp.report.style import PAGE, Ink, Style, add_captions, empty_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_MARKERS = "osD^vPX<>h"


def chart_figure(chart: charts.Chart, caption: Caption) -> Figure:
    """The chart, two panels a row, with its caption."""
    columns = min(len(chart.panels), 2)
    rows = -(-len(chart.panels) // columns)
    figure = empty_figure(PAGE, 3.9 if rows == 1 else 3.3 * rows)
    for i, panel in enumerate(chart.panels):
        axes = figure.add_subplot(rows, columns, i + 1)
        row = chart.panels[i // columns * columns :][:columns]
        draw_panel(axes, panel, charts.limits(row)[panel.scale])
        if chart.headings:
            heading = "\n".join(textwrap.wrap(chart.headings[i], 42))
            axes.set_title(heading, loc="left", fontsize=9.5, color=Ink.TEXT, parse_math=False)
    handles, names = _legend(chart.lines)
    add_captions(figure, caption.title, caption.facts, handles, names, caption.notes, finding=caption.finding)
    return figure


def draw_on(axes: Axes, chart: charts.Chart) -> Figure:
    """Draw the chart's first panel on these axes, with a legend; returns their figure."""
    panel = chart.panels[0]
    draw_panel(axes, panel, charts.limits([panel])[panel.scale])
    handles, names = _legend(charts.legend(panel.lines))
    key = axes.legend(handles, [str(i) for i in range(len(names))], frameon=False, fontsize="small")
    for text, name in zip(key.get_texts(), names, strict=True):
        text.set(parse_math=False, text=name)  # labels are data: "$" and a leading "_" mean themselves
    return axes.get_figure(root=True)  # type: ignore[return-value]  # of axes that are in one


def draw_panel(axes: Axes, panel: charts.Panel, limits: tuple[float, float]) -> None:
    """Draw a panel's curves with the lines that they are read by, its y axis between these limits."""
    for line in panel.lines:
        _draw_line(axes, line)
    across = axes.get_yaxis_transform()
    if panel.threshold is not None:
        axes.axhline(panel.threshold, color=Ink.TEXT, linestyle="--", linewidth=1, zorder=2.5)
        style: Style = {"transform": across, "va": "bottom", "fontsize": 8.5, "color": Ink.TEXT}
        axes.text(1.005, panel.threshold, f"{panel.threshold:.0%}", **style)
    if panel.has_chance_at_zero:
        axes.axhline(0, color=Ink.TEXT, linewidth=1, zorder=1.5)
        axes.text(0.5, 0, panel.chance, transform=across, ha="center", va="bottom", fontsize=8.5, color=Ink.TEXT)
    _finish(axes, panel, limits)


def _draw_line(axes: Axes, line: charts.Line) -> None:
    """The line with its band; an interval without neighbours, which a band can't show, becomes a whisker."""
    x = np.array(line.x)
    axes.plot(x, line.y[x], **_style(line))
    if line.low is None or line.high is None:
        return
    low, high = line.low[x], line.high[x]
    axes.fill_between(x, low, high, color=line.colour, alpha=0.2, linewidth=0, zorder=1)
    has_interval = np.isfinite(low) & np.isfinite(high)
    is_isolated = has_interval & ~np.append(has_interval[1:], False) & ~np.append(False, has_interval[:-1])
    axes.vlines(x[is_isolated], low[is_isolated], high[is_isolated], color=line.colour, linewidth=1.5, zorder=3)


def _style(line: charts.Line) -> Style:
    """matplotlib's keywords for a curve."""
    dash = DASHES[1] if line.published else DASHES[line.dash % len(DASHES)]
    return {
        "color": line.colour,
        "linestyle": (0, dash) if dash else "-",
        "linewidth": LINE_POINTS * (0.6 if line.is_quiet else 1) + charts.CASING * line.under,
        "marker": "" if line.marker == charts.NO_MARKER else _MARKERS[line.marker % len(_MARKERS)],
        "markersize": 3.8 if line.is_quiet else 5,
        "markerfacecolor": "white" if line.published else line.colour,
        "zorder": 5 if line.published else 2 if line.thin else 4,
    }


def _legend(lines: Sequence[charts.Line]) -> tuple[list[Line2D], list[str]]:
    from matplotlib.lines import Line2D

    entries = charts.legend_entries(lines)
    return [Line2D([], [], **_style(line)) for line, _ in entries], [name for _, name in entries]


def _finish(axes: Axes, panel: charts.Panel, limits: tuple[float, float]) -> None:
    """Integer layers, a quiet grid; the y axis in logarithms where lengths differ by factors."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    low, high = limits
    if panel.scale == charts.LOG:
        low, high = 10**low, 10**high
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif low < 0 < high:
        axes.axhline(0, color=Ink.FAINT, linewidth=0.8, zorder=1.5)
    axes.set_ylim(low, high)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=14, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    axes.set_xlim(-0.4, max(max(line.x) for line in panel.lines) + 0.4)
    axes.set_xlabel(wording.LAYER_AXIS, fontsize=9.5)
    y_label = "\n".join(textwrap.wrap(panel.y_label, 36) + textwrap.wrap(panel.direction, 36))
    axes.set_ylabel(y_label, fontsize=9.5, parse_math=False)
    axes.tick_params(labelsize=9, length=3)
    axes.grid(axis="y", color=Ink.GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
