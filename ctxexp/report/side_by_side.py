"""Models side by side: each measure's own curve at the last layer, and where it is highest and lowest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctxexp.report.charts import PAPER_MEASURES
from ctxexp.report.wording import LabelledResults, figure_name, full_title, unique_labels
from ctxexp.results.curves import chance_key, main_key
from ctxexp.results.values import Estimates, Key

if TYPE_CHECKING:
    from ctxexp.results import Results

AT = ("last layer", "highest layer", "lowest layer")


class ComparisonCell(NamedTuple):
    """A value at a layer with its interval and the level of chance there (None: not known), and how it is read."""

    layer: int
    value: float
    low: float | None
    high: float | None
    chance: float | None
    text: str


class ComparisonRow(NamedTuple):
    """A measure: its curve's name, and a cell a model by place (`AT`), empty where the model hasn't got it."""

    title: str
    curve: str
    cells: list[dict[str, ComparisonCell]]


def side_by_side(runs: Sequence[LabelledResults]) -> list[ComparisonRow]:
    """One row per measure, the paper's first, one cell per run."""
    labelled_runs = unique_labels(runs)
    every = [results for _, results in labelled_runs]
    measure_tasks = list(dict.fromkeys(measure_task for results in every for measure_task in results.measure_tasks()))
    first = [measure for measure in PAPER_MEASURES if any(measure == measure_task[0] for measure_task in measure_tasks)]
    order = {
        name: i for i, name in enumerate(dict.fromkeys([*first, *(figure_name(m, every) for m, _ in measure_tasks)]))
    }
    rows = []
    for measure, task in sorted(measure_tasks, key=lambda measure_task: order[figure_name(measure_task[0], every)]):
        keys = [main_key(results, measure, task) for results in every]
        cells = [_cells(results, key) for results, key in zip(every, keys, strict=True)]
        if any(cells):
            rows.append(ComparisonRow(full_title(measure, task, every), str(next(filter(None, keys))), cells))
    return rows


def _cells(results: Results, key: Key | None) -> dict[str, ComparisonCell]:
    estimates = results.by_key[key] if key else None
    if estimates is None or not np.isfinite(estimates.value).any():
        return {}
    last = max(results.info.model.layers, default=len(estimates.value) - 1)
    places = (last, int(np.nanargmax(estimates.value)), int(np.nanargmin(estimates.value)))
    spread = bool(results.info.seeds)
    level = chance_key(results, key) if key else None
    chance = results.by_key[level].value if level else np.full(len(estimates.value), np.nan)
    return {
        at: _cell(estimates, chance, layer, at, spread)
        for at, layer in zip(AT, places, strict=True)
        if np.isfinite(estimates.value[layer])
    }


def _cell(estimates: Estimates, chance: np.ndarray, layer: int, at: str, spread: bool) -> ComparisonCell:
    value, low, high, level = (float(column[layer]) for column in (*estimates, chance))
    text = number(value)
    if np.isfinite([low, high]).all():
        text += f" ± {number((high - low) / 2)}" if spread else f" [{number(low)}, {number(high)}]"
    if at != AT[0]:
        text += f" (layer {layer})"
    numbers = [end if np.isfinite(end) else None for end in (low, high, level)]
    return ComparisonCell(layer, value, numbers[0], numbers[1], numbers[2], text)


def number(value: float) -> str:
    """Three decimals for shares and cosines, one for lengths."""
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
