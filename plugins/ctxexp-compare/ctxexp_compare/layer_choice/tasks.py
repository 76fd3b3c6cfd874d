"""The tasks that a layer is chosen by: what measures each, and where its scores stand in a run's results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ctxexp import Metric
from ctxexp.errors import ConfigError, UnknownName
from ctxexp.results import Key
from ctxexp_compare.layer_choice.sense_neighbours import SenseNeighbours

STS_TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
WIC, SEMCOR, STS = "WiC", "SemCor", "sts"
DOCUMENTS = 60  # of SemCor: enough for about three hundred words of several senses
ALL = (*STS_TASKS, WIC, SEMCOR)


@dataclass(frozen=True)
class TaskRun:
    """A run that scores one task or several: its arguments, its metrics, the key and factor of each score, and the
    argument of `ctxexp layer` that names the folder of its data."""

    options: tuple[str, ...]
    metrics: str | Mapping[str, Callable[[], Metric]]
    keys: Mapping[str, Key]
    points: float = 100.0  # per unit of the measure
    sentences: bool = False  # whether it needs one vector a sentence
    notes: tuple[str, ...] = field(default=())


def parse_tasks(text: str) -> list[str]:
    """The tasks by their names, `sts` for the seven of it. Raises UnknownName, and ConfigError for none."""
    by_key = {name.casefold(): name for name in ALL} | {"stsbenchmark": "STS-B", "stsb": "STS-B"}
    names: list[str] = []
    for word in filter(None, (word.strip() for word in text.split(","))):
        if word.casefold() == STS:
            names += STS_TASKS
        elif word.casefold() in by_key:
            names.append(by_key[word.casefold()])
        else:
            raise UnknownName("task", word, [STS, *ALL])
    if not names:
        raise ConfigError(f"tasks=: expected some of {STS}, {', '.join(ALL)}, by comma")
    return list(dict.fromkeys(names))


def task_runs(tasks: Sequence[str], data: Path | None) -> list[TaskRun]:
    """The runs that score these tasks; `data` is the folder of their data, or one with a
    folder for each of `sts`, `wic` and `semcor` (None: downloaded).

    Raises ConfigError for a task whose data set no installed plugin brings.
    """
    runs = []
    if sts := [task for task in tasks if task in STS_TASKS]:
        options = ("dataset=sts", f"dataset.tasks=[{','.join(sts)}]", *_path(data, "sts"))
        keys = {task: Key("sts", "all", "" if len(sts) == 1 else task) for task in sts}
        overlap = ("STS-B holds pairs of STS12 to STS16, which count twice",) if "STS-B" in sts and len(sts) > 1 else ()
        runs.append(TaskRun(options, "sts", keys, 1.0, sentences=True, notes=overlap))
    if WIC in tasks:
        options = ("dataset=wic", *_path(data, "wic"))
        runs.append(TaskRun(options, "wic", {WIC: Key("wic", "accuracy", "test")}))
    if SEMCOR in tasks:
        options = ("dataset=semcor", f"dataset.documents={DOCUMENTS}", *_path(data, "semcor"))
        metrics = {"sense_neighbours": SenseNeighbours}
        runs.append(TaskRun(options, metrics, {SEMCOR: Key("sense_neighbours", "raw")}))
    return runs


def _path(data: Path | None, name: str) -> tuple[str, ...]:
    if data is None:
        return ()
    path = str(data / name if (data / name).is_dir() else data).replace("'", r"\'")
    return (f"dataset.path='{path}'",)
