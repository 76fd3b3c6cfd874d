"""Results and configuration as what MLflow stores: names it allows, flat texts, a few scalars."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping

import numpy as np

from ctxexp.report.wording import main_curves
from ctxexp.results import Results

MAX_VALUE, MAX_NAME = 6000, 250  # characters that MLflow takes


def overview(results: Results) -> dict[str, float]:
    """Per measure its main curve's mean over layers, last layer and layer of the minimum.

    MLflow's run list shows last values only, hence these. No slash: their charts come last, after the curves.
    """
    found = {}
    for key in main_curves(results):
        curve = results.held[key].value
        kept = np.where(np.isfinite(curve), curve, np.nan)
        some = bool(np.isfinite(kept).any())
        name = f"{key.subject} {key.statistic}"
        found[f"{name} mean"] = float(np.nanmean(kept)) if some else math.nan
        found[f"{name} last layer"] = float(kept[-1]) if kept.size else math.nan
        found[f"{name} layer of minimum"] = float(np.nanargmin(kept)) if some else math.nan
    return found


def metric_name(key: str) -> str:
    """The key in the characters that MLflow allows (letters, digits, `_-./: `); keys of ctxexp pass unchanged."""
    kept = "".join(c if c.isalnum() or c in "_-./: " else "_" for c in key)
    return "/".join(part for part in kept.replace("..", "_").split("/") if part)[:MAX_NAME]


def metric_names(keys: Iterable[str]) -> dict[str, str]:
    """Each key's name in MLflow, none of them twice: keys that differ in other characters only get a number."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for key in keys:
        name, n = metric_name(key), 1
        while name in taken:
            n += 1
            name = f"{metric_name(key)[: MAX_NAME - 8]} {n}"
        names[key] = name
        taken.add(name)
    return names


def flat(values: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """Nested values as MLflow params: dotted keys, texts as they are, all else as JSON; too long ones say so."""
    found: dict[str, str] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found.update(flat(value, f"{name}."))
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        if len(text) > MAX_VALUE:
            note = " ... (whole in run.json or results.json)"
            text = text[: MAX_VALUE - len(note)] + note
        found[metric_name(name)] = text
    return found


def headline(error: str) -> str:
    """The line that says what went wrong: the last one of a traceback, the first of a plain message."""
    lines = [line for line in error.strip().splitlines() if line.strip()]
    if not lines:
        return ""
    if not lines[0].startswith("Traceback"):
        return lines[0][:500]
    return next((x for x in reversed(lines) if not x.startswith((" ", "\t"))), lines[-1])[:500]
