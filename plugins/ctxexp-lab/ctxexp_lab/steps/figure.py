"""Heat maps of a training: each measure by layer and training step; and a table of its last layer."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ctxexp import Estimate, Results
from ctxexp.report import (
    Ink,
    LabelledResults,
    Table,
    Training,
    add_captions,
    axis_label,
    claimed_order,
    decimal,
    empty_figure,
    full_title,
    shared_facts,
)  # fmt: skip
from ctxexp.results import LAYER, Key

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

COLOURS = "cividis"  # even in lightness, also to the colour-blind
MANY = 180  # cells of a map up to which each has its number
TURN = 0.1  # of the change between the ends: by how much values may lie beyond these
LEADING = ("contextuality", "self_similarity")  # of which the figure asks when context comes about
LABELLED = 14  # steps of a map that are all written


def figure(runs: Sequence[LabelledResults]) -> Figure | None:
    """Figure with a row for each measure and a column for each training: layers by steps; None without any."""
    runs_of = Training.of(runs)
    keys = curves(runs_of)
    if not keys:
        return None
    steps = max(len(training) for training in runs_of.values())
    n_layers = max(results.n_layers for results in _results(runs_of))
    wide, high = max(3.4, 0.36 * steps + 1.2), max(1.7, 0.22 * n_layers + 0.8)
    canvas = empty_figure(wide * len(runs_of) + 1.3, high * len(keys))
    grid = canvas.subplots(len(keys), len(runs_of), squeeze=False)
    for i, (row, key) in enumerate(zip(grid, keys, strict=True)):
        values = {name: _matrix(training, key) for name, training in runs_of.items()}
        finite = np.concatenate([value[np.isfinite(value)] for value in values.values()])
        for axes, (name, training) in zip(row, runs_of.items(), strict=True):
            image = _map(axes, values[name], training, (float(finite.min()), float(finite.max())))
            if i == 0:
                axes.set_title(name, loc="left", fontsize=10.5, color=Ink.TEXT, parse_math=False)
        title = full_title(key.measure, key.task, _results(runs_of))
        row[0].set_ylabel(f"{textwrap.fill(title, 30)}\nlayer", fontsize=8.5, parse_math=False)
        bar = canvas.colorbar(image, ax=list(row), fraction=0.02, pad=0.01)
        bar.ax.tick_params(labelsize=7.5)
        run = next(iter(runs_of.values()))[0].results  # for the words that all share
        labels = [
            axis_label(key.measure, key.name, [run]),
            f"lower = {lower}" if (lower := run.info.measure(key.measure).lower) else "",
        ]
        bar.set_label("\n".join(textwrap.fill(label, 32) for label in labels if label), fontsize=7.5, parse_math=False)
        bar.outline.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("training step", fontsize=9)
    facts = ["rows: layers, 0 = input layer; steps are evenly spaced on the page, not in time"]
    every = [(run.label, run.results) for training in runs_of.values() for run in training]
    shared = shared_facts(every, intervals=False)
    facts += [fact for fact in shared if not fact.endswith("kinds of weights")]  # steps are different weights
    notes = [f"{line}." for training in runs_of.values() for line in training.equal_weights()]
    notes += ["Each model is one training run."] * (len(runs_of) > 1)
    add_captions(canvas, question(runs_of, keys[0]), facts, [], [], notes, finding=finding(runs_of, keys[0]))
    return canvas


def curves(runs_of: Mapping[str, Training]) -> list[Key]:
    """The main curves by layer that every run of these trainings has."""
    of_runs = [[key for key in results.main_keys if key.place == LAYER] for results in _results(runs_of)]
    return [key for key in of_runs[0] if all(key in of_run for of_run in of_runs)] if of_runs else []


def _results(runs_of: Mapping[str, Training]) -> list[Results]:
    return [run.results for training in runs_of.values() for run in training]


def _matrix(training: Training, key: Key) -> np.ndarray:
    """(layers, steps) values."""
    return np.stack([run.results.by_key[key].value for run in training], axis=1)


def _map(axes: Axes, values: np.ndarray, training: Training, limits: tuple[float, float]) -> AxesImage:
    low, high = limits
    image = axes.imshow(values, vmin=low, vmax=high, cmap=COLOURS, origin="lower", aspect="auto")
    every = -(-len(training) // LABELLED)
    labels = [f"{run.step:,}" for run in training[::every]]
    axes.set_xticks(range(0, len(training), every), labels, fontsize=7.5, rotation=45)
    axes.set_yticks(range(0, len(values), max(1, len(values) // 7)))
    axes.tick_params(labelsize=7.5, length=2)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if values.size <= MANY:
        for i, j in np.ndindex(values.shape):
            if np.isfinite(values[i, j]):
                colour = "white" if values[i, j] < low + 0.55 * (high - low) else Ink.TEXT
                axes.text(j, i, short_number(float(values[i, j])), ha="center", va="center", fontsize=6, color=colour)
    return image


def short_number(value: float) -> str:
    """A number for a cell of a map: `.24`, `−.05`, `1.20`, `34.5`."""
    text = decimal(value) if abs(value) < 10 else f"{value:.3g}".replace("-", "\u2212")
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def frame(runs: Sequence[LabelledResults]) -> pd.DataFrame:
    """Table with a row for each training, measure, step and layer."""
    import pandas as pd

    runs_of, rows = Training.of(runs), []
    for name, training in runs_of.items():
        for key in curves(runs_of):
            for run in training:
                value, low, high = run.results.by_key[key]
                for layer in np.flatnonzero(np.isfinite(value)).tolist():
                    row: dict[str, object] = {"training": name, **key.columns, "step": run.step, "layer": layer}
                    rows.append(row | {"value": value[layer], "low": low[layer], "high": high[layer]})
    return pd.DataFrame(rows)


def half_step(steps: Sequence[int], values: Sequence[float]) -> int:
    """The first step by which half of the whole change is made."""
    change = np.asarray(values) - values[0]
    return steps[int(np.argmax(change * np.sign(change[-1]) >= abs(change[-1]) / 2))]


def overshoots(values: Sequence[float]) -> bool:
    """Whether values lie beyond both ends by more than a tenth of the change, so that the ends don't tell what happens
    between them."""
    change = np.asarray(values) - values[0]
    slack = TURN * abs(change[-1])
    return bool(change.min() < min(0, change[-1]) - slack or change.max() > max(0, change[-1]) + slack)


def farthest(values: Sequence[float]) -> int:
    """The place of the value that is the farthest from the first one."""
    return int(np.argmax(np.abs(np.asarray(values) - values[0])))


@dataclass(frozen=True)
class Course:
    """A layer's course in training.

    Args:
        estimates: The values by step.
        far: Place of the step whose value is the farthest from the first one.
        turns: Whether that value may be said to lie beyond both ends.
        changes: Whether the ends may be said to differ.
        half: The first step by which half of the change is made.
    """

    estimates: list[Estimate]
    far: int
    turns: bool
    changes: bool
    half: int

    @classmethod
    def of(cls, training: Training, key: Key, layer: int) -> Course:
        """The course of a curve's layer; changes are spoken of by the rule of `ctxexp.report.changes`."""
        curves_at = [run.results.by_key[key] for run in training]
        estimates = [Estimate(float(v[layer]), float(low[layer]), float(high[layer])) for v, low, high in curves_at]
        values, order = claimed_order([(run.results, key, layer) for run in training])
        far = farthest(values.tolist())
        turns = overshoots(values.tolist()) and bool(order[0, far] and order[far, -1])
        half = half_step([run.step for run in training], values.tolist())
        return cls(estimates, far, turns, bool(order[0, -1]), half)

    @property
    def text(self) -> str:
        """A cell of the table: `turns`, `no change`, or the step by which half of the change is made."""
        return "turns" if self.turns else f"{self.half:,}" if self.changes else "no change"


