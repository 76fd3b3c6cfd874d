"""Scores by layer that others measured, from a table: a model, a task, a layer and a score a row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ctxexp.errors import ConfigError, DataError, UnknownName, error_text
from ctxexp_compare.layer_choice.choice import Candidate, ScoreTable

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("model", "task", "layer", "score")
RELEASED = ("family", "size", "revision", "layer", "task", "split", "subset", "main_score")
ENGLISH = ("default", "en", "en-en")  # subsets of a multilingual task that count


def score_file_table(path: Path, model: str, twin: str = "") -> ScoreTable:
    """The table of a model's scores in a file of scores by layer.

    Args:
        path: A CSV (also compressed) with columns model, task, layer, score and, where families of tasks are known,
            family; or the table made of Skean et al.'s (2025)
            released MTEB results: family, size, revision, layer, task, split, subset, main_score, of which the test
            split in English counts and a model is called `family-size`, or `family-size@revision`.
        model: The model's name in the table.
        twin: That of its untrained twin; empty: none.

    Returns:
        Scores in points (those of a file whose scores all lie in [-1, 1] times 100), of the tasks and layers that have
        all scores.

    Raises:
        DataError: The file can't be read, lacks a column, or has no layer with scores of all tasks.
        UnknownName: No such model in it.
    """
    rows = _rows(path)
    factor = 100.0 if rows["score"].abs().max() <= 1 else 1.0
    own = _by_layer(rows, model, path)
    tables = [own] if not twin else [own, _by_layer(rows, twin, path)]
    shared = [task for task in own.index if all(task in table.index for table in tables)]
    candidates = [Candidate(int(i), twin=k == 1) for k, table in enumerate(tables) for i in table.columns]
    if not shared:
        raise DataError(f"{path}: {model} and {twin} have no task in common; expected scores of the same tasks")
    import pandas as pd

    scores = pd.concat([table.loc[shared] for table in tables], axis=1).to_numpy() * factor
    left_out = sorted(set(rows.loc[rows["model"] == model, "layer"].astype(int)) - {int(i) for i in own.columns})
    notes = [f"layers without scores of all tasks are left out: {', '.join(map(str, left_out))}"] if left_out else []
    families = _families(rows[rows["model"] == model], shared, path)
    return ScoreTable(model, tuple(map(str, shared)), tuple(candidates), scores, None, tuple(notes), families)


def _families(rows: pd.DataFrame, tasks: list[str], path: Path) -> tuple[str, ...]:
    """The family of each task, by a column `family` of the file; empty without one."""
    if "family" not in rows.columns:
        return ()
    by_task = rows.groupby("task")["family"].unique()
    for task in tasks:
        if len(by_task[task]) != 1 or not str(by_task[task][0]).strip() or by_task[task][0] != by_task[task][0]:
            raise DataError(f"{path}: task {task} has the families {list(by_task[task])}; expected one in all its rows")
    return tuple(str(by_task[task][0]) for task in tasks)


def _by_layer(rows: pd.DataFrame, model: str, path: Path) -> pd.DataFrame:
    """Scores (tasks, layers), several of a task and layer averaged; layers without all tasks left out."""
    if model not in set(rows["model"]):
        raise UnknownName(f"model in {path.name}", model, sorted(set(rows["model"])))
    table = rows[rows["model"] == model].groupby(["task", "layer"])["score"].mean().unstack()
    table = table.loc[:, table.notna().all()]
    if table.shape[1] < 2:
        raise DataError(
            f"{path}: {model} has {table.shape[1]} layers with scores of all its {len(table)} tasks; expected two or "
            "more"
        )
    return table


def _rows(path: Path) -> pd.DataFrame:
    """The file's rows with the columns of COLUMNS."""
    import pandas as pd

    if not path.is_file():
        raise ConfigError(f"no file {path} (scores=): expected a CSV with columns {', '.join(COLUMNS)}")
    try:
        rows = pd.read_csv(path, dtype={"model": str, "size": str, "revision": str, "task": str})
    except Exception as error:  # pandas, the decompressors and the codecs each have their own
        raise DataError(f"{path} is no CSV that can be read: {error_text(error)} (scores=)") from None
    if set(RELEASED) <= set(rows.columns):
        rows = rows[(rows["split"] == "test") & rows["subset"].isin(ENGLISH)].copy()
        revision = rows["revision"].fillna("main")
        rows["model"] = (rows["family"] + "-" + rows["size"]).str.lower()
        rows["model"] = rows["model"].where(revision == "main", rows["model"] + "@" + revision)
        rows = rows.drop(columns="family").rename(columns={"main_score": "score"})
    if missing := [name for name in COLUMNS if name not in rows.columns]:
        raise DataError(
            f"{path}: no column {', '.join(missing)}; expected {', '.join(COLUMNS)}, or {', '.join(RELEASED)}"
        )
    for column in ("layer", "score"):
        numbers = pd.to_numeric(rows[column], errors="coerce")
        if (broken := numbers.isna() | numbers.abs().eq(float("inf"))).any():
            line = int(broken.to_numpy().argmax()) + 2
            raise DataError(f"{path}, line {line}: {column}={rows[column].iloc[line - 2]!r}; expected a finite number")
        rows = rows.assign(**{column: numbers})
    if rows.empty or (rows["layer"] % 1 != 0).any() or (rows["layer"] < 0).any():
        raise DataError(f"{path}: expected rows with layers from 0, the input layer, counted in whole numbers")
    return rows
