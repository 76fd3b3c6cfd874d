"""Values by key: measure, statistic, task and place; the builder that measuring fills in; findings, computed once and
read by all that shows a run; and the files of its results: the frame (Parquet), results.json with the metadata,
findings.json, one CSV file for each table, replicates.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctxexp.errors import MetricError, TrackingError
from ctxexp.files import (
    NO_ARCHIVE,
    atomic_write,
    column_types,
    find_damage,
    read_csv,
    read_npz,
    write_csv,
    write_file,
)
from ctxexp.results.run_info import RunInfo

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import TypeAdapter

LAYER = "layer"  # the place of values of the layers themselves, one for each
BY_BASELINE = (
    "baseline",
    "adjusted",
    "share_of_room",
    "share_of_room_undefined",
)  # statistics computed with a baseline
COLUMNS = ("measure", "task", "statistic", "place", "layer", "value", "low", "high", "n")
RESULTS_FILE, FRAME, REPLICATES, FINDINGS = "results.json", "results.parquet", "replicates.npz", "findings.json"
FORMAT = 2  # of these files
OTHER_KINDS = (".json", ".html", ".parquet", ".feather", ".xlsx", ".pkl", ".tsv", ".txt", ".png", ".svg", ".pdf")
RUN = "{run}"  # stands in a finding's text for the run's name
MAX_NAME_BYTES = 200  # of a table: a file's name may have 255, with `.csv` and the suffix while it is written


@dataclass(frozen=True)
class Leg:
    """A claimed change of a curve between two layers."""

    sign: int  # 1: it rises, -1: it falls
    start: int
    end: int
    reverses: bool  # whether a change of the other sign is certain somewhere between


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a curve by layer shows.

    Args:
        measure, statistic, task: The curve, its statistic by the shown name.
        layers: The layers in which it is defined.
        has_interval: Whether it has an interval; without one nothing is claimed.
        legs: The claimed changes along it, at most two.
        text: The sentence that says so, `{run}` in the place of the run's name.
        doubts: What the leading curve rests on, and what makes a curve shaky, a sentence each.
    """

    measure: str
    statistic: str
    task: str
    layers: tuple[int, ...]
    has_interval: bool
    legs: tuple[Leg, ...]
    text: str
    doubts: tuple[str, ...]

    def sentence(self, label: str) -> str:
        """The sentence on the run of this label."""
        return self.text.replace(RUN, label)


class Key(NamedTuple):
    """The key of a curve by layer, or of a scalar at another place (a mix of layers, an embedding table).

    `place` says where the measured vectors come from: the layers, a mix of layers, an embedding table. `baseline` names
    the baseline that the statistic is computed with; empty: the measure's first. Where results are stored or shown,
    statistic and baseline are one name: `position_matched_adjusted`.

    Example:
        >>> Key.of("self_similarity", "position_matched_adjusted")
        Key(measure='self_similarity', statistic='adjusted', task='', place='layer', baseline='position_matched')
    """

    measure: str
    statistic: str
    task: str = ""
    place: str = LAYER
    baseline: str = ""

    @classmethod
    def of(cls, measure: str, statistic: str, task: str = "", place: str = LAYER) -> Key:
        """The key of a statistic by its shown name."""
        for own in BY_BASELINE:
            if statistic.endswith(f"_{own}"):
                return cls(measure, own, task, place, statistic.removesuffix(f"_{own}"))
        return cls(measure, statistic, task, place)

    @property
    def name(self) -> str:
        """The statistic's shown name, the inverse of `of`."""
        return f"{self.baseline}_{self.statistic}" if self.baseline else self.statistic

    @property
    def columns(self) -> dict[str, str]:
        """The key as files have it: measure, statistic by its shown name, task and place."""
        return {"measure": self.measure, "statistic": self.name, "task": self.task, "place": self.place}

    @property
    def curve_name(self) -> str:
        """Measure, place and task as messages, charts and sinks write them: `sts/STS12`, `sts.last2/STS12`."""
        curve = self.measure if self.place == LAYER else f"{self.measure}.{self.place}"
        return f"{curve}/{self.task}" if self.task else curve

    def label(self, level: str = "chance") -> str:
        """The statistic's name for a legend; `level` is the measure's word for its baseline.

        Example:
            >>> Key("self_similarity", "share_of_room").label(), Key("self_similarity", "baseline").label()
            ('share of the room above chance', 'chance')
        """
        names = {"share_of_room": "share of the room above chance", "mean_cosine": "mean", "baseline": level}
        name = names.get(self.statistic, self.statistic.replace("_", " "))
        return f"{name}, {self.baseline.replace('_', '-')}" if self.baseline else name

    def __str__(self) -> str:
        return f"{self.curve_name}/{self.name}"


