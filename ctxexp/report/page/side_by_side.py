"""The page's table of models side by side: each measure's own curve at the last layer, and where it is highest and
lowest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctxexp.report.charts import HEADLINES
from ctxexp.report.wording import LabelledResults, figure_name, full_title, mix_labels, table_number, unique_labels
from ctxexp.results.results import keys_beside, main_key, mix_mark
from ctxexp.results.values import Estimates, Key

if TYPE_CHECKING:
    from ctxexp.results import Results

AT = ("last layer", "highest layer", "lowest layer")


class ComparisonCell(NamedTuple):
    """A value at a layer with its interval (None: not known); how it is read; and what stands beside it there by name:
    raw, chance."""

    layer: int
    value: float
    low: float | None
    high: float | None
    text: str
    beside: dict[str, float]
    mark: str  # the bands that the run's text fills, where that of another run fills others


class ComparisonRow(NamedTuple):
    """A measure: its curve's name, the models' labels and a cell a model by place (`AT`), empty where the model hasn't
    got it."""

    title: str
    curve: str
    labels: list[str]
    cells: list[dict[str, ComparisonCell]]


def side_by_side(runs: Sequence[LabelledResults]) -> list[ComparisonRow]:
    """One row per measure, the headlines first, one cell per run."""
    labelled_runs = unique_labels(runs)
    every = [results for _, results in labelled_runs]
    measure_tasks = list(dict.fromkeys(measure_task for results in every for measure_task in results.measure_tasks()))
    first = [measure for measure in HEADLINES if any(measure == measure_task[0] for measure_task in measure_tasks)]
    order = {
        name: i for i, name in enumerate(dict.fromkeys([*first, *(figure_name(m, every) for m, _ in measure_tasks)]))
    }
    rows = []
    for measure, task in sorted(measure_tasks, key=lambda measure_task: order[figure_name(measure_task[0], every)]):
        keys = [main_key(results, measure, task) for results in every]
        labels = mix_labels(measure, labelled_runs)
        marks = [
            mix_mark(results, measure) * (shown != label)
            for shown, (label, results) in zip(labels, labelled_runs, strict=True)
        ]
        cells = [_cells(results, key, mark) for results, key, mark in zip(every, keys, marks, strict=True)]
        if any(cells):
            curve = str(next(filter(None, keys)))
            rows.append(ComparisonRow(full_title(measure, task, every), curve, labels, cells))
    return rows


def _cells(results: Results, key: Key | None, mark: str) -> dict[str, ComparisonCell]:
    estimates = results.by_key[key] if key else None
    if key is None or estimates is None or not np.isfinite(estimates.value).any():
        return {}
    last = max(results.info.model.layers, default=len(estimates.value) - 1)
    places = (last, int(np.nanargmax(estimates.value)), int(np.nanargmin(estimates.value)))
    spread = bool(results.info.seeds)
    beside = {name: results.by_key[other].value for name, other in keys_beside(results, key).items()}
    return {
        at: _cell(estimates, beside, layer, at, spread, mark)
        for at, layer in zip(AT, places, strict=True)
        if np.isfinite(estimates.value[layer])
    }


def _cell(
    estimates: Estimates, beside: Mapping[str, np.ndarray], layer: int, at: str, spread: bool, mark: str
) -> ComparisonCell:
    value, low, high = (float(column[layer]) for column in estimates)
    text = table_number(value)
    if np.isfinite([low, high]).all():
        text += f" ± {table_number((high - low) / 2)}" if spread else f" [{table_number(low)}, {table_number(high)}]"
    if at != AT[0]:
        text += f" (layer {layer})"
    ends = [end if np.isfinite(end) else None for end in (low, high)]
    there = {name: float(curve[layer]) for name, curve in beside.items() if np.isfinite(curve[layer])}
    return ComparisonCell(layer, value, ends[0], ends[1], text, there, mark)
