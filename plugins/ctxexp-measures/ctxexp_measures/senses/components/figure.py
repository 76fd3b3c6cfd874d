"""Figure and table of variance components by layer: one column per model, one row per text, components stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp.report import PALETTE, Ink, LabelledResults, Table, add_captions, empty_figure, unique_labels
from ctxexp.results import Key
from ctxexp_measures.senses.components.metric import CONTEXT, ROUNDING

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "variance_components"
PARTS = {  # from the foot up: what is of the word alone, its place, then what is context
    "word": (PALETTE[3], "word"),
    "form": (PALETTE[8], "form (exact pieces: case, blank before, inflection)"),
    "position": (PALETTE[9], "position"),
    "sense": (PALETTE[0], "sense"),
    "document": (PALETTE[5], "document"),
    "sentence": (PALETTE[4], "sentence"),
    "rest": (PALETTE[1], "rest: this word in this sentence"),
}
DECIMALS = 4
FLOOR = "floor: context in that layer where each word is read alone, at its place"
UNKNOWN = "floors aren't known: control=alone in the same sweep gives them"
SCALED = "estimates below 0 are drawn as 0, and the others of that layer scaled to end at 100%, by at most {:.1%}"
_FLOOR: dict[str, Any] = {"color": Ink.TEXT, "linewidth": 1.2, "linestyle": (0, (1, 1))}
BELOW = "†: a component's whole interval lies below 0 there, which no variance can: the rows don't follow the model"


def frame(runs: Sequence[LabelledResults]) -> pd.DataFrame:
    """Table with a row for each run, task and layer: model, corpus, words (all, or ambiguous), layer, floor, shares
    with their intervals. Runs of the words alone have no row: they are others' floors."""
    import pandas as pd

    rows = []
    for label, results in models(_without_twins(runs)):
        for measure in (m for m, about in results.info.measures.items() if about.name == NAME):
            numbers = results.frame[results.frame["measure"] == measure]
            alone = results.twin(measure, "alone", runs)
            for (task, layer), group in numbers.groupby(["task", "layer"], sort=False):
                row = {"model": label, "corpus": results.info.corpus.name, "words": task or "all", "layer": int(layer)}
                floor = None if alone is None else alone.by_name.get(str(Key(measure, "context", task)))
                row["floor"] = np.nan if floor is None else floor[int(layer)]
                for each in group.itertuples():
                    row[str(each.statistic)] = each.value
                    if np.isfinite(each.low):
                        row |= {f"{each.statistic}_low": each.low, f"{each.statistic}_high": each.high}
                rows.append(row)
    return pd.DataFrame(rows)


def _without_twins(runs: Sequence[LabelledResults]) -> list[LabelledResults]:
    return [one for one in runs if not any(other.info.control_by(one[1].info) == "alone" for _, other in runs)]


def models(runs: Sequence[LabelledResults], name: str = NAME) -> list[LabelledResults]:
    """The runs that have a metric, labelled by their models' names without the texts; by the runs' own labels where
    models' names don't distinguish them."""
    labelled = [
        (label, results)
        for label, results in unique_labels(runs)
        if any(about.name == name for about in results.info.measures.values())
    ]
    named = [(r.info.model.name or label, r) for label, r in labelled]
    encoders: dict[str, set[tuple[str, str, str]]] = {}
    for model, r in named:
        encoders.setdefault(model, set()).add((r.info.model.encoder, r.info.control, r.info.transform.name))
    once = len({(model, r.info.corpus.name) for model, r in named}) == len(named)
    return named if once and all(len(identities) == 1 for identities in encoders.values()) else labelled


def table(runs: Sequence[LabelledResults]) -> Table | None:
    """Table of each model's shares in its last layer, and the layer of most context; None without any such run."""
    numbers = frame(runs)
    if numbers.empty:
        return None
    parts = [part for part in PARTS if part in numbers]
    lines = []
    for (model, corpus, words), rows in numbers.groupby(["model", "corpus", "words"], sort=False):
        last = rows.sort_values("layer").iloc[-1]
        most = rows.loc[rows.context.idxmax()] if rows.context.notna().any() else last
        cells = [
            "" if np.isnan(last.floor) else f"{last.floor:z.3f}",
            f"{last.context:.3f} [{last.context_low:.3f}, {last.context_high:.3f}]",
        ]
        cells += ["" if np.isnan(last[part]) else f"{last[part]:.3f}" for part in parts]
        lines.append([model, corpus, words, str(last.layer), *cells, f"{most.context:.3f} (layer {most.layer})"])
    columns = ["model", "corpus", "words", "layer", "floor", "context [95%]", *parts, "most context"]
    notes = [f"context: {', '.join(part for part in CONTEXT if part in parts)} together", _floors(numbers)]
    notes += [
        f"{one.model} on {one.corpus}, {one.words} words, layer {one.layer}: {', '.join(below)} below 0 with the whole "
        "interval, which no variance can be: the rows don't follow the model there"
        for one in numbers.itertuples()
        if (below := below_zero(one._asdict()))
    ]
    return Table("What word vectors vary with, in the last layer", numbers, columns, lines, notes)