class Estimates(NamedTuple):
    """The values of a key with the ends of their 95% intervals: (n_layers,) each, or (1,) at another place.

    Example:
        >>> Estimates(np.array([0.5]), np.array([0.4]), np.array([0.6])).value.tolist()
        [0.5]
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Values:
    """The values of a run in progress, which measuring fills in."""

    def __init__(self, by_key: Mapping[Key, Estimates] | None = None) -> None:
        self.by_key: dict[Key, Estimates] = dict(by_key or {})
        self.replicates: dict[Key, np.ndarray] = {}

    def set(
        self,
        key: Key,
        values: np.ndarray | float,
        *,
        low: np.ndarray | float | None = None,
        high: np.ndarray | float | None = None,
        replicates: np.ndarray | None = None,
    ) -> None:
        """Set the values of a key, in place of any that it had: (n_layers,), or one number at another place; NaN where
        undefined. `low` and `high` are the ends of their 95% intervals, `replicates` (..., r) their bootstrap
        values."""
        value = _row(values)
        nothing = np.full(len(value), math.nan)
        self.by_key[key] = Estimates(value, *(nothing if end is None else _row(end) for end in (low, high)))
        self.replicates.pop(key, None)
        if replicates is not None and replicates.size:
            self.replicates[key] = replicates

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Values:
        """The values of a frame, the inverse of `frame()` where all layers were measured."""
        where: dict[Key, list[int]] = {}
        names = (frame[column] for column in ("measure", "statistic", "task", "place"))
        for row, key in enumerate(zip(*names, strict=True)):
            where.setdefault(Key.of(*key), []).append(row)
        numbers = frame[["value", "low", "high"]].to_numpy(np.float64)
        return cls({key: Estimates(*numbers[rows].T) for key, rows in where.items()})

    def expand_layers(self, layers: Sequence[int], n_layers: int) -> Values:
        """The same values for all `n_layers` layers: those of `layers`, which were measured, and NaN elsewhere."""
        expanded = Values()
        for key, estimates in self.by_key.items():
            by_layer = key.place == LAYER
            expanded.by_key[key] = (
                Estimates(*(_scatter(end, layers, n_layers) for end in estimates)) if by_layer else estimates
            )
        for key, replicates in self.replicates.items():
            expanded.replicates[key] = replicates if key.place != LAYER else _scatter(replicates, layers, n_layers)
        return expanded

    def frame(self, layers: Sequence[int] = ()) -> pd.DataFrame:
        """One row per value, as `Results.frame`; with `layers`, rows of these layers only."""
        import pandas as pd

        rows = []
        for key, estimates in self.by_key.items():
            group_counts = self.by_key.get(key._replace(statistic="n", baseline=""))
            same = group_counts is not None and len(group_counts.value) == len(estimates.value)
            counts = group_counts.value if group_counts and same else np.full(len(estimates.value), math.nan)
            columns = key.measure, key.task, key.name, key.place
            for layer, numbers in enumerate(np.stack([*estimates, counts], axis=1).tolist()):
                if key.place != LAYER:
                    rows.append((*columns, None, *numbers))
                elif not layers or layer in layers:
                    rows.append((*columns, layer, *numbers))
        kinds = dict.fromkeys(COLUMNS[:4], "str") | {"layer": "Int64"} | dict.fromkeys(COLUMNS[5:], "float64")
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype(kinds)


def metric_key(measure: str, statistic: str, place: str = LAYER) -> Key:
    """The key of a metric's statistic by the name that the metric gives it, in which a task may come first."""
    task, _, name = statistic.rpartition("/")
    return Key.of(measure, name, task, place)


def _scatter(values: np.ndarray, layers: Sequence[int], n_layers: int) -> np.ndarray:
    """Scatter the values of `layers` (layers, ...) into an array of all layers (n_layers, ...), NaN elsewhere."""
    out = np.full((n_layers, *values.shape[1:]), np.nan, values.dtype)
    out[list(layers)] = values
    return out


def _row(values: np.ndarray | float) -> np.ndarray:
    return np.atleast_1d(np.asarray(values, np.float64))


