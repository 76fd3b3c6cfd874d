"""The page's table of models side by side: each measure's own curve at the last layer, and where it is highest and
lowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ctxexp.report.wording import LabelledResults, full_title, mix_labels, table_number
from ctxexp.results import Key, Results
from ctxexp.results.results import keys_beside, main_key, mix_mark

AT = ("last layer", "highest layer", "lowest layer")


def side_row(measure: str, task: str, runs: Sequence[LabelledResults]) -> dict[str, Any]:
    """A measure's row: its title, its curve's name, the models' labels, and a model's cells by place (`AT`), none where
    it hasn't got the measure."""
    keys = [main_key(results, measure, task) for _, results in runs]
    labels = mix_labels(measure, runs)
    cells = []
    for (label, results), key, shown in zip(runs, keys, labels, strict=True):
        cells.append(_cells(results, key, mix_mark(results, measure) * (shown != label)))
    title = full_title(measure, task, [results for _, results in runs])
    return {"title": title, "curve": str(next(filter(None, keys))), "labels": labels, "cells": cells}


def _cells(results: Results, key: Key | None, mark: str) -> dict[str, dict[str, Any]]:
    """A model's cells; `mark`: the bands that the run's text fills, where that of another run fills others."""
    if key is None or not np.isfinite(y := results.by_key[key].value).any():
        return {}
    last = max(results.info.model.layers, default=len(y) - 1)
    layers = dict(zip(AT, (last, int(np.nanargmax(y)), int(np.nanargmin(y))), strict=True))
    return {at: _cell(results, key, layer, at, mark) for at, layer in layers.items() if np.isfinite(y[layer])}


def _cell(results: Results, key: Key, layer: int, at: str, mark: str) -> dict[str, Any]:
    """A value in a layer with its interval (None: not known); how it is read; and what stands beside it there: raw and
    chance, by name and as they are read."""
    value, *ends = (float(part[layer]) for part in results.by_key[key])
    text, has_interval = table_number(value), bool(np.isfinite(ends).all())
    if has_interval and results.info.seeds:
        text += f" ± {table_number((ends[1] - ends[0]) / 2)}"
    elif has_interval:
        text += f" [{', '.join(map(table_number, ends))}]"
    if at != AT[0]:
        text += f" (layer {layer})"
    curves = {name: results.by_key[other].value for name, other in keys_beside(results, key).items()}
    beside = {name: float(curve[layer]) for name, curve in curves.items() if np.isfinite(curve[layer])}
    aside = ", ".join(filter(None, [mark, *(f"{name} {table_number(number)}" for name, number in beside.items())]))
    low, high = ends if has_interval else (None, None)
    return {"layer": layer, "value": value, "low": low, "high": high, "text": text, "beside": beside, "aside": aside}
