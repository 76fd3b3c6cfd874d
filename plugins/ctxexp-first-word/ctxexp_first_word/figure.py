"""The figure of a sweep with and without first words: a panel a measure, a hue a model, dashes without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report import wording
from ctxexp.report.frame import Style, blank, dress
from ctxexp.report.palette import FAINT, GRID, INK, colours
from ctxexp.report.wording import Run
from ctxexp_first_word import words
from ctxexp_first_word.effects import METRICS, Effect, effects, frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DASHED = (0, (3, 1.5))


def figure(runs: Sequence[Run]) -> Figure | None:
    """A panel for each measure that runs with and without first words have; None without a pair of these."""
    from matplotlib.lines import Line2D

    found = effects(runs)
    if not found:
        return None
    numbers = frame(found)
    models = list(dict.fromkeys(effect.model for effect in found))
    colour = colours(models)
    panels = [panel for metric in METRICS if (panel := [effect for effect in found if effect.metric == metric])]
    drawn = blank(5.6 * len(panels), 3.9)
    for place, panel in enumerate(panels, start=1):
        _panel(drawn.add_subplot(1, len(panels), place), panel, colour)
    handles = [Line2D([], [], color=colour[model], linewidth=2) for model in models]
    handles += [Line2D([], [], color=INK, linewidth=2), Line2D([], [], color=INK, linewidth=2, linestyle=_DASHED)]
    names = [*models, "with the first word", "without it (encoded, not measured)"]
    wholes = list({effect.model: effect.whole for effect in found}.items())
    facts = [f"{effect_of}: {moved}" for effect_of, moved in words.tops(numbers).items()]
    dress(drawn, words.title(numbers), facts, handles, names, [words.NOTE, *wording.identities(wholes)])
    return drawn


def _panel(axes: Axes, panel: Sequence[Effect], colour: dict[str, str]) -> None:
    from matplotlib.ticker import MaxNLocator

    for effect in panel:
        for results, style in ((effect.whole, "-"), (effect.without, _DASHED)):
            held = results.held[effect.key]
            layers = np.arange(len(held.value))
            look: Style = {"color": colour[effect.model], "linestyle": style, "marker": "o", "markersize": 3.5}
            axes.plot(layers, held.value, linewidth=2, **look)
            axes.fill_between(layers, held.low, held.high, color=colour[effect.model], alpha=0.15, linewidth=0)
    first = panel[0]
    key, every = first.key, [effect.whole for effect in panel]
    axes.set_title(wording.title(key.measure, every), loc="left", fontsize=10.5, color=INK, parse_math=False)
    axes.axhline(0, color=FAINT, linewidth=0.8, zorder=1.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=14, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    axes.set_xlabel(wording.LAYER_AXIS, fontsize=9.5)
    axes.set_ylabel(wording.axis_label(key.measure, key.statistic, every, key.task), fontsize=9.5, parse_math=False)
    axes.tick_params(labelsize=9, length=3)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
