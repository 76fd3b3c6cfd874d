"""Self-similarity by class of word: a row a model, a column a kind of classes, a line a class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report import wording
from ctxexp.report.frame import Style, blank, dress
from ctxexp.report.palette import FAINT, GRID, INK, PALETTE
from ctxexp.report.wording import Run
from ctxexp.results import Results
from ctxexp.results.values import Held, Key

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "self_similarity_by_class"
TITLES = {"pos": "part of speech", "frequency": "occurrences in the text", "pieces": "the model's tokens of a word"}

LEVEL = "random occurrences"
_DASHED = (0, (4, 2))


def figure(runs: Sequence[Run]) -> Figure | None:
    """A row a model, a column a kind of classes; None without any."""
    from matplotlib.lines import Line2D

    found = [
        (label, measure, results)
        for label, results in wording.unique_labels(runs)
        for measure, about in results.info.measures.items()
        if about.name == NAME
    ]
    if not found:
        return None
    curves = [curves_of(results, measure) for _, measure, results in found]
    kinds = [kind for kind in TITLES if any(kind in each for each in curves)]
    drawn = blank(3.5 * len(kinds) + 0.4, 2.9 * len(found))
    grid = drawn.subplots(len(found), len(kinds), squeeze=False, sharey="row")
    for i, (label, measure, results) in enumerate(found):
        level = results.held.get(Key(measure, "baseline"))
        for j, kind in enumerate(kinds):
            _panel(grid[i, j], curves[i].get(kind, {}), level)
            if i == 0:
                grid[i, j].set_title(TITLES[kind], loc="left", fontsize=10.5, color=INK, parse_math=False)
        grid[i, 0].set_ylabel(label, fontsize=9.5, parse_math=False)
    facts = ["mean cosine over all pairs of a word's occurrences, mean over the words of a class, 95% interval"]
    handles = [Line2D([], [], color=FAINT, linewidth=1.2, linestyle=_DASHED)]
    shown = [(label, results) for label, _, results in found]
    dress(drawn, "Self-similarity by class of word", facts, handles, [LEVEL], wording.identities(shown))
    return drawn


def curves_of(results: Results, measure: str) -> dict[str, dict[str, Held]]:
    """The curves by kind and class, classes in their order: by name, or by their first number."""
    found: dict[str, dict[str, Held]] = {}
    for key, held in results.held.items():
        kind, _, name = key.task.partition(" ")
        if key.measure == measure and key.statistic == "raw" and kind in TITLES:
            found.setdefault(kind, {})[name] = held
    return {kind: {name: of[name] for name in sorted(of, key=_order)} for kind, of in found.items()}


def _order(name: str) -> tuple[int, str]:
    """Classes of numbers by their first, the others by name."""
    first = name.rstrip("+").split("-")[0]
    return (int(first) if first.isdigit() else -1, name)


def _panel(axes: Axes, curves: dict[str, Held], level: Held | None) -> None:
    from matplotlib.ticker import MaxNLocator

    for i, (name, held) in enumerate(curves.items()):
        x, colour = np.arange(len(held.value)), PALETTE[i % len(PALETTE)]
        look: Style = {"color": colour, "linewidth": 1.8, "marker": "o", "markersize": 3}
        axes.plot(x, held.value, label=name, **look)
        axes.fill_between(x, held.low, held.high, color=colour, alpha=0.15, linewidth=0)
    if level is not None:
        axes.plot(np.arange(len(level.value)), level.value, color=FAINT, linewidth=1.2, linestyle=_DASHED)
    axes.set_ylim(top=1.02)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    axes.set_xlabel(wording.LAYER_AXIS, fontsize=9)
    axes.tick_params(labelsize=9, length=3)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if curves:
        axes.legend(fontsize=7.5, frameon=False, ncols=2)
