"""The figure of a sweep over the first position: a row a model, a column a chance level, a hue a condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctxexp.report import Ink, LabelledResults, add_captions, colours, empty_figure
from ctxexp_lab.first_word import words
from ctxexp_lab.first_word.effects import AS_TOKENIZED, METRICS, Effect, effects, frame, size_matched_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Column(NamedTuple):
    """One curve a condition: a metric, and whether it is held against groups of each group's own size."""

    metric: str
    is_matched: bool

    def curve(self, effect: Effect) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value and interval, (n_layers,) each."""
        if self.is_matched:
            return size_matched_curve(effect.results, effect.key)
        estimates = effect.results.by_key[effect.key]
        return estimates.value, estimates.low, estimates.high


_TITLES = {
    Column(METRICS[0], False): "Words, against the paper's level\n(two random words)",
    Column(METRICS[0], True): "Words, against random sentences\nof each one's own length",
    Column(METRICS[1], False): "Sentences, STS-B\n(mean of the words, cosine)",
}


def figure(runs: Sequence[LabelledResults]) -> Figure | None:
    """One row of panels per model; None without runs that differ in the first position."""
    from matplotlib.lines import Line2D

    all_effects = effects(runs)
    if not all_effects:
        return None
    numbers = frame(all_effects)
    models = list(dict.fromkeys(effect.model for effect in all_effects))
    conditions = list(dict.fromkeys(effect.condition for effect in all_effects))
    colour = dict(zip(conditions, [Ink.TEXT, *colours(conditions[1:]).values()], strict=True))
    columns = [column for column in _TITLES if any(_has(effect, column) for effect in all_effects)]
    shared: list[Axes] = []
    canvas = empty_figure(4.3 * len(columns), 2.35 * len(models) + 0.5)
    for i, model in enumerate(models):
        for j, column in enumerate(columns):
            own = [effect for effect in all_effects if effect.model == model and _has(effect, column)]
            axes: Axes = canvas.add_subplot(len(models), len(columns), i * len(columns) + j + 1)
            _panel(axes, own, column, colour)
            if (
                column.metric != "sts"
            ):  # one scale for models and levels, or what moves little looks like what moves much
                shared.append(axes)
            axes.set_title(_TITLES[column] if i == 0 else "", loc="left", fontsize=10, color=Ink.TEXT)
            axes.set_xlabel("layer (0 = input layer)" if i == len(models) - 1 else "", fontsize=9.5)
            axes.set_ylabel(model if j == 0 else "", fontsize=10.5, parse_math=False)
    _on_one_scale(shared)
    handles = [Line2D([], [], color=colour[one], linewidth=_width(one), marker="o", markersize=3) for one in conditions]
    facts = [f"{name}: {phrase}" for name, phrase in words.tops(numbers).items()]
    notes = [words.NOTE, words.BAND]
    add_captions(canvas, words.title(numbers), [], handles, conditions, notes, finding="; ".join(facts) + ".")
    return canvas


def _on_one_scale(panels: Sequence[Axes]) -> None:
    ends = [axes.get_ylim() for axes in panels]
    for axes in panels:
        axes.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))


def _has(effect: Effect, column: Column) -> bool:
    return effect.metric == column.metric and bool(np.isfinite(column.curve(effect)[0]).any())


def _width(condition: str) -> float:
    return 2.4 if condition == AS_TOKENIZED else 1.4


def _panel(axes: Axes, panel: Sequence[Effect], column: Column, colour: dict[str, str]) -> None:
    from matplotlib.ticker import MaxNLocator

    for effect in panel:
        value, low, high = column.curve(effect)
        layers = np.arange(len(value))
        hue, width = colour[effect.condition], _width(effect.condition)
        axes.plot(layers, value, color=hue, linewidth=width, marker="o", markersize=2.5)
        axes.fill_between(layers, low, high, color=hue, alpha=0.12, linewidth=0)
    if column.metric != "sts":
        axes.axhspan(
            -words.MATTERS[column.metric], words.MATTERS[column.metric], color=Ink.FAINT, alpha=0.18, linewidth=0
        )
        axes.axhline(0, color=Ink.TEXT, linewidth=1, zorder=1.5)
        axes.text(0.5, 0, "chance", transform=axes.get_yaxis_transform(), ha="center", va="bottom", fontsize=8.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    axes.tick_params(labelsize=9, length=3)
    axes.grid(axis="y", color=Ink.GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
