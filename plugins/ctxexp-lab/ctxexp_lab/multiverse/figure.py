"""The specification curve: effects sorted, with intervals, over a matrix of the choices behind each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report import Ink, LabelledResults, add_captions, decimal, empty_figure
from ctxexp_lab.multiverse.joint import Joint, joint
from ctxexp_lab.multiverse.specifications import Specification, differing_choices, specifications, variance_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOUR = {"falls": "#0072b2", "rises": "#d55e00", "open": "#999999"}
NAMES = {"falls": "falls, for certain", "rises": "rises, for certain", "open": "the interval holds 0"}
BASELINE_NOTE = (
    "Baseline: what is subtracted, the measure's value on unrelated occurrences: the run's own (as configured), that "
    "of random groups of each word's own size (size-matched), or nothing."
)


def figure(runs: Sequence[LabelledResults]) -> Figure | None:
    """All specifications of the runs; None where these are no multiverse."""
    from matplotlib.lines import Line2D

    specs, together = specifications(runs), joint(runs)
    if not specs or together is None:
        return None
    choices = differing_choices(specs)
    rows = sum(len(options) for options in choices.values()) + 0.6 * len(choices)
    fig = empty_figure(9.6, 3.0 + 0.17 * rows)
    grid = fig.add_gridspec(2, 1, height_ratios=[3.0, 0.17 * rows])
    top = fig.add_subplot(grid[0])
    _curve(top, specs, together)
    _matrix(fig.add_subplot(grid[1], sharex=top), specs, choices)
    handles = [Line2D([], [], color=COLOUR[kind], marker="o", markersize=4, linestyle="-") for kind in NAMES]
    names = list(NAMES.values())
    handles.append(Line2D([], [], color=Ink.FAINT, linewidth=5, alpha=0.35))
    names.append("layers shuffled, 5% to 95%")
    if together.twin.size:
        handles.append(Line2D([], [], color=Ink.TEXT, linewidth=1, linestyle=":"))
        names.append("the untrained twin's, sorted")
    notes = [
        f"All together: {together.sentence()}.",
        "An effect is the measure in the last layer less that in the first, with its 95% interval on the same "
        "resamples, each by itself. Equal specifications are merged, and marked at each option. Percentages: the "
        f"share of the effects' variance that hangs on that choice alone. {BASELINE_NOTE} Each model is one training "
        "run.",
    ]
    text = {one.choices[1] for one in specs}
    add_captions(fig, title(specs, together), [f"text {', '.join(sorted(text))}"], handles, names, notes)
    return fig


def title(specs: Sequence[Specification], together: Joint) -> str:
    """The median effect with what chance gives, and how many specifications bear the claim out or deny it."""
    counts = Counter(one.verdict for one in specs)
    models = ", ".join(sorted({one.choices[0] for one in specs}))
    median = together.statistics[0]
    change = decimal(median.value, 3, sign=True)
    return (
        f"{models}: how alike a word's vectors are changes by {change} from the first layer to the last, "
        f"the median of {len(specs)} ways to measure it (layers shuffled: p = {median.p:.2f}): "
        f"{counts['falls']} fall, {counts['rises']} rise, {counts['open']} are open"
    )


def _curve(axes: Axes, specs: Sequence[Specification], together: Joint) -> None:
    at = np.arange(len(specs))
    axes.fill_between(at, *np.percentile(together.null, [5, 95], axis=0), color=Ink.FAINT, alpha=0.2, linewidth=0)
    if together.twin.size:
        places = np.linspace(0, len(specs) - 1, len(together.twin))
        axes.plot(places, together.twin, color=Ink.TEXT, linewidth=1, linestyle=":")
    for i, one in enumerate(specs):
        axes.plot([i, i], [one.low, one.high], color=COLOUR[one.verdict], linewidth=1, alpha=0.6)
        axes.plot(i, one.effect, "o", color=COLOUR[one.verdict], markersize=2.6)
    axes.axhline(0, color=Ink.TEXT, linewidth=0.8)
    axes.set_ylabel("last layer less first", fontsize=9.5)
    axes.tick_params(labelsize=8.5, bottom=False, labelbottom=False)
    axes.grid(axis="y", color=Ink.GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "bottom"]].set_visible(False)


def _matrix(axes: Axes, specs: Sequence[Specification], choices: dict[str, list[str]]) -> None:
    """A row an option, a mark where the specification has it; each choice with the variance that hangs on it."""
    at, ticks, labels = 0.0, [], []
    for name, options in choices.items():
        axes.text(
            -0.01, at, f"{name} ({variance_share(specs, name):.0%})", transform=axes.get_yaxis_transform(), ha="right",
            va="center", fontsize=8, fontweight="bold", color=Ink.TEXT,
        )  # fmt: skip
        at += 0.95
        for option in options:
            where = [i for i, one in enumerate(specs) if option in one.options(name)]
            colours = [COLOUR[specs[i].verdict] for i in where]
            axes.scatter(where, np.full(len(where), at), marker="|", s=16, linewidths=0.9, c=colours)
            ticks.append(at)
            labels.append(option)
            at += 1
        at += 0.25
    axes.set_yticks(ticks, labels)
    axes.tick_params(axis="y", labelsize=7.5, length=0, colors=Ink.FAINT)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_ylim(at - 0.3, -0.8)
    axes.set_xlabel("specifications, sorted by their effect", fontsize=9)
    axes.spines[:].set_visible(False)
