"""Heat maps of a training: each measure by layer and training step; and a table of its last layer."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report import run_facts, wording
from ctxexp.report.frame import add_captions, empty_figure
from ctxexp.report.palette import INK
from ctxexp.report.sweep_tables import Cells, SweepTable
from ctxexp.report.training_steps import RunAtStep, equal_weights, trainings
from ctxexp.report.wording import LabelledResults
from ctxexp.results import Results
from ctxexp.results.values import LAYER, Key

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

COLOURS = "cividis"  # even in lightness, also to the colour-blind
MANY = 180  # cells of a map up to which each has its number
TURN = 0.1  # of the change between the ends: by how much values may lie beyond these
LABELLED = 14  # steps of a map that are all written


def figure(runs: Sequence[LabelledResults]) -> Figure | None:
    """Figure with a row for each measure and a column for each training: layers by steps; None without any."""
    runs_of = trainings(runs)
    keys = curves(runs_of)
    if not keys:
        return None
    steps = max(len(at) for at in runs_of.values())
    wide, high = max(3.4, 0.36 * steps + 1.2), max(1.7, 0.22 * _n_layers(runs_of) + 0.8)
    canvas = empty_figure(wide * len(runs_of) + 1.3, high * len(keys))
    grid = canvas.subplots(len(keys), len(runs_of), squeeze=False)
    for i, (row, key) in enumerate(zip(grid, keys, strict=True)):
        values = {name: _matrix(at, key) for name, at in runs_of.items()}
        finite = np.concatenate([value[np.isfinite(value)] for value in values.values()])
        for axes, (name, at) in zip(row, runs_of.items(), strict=True):
            image = _map(axes, values[name], at, (float(finite.min()), float(finite.max())))
            if i == 0:
                axes.set_title(name, loc="left", fontsize=10.5, color=INK, parse_math=False)
        title = wording.full_title(key.measure, key.task, [run.results for at in runs_of.values() for run in at])
        row[0].set_ylabel(f"{textwrap.fill(title, 30)}\nlayer", fontsize=8.5, parse_math=False)
        bar = canvas.colorbar(image, ax=list(row), fraction=0.02, pad=0.01)
        bar.ax.tick_params(labelsize=7.5)
        bar.set_label(textwrap.fill(wording.axis_label(key.measure, key.name, [found_run(runs_of)]), 26), fontsize=7.5)
        bar.outline.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("training step", fontsize=9)
    facts = ["rows: layers, 0 = input layer; steps are evenly spaced on the page, not in time"]
    shared = run_facts.shared_facts([(run.label, run.results) for at in runs_of.values() for run in at])
    facts += [fact for fact in shared if not fact.endswith("kinds of weights")]  # the steps are
    notes = [f"{line}." for at in runs_of.values() for line in equal_weights(at)]
    title = "When in training does context come about?"
    add_captions(canvas, title, facts, [], [], notes, finding=" ".join(_sentence(runs_of, keys[0])))
    return canvas


def found_run(found: Mapping[str, Sequence[RunAtStep]]) -> Results:
    """The first run, for the words that all share."""
    return next(iter(found.values()))[0].results


def curves(found: Mapping[str, Sequence[RunAtStep]]) -> list[Key]:
    """The main curves by layer that every run of these trainings has."""
    of_runs = [
        [key for key in wording.main_keys(run.results) if key.place == LAYER] for at in found.values() for run in at
    ]
    return [key for key in of_runs[0] if all(key in of_run for of_run in of_runs)] if of_runs else []


def _n_layers(found: Mapping[str, Sequence[RunAtStep]]) -> int:
    return max(run.results.n_layers for at in found.values() for run in at)


def _matrix(at: Sequence[RunAtStep], key: Key) -> np.ndarray:
    """(layers, steps) values."""
    return np.stack([run.results.by_key[key].value for run in at], axis=1)


def _map(axes: Axes, values: np.ndarray, at: Sequence[RunAtStep], limits: tuple[float, float]) -> AxesImage:
    low, high = limits
    image = axes.imshow(values, vmin=low, vmax=high, cmap=COLOURS, origin="lower", aspect="auto")
    every = -(-len(at) // LABELLED)
    axes.set_xticks(range(0, len(at), every), [f"{run.step:,}" for run in at[::every]], fontsize=7.5, rotation=45)
    axes.set_yticks(range(0, len(values), max(1, len(values) // 7)))
    axes.tick_params(labelsize=7.5, length=2)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if values.size <= MANY:
        for i, j in np.ndindex(values.shape):
            if np.isfinite(values[i, j]):
                dark = values[i, j] < low + 0.55 * (high - low)
                text = f"{values[i, j]:.2f}" if abs(values[i, j]) < 10 else f"{values[i, j]:.3g}"
                text = text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text
                axes.text(j, i, text, ha="center", va="center", fontsize=6, color="white" if dark else INK)
    return image


def frame(runs: Sequence[LabelledResults]) -> pd.DataFrame:
    """Table with a row for each training, measure, step and layer."""
    import pandas as pd

    runs_of, rows = trainings(runs), []
    for name, at in runs_of.items():
        for key in curves(runs_of):
            for run in at:
                value, low, high = run.results.by_key[key]
                for layer in np.flatnonzero(np.isfinite(value)).tolist():
                    row: Cells = {"training": name, **key.columns, "step": run.step, "layer": layer}
                    rows.append(row | {"value": value[layer], "low": low[layer], "high": high[layer]})
    return pd.DataFrame(rows)


def half_step(steps: Sequence[int], values: Sequence[float]) -> int | None:
    """The first step by which half of the whole change is made; None where values go far beyond it, by more than a
    tenth of the change, so that the ends don't tell what happens between them."""
    change = [value - values[0] for value in values]
    ends = sorted([0.0, change[-1]])
    slack = TURN * abs(change[-1])
    if min(change) < ends[0] - slack or max(change) > ends[1] + slack:
        return None
    return next(step for step, difference in zip(steps, change, strict=True) if abs(difference) >= abs(change[-1]) / 2)


