"""Scores by layer that others measured, from a table: a model, a task, a layer and a score a row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp.datasets import read_table
from ctxexp.errors import DataError, UnknownName
from ctxexp_compare.layer_choice.choice import Candidate, ScoreTable

COLUMNS = ("model", "task", "layer", "score")
RELEASED = ("family", "size", "revision", "layer", "task", "split", "subset", "main_score")
ENGLISH = ("default", "en", "en-en")  # subsets of a multilingual task that count
Scores = dict[int, dict[str, float]]  # by layer and task


def score_file_table(source: Any, model: str, twin: str = "") -> ScoreTable:
    """The table of a model's scores in a table of scores by layer.

    Args:
        source: The path of a table, or one in memory, with columns model, task, layer, score and, where families of
            tasks are known, family; or the table made of Skean et al.'s (2025) released MTEB results: family, size,
            revision, layer, task, split, subset, main_score, of which the test split in English counts and a model is
            called `family-size`, or `family-size@revision`.
        model: The model's name in the table.
        twin: That of its untrained twin; empty: none.

    Returns:
        Scores in points (those of a table whose scores all lie in [-1, 1] times 100), of the tasks and layers that have
        all scores.

    Raises:
        DataError: The table can't be read, lacks a column, gives a model's layer two scores on a task, or has no layer
            with scores of all tasks.
        UnknownName: No such model in it.
    """
    name = source if isinstance(source, Path) else type(source).__name__
    if not (rows := [*_rows(source)]):
        raise DataError(f"{name} has no scores; expected rows with columns {', '.join(COLUMNS)}")
    factor = 100.0 if max(abs(row["score"]) for row in rows) <= 1 else 1.0
    own = _by_layer(rows, model, name)
    tables = [own] if not twin else [own, _by_layer(rows, twin, name)]
    shared = sorted(set.intersection(*(set(next(iter(table.values()))) for table in tables)))
    if not shared:
        raise DataError(f"{name}: {model} and {twin} have no task in common; expected scores of the same tasks")
    candidates = [Candidate(layer, twin=k == 1) for k, table in enumerate(tables) for layer in table]
    scores = np.array([[by_task[task] for table in tables for by_task in table.values()] for task in shared]) * factor
    mine = [row for row in rows if row["model"] == model]
    left_out = sorted({row["layer"] for row in mine} - own.keys())
    notes = [f"layers without scores of all tasks are left out: {', '.join(map(str, left_out))}"] if left_out else []
    return ScoreTable(
        model, tuple(shared), tuple(candidates), scores, None, tuple(notes), _families(mine, shared, name)
    )


def _families(rows: Iterable[Mapping[str, Any]], tasks: list[str], name: object) -> tuple[str, ...]:
    """The family of each task, by a column `family` of the table; empty without one."""
    by_task: dict[str, set[str]] = {}
    for row in rows:
        if "family" in row:
            by_task.setdefault(row["task"], set()).add(str(row["family"] or "").strip())
    for task in tasks if by_task else ():
        if len(by_task[task]) != 1 or "" in by_task[task]:
            raise DataError(
                f"{name}: task {task} has the families {sorted(by_task[task])}; expected one in all its rows"
            )
    return tuple(family for task in tasks for family in by_task.get(task, ()))


def _by_layer(rows: Iterable[Mapping[str, Any]], model: str, name: object) -> Scores:
    """A model's scores; layers without all tasks left out."""
    if model not in (names := {row["model"] for row in rows}):
        raise UnknownName(f"model in {getattr(name, 'name', name)}", model, sorted(names))
    scores: Scores = {}
    for row in rows:
        if row["model"] == model:
            scores.setdefault(row["layer"], {})[row["task"]] = row["score"]
    tasks = {task for by_task in scores.values() for task in by_task}
    complete = {layer: scores[layer] for layer in sorted(scores) if scores[layer].keys() == tasks}
    if len(complete) < 2:
        raise DataError(
            f"{name}: {model} has {len(complete)} layers with scores of all its {len(tasks)} tasks; expected two or "
            "more"
        )
    return complete


def _rows(source: Any) -> Iterator[dict[str, Any]]:
    """The table's rows with the columns of COLUMNS, each model's layer and task once."""
    firsts: dict[tuple[object, ...], dict[str, Any]] = {}
    for where, row in read_table(source):
        if {*RELEASED} <= row.keys():
            if row["split"] != "test" or row["subset"] not in ENGLISH:
                continue
            revision = "" if row["revision"] in (None, "", "main") else f"@{row['revision']}"
            row |= {"model": f"{row.pop('family')}-{row['size']}".lower() + revision, "score": row.pop("main_score")}
        if missing := [name for name in COLUMNS if name not in row]:
            raise DataError(f"{where}: no column {', '.join(missing)}; it has {', '.join(row)}")
        try:
            layer, score = float(row["layer"]), float(row["score"])
        except (TypeError, ValueError):
            layer = score = math.nan
        if not layer.is_integer() or layer < 0 or not math.isfinite(score):
            raise DataError(
                f"{where}: layer={row['layer']!r}, score={row['score']!r}; expected a whole number from 0, the input "
                "layer, and a finite one"
            )
        row |= {"layer": int(layer), "score": score}
        if (first := firsts.setdefault(tuple(row[name] for name in COLUMNS[:3]), row)) is not row:
            raise DataError.of_key(where, COLUMNS[:3], first, row)
        yield row