def write_results(
    folder: Path,
    frame: pd.DataFrame,
    tables: Mapping[str, pd.DataFrame],
    replicates: Mapping[Key, np.ndarray],
    info: RunInfo,
) -> None:
    """Write results into a folder, or their frame into a CSV file, see `Results.save`."""
    suffix = "" if folder.is_dir() else folder.suffix.lower()  # a job's may end in the name of its text
    if suffix == ".csv":
        write_csv(frame, folder)
        return
    if suffix in OTHER_KINDS:
        raise MetricError(
            f"save: expected a folder, or a name that ends in .csv, got {folder.name}; report() writes a page, "
            "plot().savefig() a figure, and .frame has the methods for other files"
        )
    if odd := _name_error(tables):
        raise MetricError(odd)
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv")
    if replicates:
        with atomic_write(folder / REPLICATES) as part, part.open("wb") as file:
            names = np.array([[*key.columns.values()] for key in replicates], dtype=str)
            np.savez_compressed(file, *replicates.values(), keys=names)
    with atomic_write(folder / FRAME) as part:
        part.write_bytes(frame.to_parquet(engine="pyarrow", index=False))
        (folder / FINDINGS).unlink(missing_ok=True)  # those of the values that are replaced
    document = {
        "format": FORMAT,
        "info": info.to_json(),
        "tables": {name: column_types(table) for name, table in tables.items()},
    }
    write_file(folder / RESULTS_FILE, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))


def write_findings(folder: Path, findings: Iterable[Finding]) -> None:
    """Write findings.json, a list of objects."""
    write_file(folder / FINDINGS, _findings().dump_json([*findings], indent=1).decode())


def read_findings(folder: Path) -> dict[Key, Finding]:
    """The findings of a folder by key; none where it has no such file. Raises TrackingError for a damaged one."""
    path = folder / FINDINGS
    try:
        if what := find_damage(folder, [FINDINGS]):
            raise ValueError(what)
        every = _findings().validate_json(path.read_bytes()) if path.is_file() else []
    except (OSError, ValueError) as error:
        raise TrackingError(f"{path} is not a file of findings of ctxexp: {error}") from error
    return {Key.of(each.measure, each.statistic, each.task): each for each in every}


@cache
def _findings() -> TypeAdapter[list[Finding]]:
    from pydantic import TypeAdapter

    return TypeAdapter(list[Finding])


def read_results(folder: Path) -> tuple[pd.DataFrame, dict[str, pd.DataFrame], dict[Key, np.ndarray], RunInfo]:
    """The frame, tables, replicates and metadata that a folder holds, see `Results.load`."""
    import pandas as pd

    path = folder / RESULTS_FILE
    if not folder.is_dir():
        raise TrackingError(f"no folder {folder}: expected a run's, as in mlruns/results/<sweep>/<job>")
    if not path.is_file():
        raise TrackingError(
            f"no {RESULTS_FILE} in {folder}: the run there never finished measuring, or holds several: ctxexp.runs()"
        )
    try:
        text = path.read_text(encoding="utf-8")
        if what := find_damage(folder, (RESULTS_FILE, FRAME, REPLICATES)):
            raise ValueError(what)
        document = json.loads(text)
        if (file_format := document.get("format")) != FORMAT:
            raise TrackingError(f"{path} is of format {file_format}, this version reads {FORMAT}: run again")
        if odd := _name_error(document["tables"]):  # a name with a slash could lead out of the folder
            raise ValueError(odd)
        if what := find_damage(folder, [f"{name}.csv" for name in document["tables"]]):
            raise ValueError(what)
        frame = pd.read_parquet(folder / FRAME, engine="pyarrow")[list(COLUMNS)]
        tables = {name: read_csv(folder / f"{name}.csv", types) for name, types in document["tables"].items()}
        return frame, tables, _replicates(folder), RunInfo.from_json(document["info"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise TrackingError(f"{path} is not a results file of ctxexp: {error}") from error


def _name_error(tables: Iterable[str]) -> str:
    """An error message for the first table name that can't be a file name; empty if all can."""
    odd = [name for name in tables if not re.fullmatch(r"[\w.-]+", name) or len(name.encode()) > MAX_NAME_BYTES]
    return (
        f"a table's name is {odd[0][:100]!r}, expected letters, digits, _ . - (at most {MAX_NAME_BYTES} bytes)"
        if odd
        else ""
    )


def _replicates(folder: Path) -> dict[Key, np.ndarray]:
    try:
        arrays = read_npz(folder / REPLICATES)
        return {Key.of(*key): arrays[f"arr_{i}"] for i, key in enumerate(arrays["keys"].tolist())}
    except FileNotFoundError:
        return {}
    except (*NO_ARCHIVE, OSError, EOFError, ValueError, LookupError) as error:
        raise ValueError(f"{REPLICATES}: {error}") from error