def farthest(steps: Sequence[int], values: Sequence[float]) -> tuple[int, float]:
    """The step whose value is the farthest from the first one's, and that value."""
    return max(zip(steps, values, strict=True), key=lambda at: abs(at[1] - values[0]))


def table(runs: Sequence[LabelledResults]) -> SweepTable | None:
    """Table of each measure in the last layer, at the first step and the last; None without a training."""
    numbers = frame(runs)
    if numbers.empty:
        return None
    lines = []
    for (name, measure, task), rows in numbers.groupby(["training", "measure", "task"], sort=False):
        last = rows[rows.layer == rows.layer.max()]
        first, end = last.iloc[0], last.iloc[-1]
        steps, values = last.step.tolist(), last.value.tolist()
        far, half = last.iloc[steps.index(farthest(steps, values)[0])], half_step(steps, values)
        if half is None:
            by = "turns" if is_change(first, far) and is_change(far, end) else "no change"
        else:
            by = f"{half:,}" if is_change(first, end) else "no change"
        curve = Key(measure, "", task).curve_name
        lines.append([name, curve, str(end.layer), _cell(first), _cell(far), _cell(end), by])
    runs_of = trainings(runs)
    columns = [
        "training",
        "measure",
        "layer",
        "first step",
        "farthest from it",
        "last step",
        "half of the change by step",
    ]
    notes = ["no change: the intervals of the first and the last step overlap; turns: values lie beyond both ends"]
    notes += [line for at in runs_of.values() for line in equal_weights(at)]
    return SweepTable("The last layer in training", numbers, columns, lines, notes)


def is_change(first: pd.Series, last: pd.Series) -> bool:
    """Whether the intervals of two values lie apart; without intervals, whether the values differ."""
    if not np.isfinite([first.low, first.high, last.low, last.high]).all():
        return bool(first.value != last.value)
    return bool(first.high < last.low or last.high < first.low)


def _cell(row: pd.Series) -> str:
    interval = f" [{row.low:.3f}, {row.high:.3f}]" if np.isfinite(row.low) else ""
    return f"{row.step:,}: {row.value:.3f}{interval}"


def _sentence(found: Mapping[str, Sequence[RunAtStep]], key: Key) -> list[str]:
    """A sentence a training on the first measure's last layer."""
    sentences = []
    for name, at in found.items():
        steps, values = [run.step for run in at], [float(run.results.by_key[key].value[-1]) for run in at]
        title = wording.title(key.measure, [run.results for run in at], key.task)
        if np.isfinite(values).all() and values[0] != values[-1]:
            half, (far, value) = half_step(steps, values), farthest(steps, values)
            way = f", half of that by step {half:,}" if half is not None else f", by way of {value:.2f} at step {far:,}"
            sentences.append(
                f"{name}: {title.lower()} in the last layer goes from {values[0]:.2f} at step {steps[0]:,} to "
                f"{values[-1]:.2f} at step {steps[-1]:,}{way}."
            )
    return sentences