def below_zero(row: Mapping[str, object]) -> list[str]:
    """The components of a row of the frame whose whole interval is below 0."""
    return [part for part in PARTS if float(str(row.get(f"{part}_high", "nan"))) < -ROUNDING]


def _floors(numbers: pd.DataFrame) -> str:
    """What the floor is, or how it is had."""
    return FLOOR if numbers.floor.notna().any() else UNKNOWN


def figure(runs: Sequence[LabelledResults]) -> Figure | None:
    """Figure with a column for each model, a row for each text and its ambiguous words; None without any such run."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    numbers = frame(runs)
    if numbers.empty:
        return None
    labelled = models(_without_twins(runs))
    by_encoder = {results.info.model.encoder: (label, results) for label, results in labelled}
    names = list(dict.fromkeys(numbers.model))
    kinds = list(dict.fromkeys(zip(numbers.corpus, numbers.words, strict=True)))
    canvas = empty_figure(max(6.4, 2.9 * len(names) + 0.8), 2.5 * len(kinds) + 0.3)
    grid = canvas.subplots(len(kinds), len(names), squeeze=False, sharey=True)
    for i, (corpus, words) in enumerate(kinds):
        for j, model in enumerate(names):
            mine = numbers[(numbers.model == model) & (numbers.corpus == corpus) & (numbers.words == words)]
            _panel(grid[i, j], mine, first=i == 0, side=f"{corpus}, {words} words" if j == 0 else "", model=model)
    there = [part for part in PARTS if part in numbers]
    handles: list[object] = [Patch(color=PARTS[part][0]) for part in there]
    facts = ["share of the variance of the vectors, all dimensions together", "whiskers: 95% interval of all context"]
    facts += [f"context: {', '.join(part for part in CONTEXT if part in there)}", _floors(numbers)]
    excess = float(-np.minimum(numbers[there].fillna(0), 0).sum(axis=1).min())
    facts += [SCALED.format(excess / (1 + excess))] if excess > ROUNDING else []
    facts += [BELOW] if any(below_zero(row) for row in numbers.to_dict("records")) else []
    title = "Of all that varies in a layer's word vectors, how much is context?"
    facts.append(controls(labelled))
    names = [PARTS[part][1] for part in there]
    if numbers.floor.notna().any():
        handles, names = [*handles, Line2D([], [], **_FLOOR)], [*names, "1 less the floor"]
    encoders = list(by_encoder.values())
    add_captions(canvas, title, facts, handles, names, [], finding=finding(numbers), encoders=encoders)
    return canvas


def finding(numbers: pd.DataFrame) -> str:
    """The sentence on the first text's last layers: the share of context of each model, with its interval."""
    rows = numbers[(numbers.corpus == numbers.corpus.iloc[0]) & (numbers.words == numbers.words.iloc[0])]
    last = rows[rows.layer == rows.groupby("model").layer.transform("max")].dropna(subset=["context"])
    if last.empty:
        return ""
    shares = [
        f"{row.context:.1%} [{100 * row.context_low:.1f}, {100 * row.context_high:.1f}] in {row.model}"
        + ("" if np.isnan(row.floor) else f" (floor {row.floor:z.1%})")
        for row in last.itertuples()
    ]
    return f"In the last layer context makes {', '.join(shares)} ({rows.corpus.iloc[0]}, {rows.words.iloc[0]} words)."


def controls(runs: Sequence[LabelledResults]) -> str:
    """A figure's fact that names the controls of the runs; "" without any."""
    controls_used = dict.fromkeys(results.info.control for _, results in runs)
    return f"control: {', '.join(controls_used)}" if list(controls_used) != ["none"] else ""


def _panel(axes: Axes, rows: pd.DataFrame, *, first: bool, side: str, model: str) -> None:
    """Draw each layer's components as a stacked bar, negative ones below 0."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    if first:
        axes.set_title(model, loc="left", fontsize=10.5, color=Ink.TEXT, pad=14, parse_math=False)
    if side:
        axes.set_ylabel(side, fontsize=9.5, parse_math=False)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9, length=3)
    if rows.empty:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", fontsize=9, color=Ink.FAINT)
        return
    x = rows.layer.to_numpy()
    heights = {part: np.maximum(rows[part].fillna(0).to_numpy(), 0) for part in PARTS if part in rows}
    whole = np.maximum(np.sum(list(heights.values()), axis=0), 1)  # above 1 by what lies below 0
    top = np.zeros(len(x))
    for part, height in heights.items():
        axes.bar(x, height / whole, 0.86, bottom=top, color=PARTS[part][0], linewidth=0)
        top = top + height / whole
    for at, row in zip(x, rows.to_dict("records"), strict=True):
        if below_zero(row):
            axes.text(at, 1.01, "†", ha="center", va="bottom", fontsize=9, color=Ink.TEXT)
    axes.hlines(1 - rows.floor, x - 0.43, x + 0.43, zorder=4, **_FLOOR)
    low, high = (1 - rows[f"context_{end}"].to_numpy() for end in ("high", "low"))
    axes.vlines(x, low, high, color=Ink.TEXT, linewidth=1.4, zorder=4)
    axes.axhline(0, color=Ink.TEXT, linewidth=0.6)
    axes.set_ylim(0, 1)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
    axes.set_xlabel("layer (0 = input layer)", fontsize=9)
