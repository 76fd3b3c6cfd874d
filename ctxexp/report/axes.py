"""A panel of a figure: its curves with their intervals, the lines that they are read by, and its axes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report import wording
from ctxexp.report.charts import LOG, Line, Panel
from ctxexp.report.frame import Style
from ctxexp.report.palette import FAINT, GRID, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

LINE_WIDTH = 2  # points
AXES_POINTS = 190  # height of a panel's axes, of all figures about the same
_MARKERS = "osD^vPX<>h"
_DASHES = ("-", (0, (3, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (6, 1.5, 1, 1.5, 1, 1.5)))


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw a panel's curves with the lines that they are read by."""
    for line in panel.lines:
        draw_line(axes, line)
    if panel.threshold is not None:
        draw_threshold(axes, panel.threshold)
    if panel.has_chance_at_zero:
        draw_chance(axes, "chance")
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
    marker = _MARKERS[line.marker % len(_MARKERS)]
    if line.published:
        return {
            "color": line.colour, "linestyle": (0, (4, 2)), "linewidth": 1.2, "marker": marker, "markersize": 4,
            "markerfacecolor": "white", "zorder": 5,
        }  # fmt: skip
    dash = _DASHES[line.dash % len(_DASHES)]
    return {
        "color": line.colour,
        "linestyle": dash,
        "linewidth": LINE_WIDTH,
        "marker": marker,
        "markersize": 5,
        "zorder": 4,
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
    axes.axhline(value, color=INK, linestyle="--", linewidth=1, zorder=2.5)
    place = axes.get_yaxis_transform()
    axes.text(1.005, value, f"{value:.0%}", transform=place, va="bottom", fontsize=8.5, color=INK)


def draw_chance(axes: Axes, text: str) -> None:
    """The zero line of adjusted values, named in its middle."""
    axes.update_datalim([(0, 0)], updatex=False)
    axes.axhline(0, color=INK, linewidth=1, zorder=1.5)
    axes.text(0.5, 0, text, transform=axes.get_yaxis_transform(), ha="center", va="bottom", fontsize=8.5, color=INK)


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
        axes.axhline(0, color=FAINT, linewidth=0.8, zorder=1.5)
    axes.set_xlabel(wording.LAYER_AXIS, fontsize=9.5)
    y_label = "\n".join(textwrap.wrap(y_label, 36) + textwrap.wrap(direction, 36))
    axes.set_ylabel(y_label, fontsize=9.5, parse_math=False)
    axes.tick_params(labelsize=9, length=3)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