def table(runs: Sequence[LabelledResults]) -> Table | None:
    """Table of each measure in the last layer: at the first step, the farthest from it and the last, and the step by
    which half of the change is made; None without a training."""
    numbers = frame(runs)
    if numbers.empty:
        return None
    runs_of, lines = Training.of(runs), []
    for name, training in runs_of.items():
        for key in curves(runs_of):
            layer = _last_layer(training, key)
            if layer is not None:
                course = Course.of(training, key, layer)
                cells = [_cell(training[i].step, course.estimates[i]) for i in (0, course.far, -1)]
                lines.append([name, key.curve_name, str(layer), *cells, course.text])
    columns = [
        "training",
        "measure",
        "layer",
        "first step",
        "farthest from it",
        "last step",
        "half of the change by step",
    ]
    notes = ["no change: none that these data can show; turns: values lie beyond both ends"]
    notes += [line for training in runs_of.values() for line in training.equal_weights()]
    return Table("The last layer in training", numbers, columns, lines, notes)


def _cell(step: int, estimate: Estimate) -> str:
    value, low, high = (decimal(x, 3) for x in (estimate.value, estimate.low, estimate.high))
    return f"{step:,}: {value}" + (f" [{low}, {high}]" if np.isfinite(estimate.low) else "")


def question(runs_of: Mapping[str, Training], key: Key) -> str:
    """The figure's title: the question that the measure of its sentence answers."""
    if key.measure in LEADING:
        return "When in training does context come about?"
    title = full_title(key.measure, key.task, _results(runs_of))
    return f"{title}: when in training does it change?"


def finding(runs_of: Mapping[str, Training], key: Key) -> str:
    """A sentence on a measure's last layer in each training; empty where that layer isn't known at each step."""
    phrases = [phrase for name, training in runs_of.items() if (phrase := _phrase(name, training, key))]
    if not phrases:
        return ""
    scale = f", {key.label()}" if key.statistic in ("share_of_room", "adjusted") else ""
    return f"{full_title(key.measure, key.task, _results(runs_of))} in the last layer{scale}: {'; '.join(phrases)}."


def _phrase(name: str, training: Training, key: Key) -> str:
    """The course of one training: "in bert 0.34 at step 0, 0.74 at step 128, 0.51 at step 512 (turns)"."""
    last_layer = training[0].results.n_layers - 1
    if _last_layer(training, key) != last_layer:
        return ""
    course = Course.of(training, key, last_layer)
    places = [0, course.far, -1] if course.turns else [0, -1]
    values = ", ".join(f"{decimal(course.estimates[i].value)} at step {training[i].step:,}" for i in places)
    text = f"half of that by step {course.half:,}" if course.changes and not course.turns else course.text
    return f"in {name} {values} ({text})" if np.isfinite(course.estimates[-1].low) else f"in {name} {values}"


def _last_layer(training: Training, key: Key) -> int | None:
    """The last layer in which the curve has a value at each step; None: none."""
    every = np.isfinite(_matrix(training, key)).all(axis=1)
    return int(np.flatnonzero(every)[-1]) if every.any() else None
