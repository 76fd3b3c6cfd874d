"""The files of a run's results: results.json, the frame, one CSV file for each table, replicates.

Reading takes values from results.json; the frame (Parquet) is written for other programs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ctxexp.errors import MetricError, TrackingError, short
from ctxexp.files import (
    NO_ARCHIVE,
    atomic_write,
    column_types,
    find_damage,
    own_file,
    read_csv,
    read_npz,
    write_csv,
    write_file,
)
from ctxexp.results.run_info import ModelInfo, RunInfo
from ctxexp.results.values import LAYER, Estimates, Key, Values

if TYPE_CHECKING:
    import pandas as pd

RESULTS_FILE, FRAME, REPLICATES = "results.json", "results.parquet", "replicates.npz"
FORMAT = 2  # of these files
OTHER_KINDS = (".json", ".html", ".parquet", ".feather", ".xlsx", ".pkl", ".tsv", ".txt", ".png", ".svg", ".pdf")
MAX_NAME_BYTES = 200  # of a table: a file's name may have 255, with `.csv` and the suffix while it is written


class Saved(Protocol):
    """What of results is written."""

    @property
    def frame(self) -> pd.DataFrame: ...
    @property
    def tables(self) -> Mapping[str, pd.DataFrame]: ...
    @property
    def replicates(self) -> Mapping[Key, np.ndarray]: ...
    @property
    def info(self) -> RunInfo: ...
    @property
    def by_key(self) -> Mapping[Key, Estimates]: ...


def write(results: Saved, folder: Path) -> None:
    """Write the results into a folder, or their frame into a CSV file, see `Results.save`."""
    suffix = "" if folder.is_dir() else folder.suffix.lower()  # a job's may end in the name of its text
    if suffix == ".csv":
        write_csv(results.frame, folder)
        return
    if suffix in OTHER_KINDS:
        raise MetricError(
            f"save: expected a folder, or a name that ends in .csv, got {folder.name}; report() writes a page, "
            "plot().savefig() a figure, and to_pandas() has the methods for other files"
        )
    if odd := _name_error(results.tables):
        raise MetricError(odd)
    for name, table in results.tables.items():
        write_csv(table, folder / f"{name}.csv")
    if results.replicates:
        with atomic_write(folder / REPLICATES) as part, part.open("wb") as file:
            names = np.array([[*key.columns.values()] for key in results.replicates], dtype=str)
            np.savez_compressed(file, *results.replicates.values(), keys=names)
    with atomic_write(folder / FRAME) as part:
        part.write_bytes(results.frame.to_parquet(engine="pyarrow", index=False))
    document = {
        "format": FORMAT,
        "info": results.info.to_json(),
        "tables": {name: column_types(table) for name, table in results.tables.items()},
        "values": [{**key.columns, **_to_lists(estimates)} for key, estimates in results.by_key.items()],
    }
    write_file(folder / RESULTS_FILE, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))


def read(folder: Path) -> tuple[pd.DataFrame, dict[str, pd.DataFrame], dict[Key, np.ndarray], RunInfo]:
    """The frame, tables, replicates and metadata that a folder holds, see `Results.load`."""
    path = folder / RESULTS_FILE
    if not folder.is_dir():
        raise TrackingError(f"no folder {folder}: expected a run's, as in mlruns/results/<sweep>/<job>")
    if not path.is_file():  # opening a FIFO would wait for ever
        raise TrackingError(
            f"no {RESULTS_FILE} in {folder}: the run there never finished measuring, or holds several: ctxexp.runs()"
        )
    try:
        text = own_file(folder, RESULTS_FILE).read_bytes().decode()
        if what := find_damage(folder, (RESULTS_FILE, FRAME, REPLICATES)):
            raise ValueError(what)
        document = json.loads(text)
        if (file_format := document.get("format")) != FORMAT:
            raise TrackingError(f"{path} is of format {file_format}, this version reads {FORMAT}: run again")
        if odd := _name_error(document["tables"]):  # a name with a slash could lead out of the folder
            raise ValueError(odd)
        if what := find_damage(folder, [f"{name}.csv" for name in document["tables"]]):
            raise ValueError(what)
        values = Values()
        for each in document["values"]:
            ends = {end: np.array([_from_json(v) for v in each.pop(end)]) for end in Estimates._fields if end in each}
            values.set(Key.of(**each), ends.pop("value"), **ends)
        paths = {name: own_file(folder, f"{name}.csv") for name in document["tables"]}
        tables = {name: read_csv(file, document["tables"][name]) for name, file in paths.items()}
        info = RunInfo.from_json(document["info"])
        _check_layers(info.model, values.by_key)
        return values.frame(info.model.layers), tables, _replicates(folder), info
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise TrackingError(f"{path} is not a results file of ctxexp: {error}") from error


def _check_layers(model: ModelInfo, estimates: Mapping[Key, Estimates]) -> None:
    """Raise ValueError for layers that the curves don't have, before a curve of so many layers fills the memory."""
    lengths = {len(each.value) for key, each in estimates.items() if key.place == LAYER}
    n, measured_layers = model.n_layers, model.layers
    if n < 0 or (n and lengths and n != max(lengths)):
        raise ValueError(f"it names {n:,} layers, its curves have {max(lengths, default=0):,}")
    if measured_layers and (
        len(set(measured_layers)) < len(measured_layers)
        or not 0 <= min(measured_layers) <= max(measured_layers) < min(lengths, default=n)
        or not n
    ):
        raise ValueError(f"it names the layers {short(measured_layers)}, its curves have {min(lengths, default=n):,}")


def _name_error(tables: Iterable[str]) -> str:
    """An error message for the first table name that can't be a file name; empty if all can."""
    odd = [name for name in tables if not re.fullmatch(r"[\w.-]+", name) or len(name.encode()) > MAX_NAME_BYTES]
    return (
        f"a table's name is {odd[0][:100]!r}, expected letters, digits, _ . - (at most {MAX_NAME_BYTES} bytes)"
        if odd
        else ""
    )


def _to_lists(estimates: Estimates) -> dict[str, list[float | str | None]]:
    """The values, and the ends of their intervals if any is known, in JSON's types."""
    names = Estimates._fields if not np.isnan([estimates.low, estimates.high]).all() else ("value",)
    return {name: [_to_json(v) for v in getattr(estimates, name).tolist()] for name in names}


def _replicates(folder: Path) -> dict[Key, np.ndarray]:
    try:
        arrays = read_npz(own_file(folder, REPLICATES))
        return {Key.of(*key): arrays[f"arr_{i}"] for i, key in enumerate(arrays["keys"].tolist())}
    except FileNotFoundError:
        return {}
    except (*NO_ARCHIVE, OSError, EOFError, ValueError, LookupError) as error:
        raise ValueError(f"{REPLICATES}: {error}") from error


def _to_json(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def _from_json(value: float | str | None) -> float:
    return math.nan if value is None else float(value)
