"""The specification curve, effects sorted, with intervals, over a matrix of the choices behind each; and its tables:
for each option of each choice how many specifications fall, and all together (see `joint`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report import Ink, LabelledResults, Table, add_captions, decimal, empty_figure
from ctxexp_lab.multiverse.joint import Joint, Statistic, joint
from ctxexp_lab.multiverse.specifications import (
    Specification,
    differing_choices,
    frame,
    specifications,
    variance_share,
)

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


def table(runs: Sequence[LabelledResults]) -> Table | None:
    """Table with one row for each option; None where these runs are no multiverse."""
    specs, together = specifications(runs), joint(runs)
    if not specs or together is None:
        return None
    cells = []
    for name, options in differing_choices(specs).items():
        for option in options:
            with_option = [one for one in specs if option in one.options(name)]
            counts = [str(sum(one.verdict == kind for one in with_option)) for kind in ("falls", "open", "rises")]
            median = decimal(float(np.median([one.effect for one in with_option])), 3, sign=True)
            cells.append([name, option, *counts, median, f"{variance_share(specs, name):.0%}"])
    columns = ["choice", "option", "falls", "open", "rises", "median effect", "variance that hangs on the choice"]
    notes = [
        f"All together: {together.sentence()}.",
        "An effect: the last layer less the first. Falls, rises: its 95% interval leaves 0 out. Specifications "
        "with equal results are merged, and counted at each of their options.",
    ]
    return Table(title(specs, together), frame(specs), columns, cells, notes)


def joint_table(runs: Sequence[LabelledResults]) -> Table | None:
    """Table with one row for each joint statistic and null; None where these runs are no multiverse."""
    together = joint(runs)
    if together is None:
        return None
    cells = [
        [one.name, decimal(one.value, 3, sign=True), _interval(one), one.null, decimal(one.expected, 3, sign=True),
         f"{one.p:.3f}" if np.isfinite(one.p) else ""]
        for one in together.statistics
    ]  # fmt: skip
    columns = ["all specifications", "value", "95% interval", "null", "expected", "p"]
    notes = [
        "Layers shuffled: p is the share of pairs of layers, called first and last in all specifications at once, that "
        "give as low a median or as high a share. Neighbouring layers are alike, so that it rejects too often: where "
        "all measures follow one random walk over 5 to 31 layers, p is .05 or less in 13% to 18%.",
        "Untrained twin: p is the share of resamples of the text in which the median isn't below the twin's, which is "
        "one draw of random weights.",
    ]
    return Table("The specifications together, against chance", together.frame, columns, cells, notes)


def _interval(one: Statistic) -> str:
    low, high = (decimal(end, 3, sign=True) for end in (one.low, one.high))
    return f"[{low}, {high}]" if np.isfinite(one.low) else ""
