"""The calibration league as a figure, isotropy gained against Spearman gained, and as a table by Spearman."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from ctxexp.report import Ink, LabelledResults, Table, add_captions, colours, empty_figure, shared_facts
from ctxexp_measures.calibration.league.standings import GEOMETRY, NONE, Standing, measure_of, standings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "Does isotropy help? Isotropy gained against Spearman gained"
_X: tuple[tuple[Callable[[Standing], float], str], ...] = (
    (lambda row: row.less_cosine, "drop of the mean cosine"),
    (lambda row: row.more_isoscore, "gain of IsoScore"),
)


def league_figure(runs: Sequence[LabelledResults]) -> Figure | None:
    """Gains over `none`: a column of axes a model, a colour a transform; rows for the last layers, by either measure of
    isotropy, and for the layers that are best without a transform, where those are others.

    None unless runs hold `sts` and `sentence_geometry` for several transforms of a model, `none` among them.
    """
    rows = [row for row in standings(runs) if row.transform != NONE and math.isfinite(row.gain)]
    last = [row for row in rows if row.place.last]
    best = [row for row in rows if row.place.best]
    bands = [("last layer", last)]
    if any(not row.place.last for row in best):
        bands.append(("best layer of none", best))
    bands = [(heading, some) for heading, some in bands if some]
    if not bands:
        return None
    names = sorted({row.transform for row in rows})
    models = list(dict.fromkeys(row.model for row in rows))
    colour = colours(names)
    figure = empty_figure(max(7.0, 3.3 * len(models) + 0.4), 2.5 * len(bands) * len(_X))
    grid = figure.subplots(len(bands) * len(_X), len(models), squeeze=False, sharex="row", sharey="row")
    for i, ((heading, some), (x_of, words)) in enumerate(product(bands, _X)):
        for j, model in enumerate(models):
            axes = grid[i, j]
            _draw(axes, [row for row in some if row.model == model], x_of, colour)
            axes.set_xlabel(words, fontsize=9.5)
            axes.set_title(model if i == 0 else "", loc="left", fontsize=10.5, color=Ink.TEXT, parse_math=False)
        grid[i, 0].set_ylabel(f"{heading}:\ngain of Spearman × 100", fontsize=9)
    _add_captions(figure, runs, rows, colour, finding(last))
    return figure


def finding(rows: Sequence[Standing]) -> str:
    """The sentence on the last layers: where the transform that is best for the score is also the most isotropic one,
    where it is level with the next, and how many of the gains are certain."""
    if not rows:
        return ""
    by_model = {row.model: [each for each in rows if each.model == row.model] for row in rows}
    best = {model: max(own, key=lambda row: row.gain) for model, own in by_model.items()}
    same = [
        model
        for model, own in by_model.items()
        if best[model] is max(own, key=lambda row: (math.isfinite(row.more_isoscore), row.more_isoscore))
    ]
    level = sum(row.is_level for row in best.values())
    certain = sum(row.low > 0 for row in rows)
    where = f"also gains most IsoScore in {' and '.join(same) or 'none'} of {len(by_model)} models"
    return (
        f"At the last layer {certain} of {len(rows)} gains of Spearman are above 0 with their whole interval; the "
        f"transform that gains most of it {where}, and is level with the next in {level}."
    )


def _draw(
    axes: Axes,
    rows: Sequence[Standing],
    x_of: Callable[[Standing], float],
    colour: dict[str, str],
) -> None:
    for row in rows:
        x = x_of(row)
        if not math.isfinite(x):
            continue
        if math.isfinite(row.low):
            axes.vlines(x, row.low, row.high, color=colour[row.transform], linewidth=1.4, alpha=0.7, zorder=3)
        axes.plot(
            [x], [row.gain], marker="o", color=colour[row.transform], markersize=7, linestyle="none",
            markeredgecolor="white", markeredgewidth=0.7, zorder=4,
        )  # fmt: skip
    for line in (axes.axhline, axes.axvline):
        line(0, color=Ink.FAINT, linewidth=0.8, zorder=1.5)
    axes.tick_params(labelsize=9, length=3)
    axes.grid(color=Ink.GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _add_captions(
    figure: Figure,
    runs: Sequence[LabelledResults],
    rows: Sequence[Standing],
    colour: dict[str, str],
    finding: str,
) -> None:
    from matplotlib.lines import Line2D

    quiet: dict[str, Any] = {"linestyle": "none", "markersize": 7}
    names = sorted({row.transform for row in rows})
    handles = [Line2D([], [], color=colour[name], marker="o", **quiet) for name in names]
    tasks = list(dict.fromkeys(task for row in rows for task in row.scores))
    compared = [(row.model, run) for row in rows for run in row.runs]
    facts = [f"Spearman over all pairs of a task, mean over {', '.join(tasks)}" if len(tasks) > 1 else tasks[0]]
    facts += shared_facts(compared, transforms=False)
    over = dict.fromkeys(row.over for row in rows if row.over)
    notes = [f"Bars: 95% intervals of the gain, over {' or '.join(over)}."] if over else []
    best = dict.fromkeys(f"{row.model} {row.place.at}" for row in rows if row.place.best and not row.place.last)
    notes += [f"Best layer without a transform, by the same scores: {', '.join(best)}."] if best else []
    add_captions(figure, TITLE, facts, handles, names, notes, finding=finding)


TABLE_TITLE = "Does isotropy help? Transforms by their mean Spearman × 100 (all pairs of a task), model by model"


def table_league(runs: Sequence[LabelledResults]) -> Table | None:
    """The table, best first in each model and place; None unless runs hold `sts` and `sentence_geometry` for several
    transforms of a model."""
    import pandas as pd

    rows = standings(runs)
    if not rows:
        return None
    tasks = list(dict.fromkeys(task for row in rows for task in row.scores))
    columns: dict[str, list[object]] = {
        "model": [row.model for row in rows],
        "vectors": [row.place.name for row in rows],
        "layer": [row.place.at for row in rows],
        "rank": [row.rank for row in rows],
        "transform": [row.transform for row in rows],
        "runs": [len(row.runs) for row in rows],
        "fitted": [{None: "", True: "measured text", False: "other text"}[row.transductive] for row in rows],
        **{key: [row.geometry[key] for row in rows] for key in GEOMETRY},
        **{task: [row.scores.get(task, math.nan) for row in rows] for task in tasks},
        "average": [row.score for row in rows],
        "gain": [row.gain for row in rows],
        "gain_ci_low": [row.low for row in rows],
        "gain_ci_high": [row.high for row in rows],
        "interval_over": [row.over for row in rows],
        "lead": [row.lead for row in rows],
        "lead_ci_low": [row.lead_low for row in rows],
        "lead_ci_high": [row.lead_high for row in rows],
        "mean_cosine_drop": [row.less_cosine for row in rows],
        "isoscore_gain": [row.more_isoscore for row in rows],
    }
    several = len(tasks) > 1
    head = ["model", "vectors", "#", "transform", "cosine", "IsoScore", *tasks]
    head += [*(["average"] if several else []), "gain over none [95%]", "over", "before the next [95%]"]
    lines = []
    for row in rows:
        cells = [row.model, str(row.place), str(row.rank), row.transform + " †" * bool(row.transductive)]
        cells += [_number(row.geometry["mean_cosine"], 3), _number(row.geometry["isoscore"], 3)]
        cells += [_number(row.scores.get(task, math.nan), 2) for task in tasks]
        cells += [_number(row.score, 2)] if several else []
        gain = "" if row.transform == NONE else f"{row.gain:+.2f}" if math.isfinite(row.gain) else "–"
        gain += f" [{row.low:+.2f}, {row.high:+.2f}]" * bool(row.over)
        lead = f"{row.lead:.2f} [{row.lead_low:.2f}, {row.lead_high:.2f}]" if math.isfinite(row.lead_low) else ""
        lines.append([*cells, gain, row.over, lead + ", level" * (row.is_level and math.isfinite(row.lead))])
    return Table(TABLE_TITLE, pd.DataFrame(columns), head, lines, _notes(runs, rows))


def _notes(runs: Sequence[LabelledResults], rows: Sequence[Standing]) -> list[str]:
    notes = []
    for metric in ("sts", "sentence_geometry"):
        definitions = {label: r.info.definition(label) for _, r in runs if (label := measure_of(r, metric))}
        notes += [f"{label}: {definition}" for label, definition in definitions.items()]
    if any(row.place.best for row in rows):
        notes.append(
            "the best layer was chosen without any transform, by the score that is shown: this favours the row none"
        )
    if any("pairs" in row.over for row in rows):
        notes.append(
            "interval over pairs: paired bootstrap, the same resampled pairs for both, drawn within each sub-set; what "
            "another text would give is not covered"
        )
    if any("seeds" in row.over for row in rows):
        notes.append(
            "interval over seeds: Student's t of their mean, for chance in the fit, of which a single run tells "
            "nothing; numbers of such a row are means over its runs"
        )
    if any(math.isfinite(row.lead) for row in rows):
        notes.append(
            "before the next: less the score one place below, an interval each; level where it is unknown or holds 0"
        )
    if any(row.transductive for row in rows):
        notes.append("†: transductive, fitted on the measured sentences themselves (never on their scores)")
    pooled = dict.fromkeys(str(run.info.pooling.name) for row in rows for run in row.runs if run.info.pooling.name)
    return [*notes, f"sentence vectors: {', '.join(pooled)}"] if pooled else notes


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "–"
