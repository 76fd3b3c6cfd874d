"""The files of a run's results: results.json, the frame, a CSV a table, replicates."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.errors import MetricError, TrackingError, short
from ctxexp.files.arrays import NO_ARCHIVE, read_npz
from ctxexp.files.manifest import find_damage, own_file
from ctxexp.files.tables import column_types, read_csv, write_csv
from ctxexp.files.writing import atomic_write, write_text
from ctxexp.results.run_info import ModelInfo, RunInfo
from ctxexp.results.values import LAYER, Estimates, Key, Values

if TYPE_CHECKING:
    import pandas as pd

    from ctxexp.results import Results

FILE, FRAME, REPLICATES = "results.json", "results.parquet", "replicates.npz"
FORMAT = 2  # of these files
LONGEST_NAME = 200  # bytes of a table's name: a file's may have 255, with `.csv` and what marks it while it is written


def write(results: Results, folder: Path) -> None:
    """Write the results into a folder, see `Results.save`."""
    if odd := _odd_name(results.tables):
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
        "values": [{**key.columns, **_ends(estimates)} for key, estimates in results.by_key.items()],
    }
    write_text(folder / FILE, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))


def read(folder: Path) -> tuple[pd.DataFrame, dict[str, pd.DataFrame], dict[Key, np.ndarray], RunInfo]:
    """The frame, tables, replicates and metadata that a folder holds, see `Results.load`."""
    path = folder / FILE
    if not folder.is_dir():
        raise TrackingError(f"no folder {folder}: expected a run's, as in mlruns/results/<sweep>/<job>")
    if not path.is_file():  # a FIFO there would be waited for
        raise TrackingError(f"no {FILE} in {folder}: the run there never finished measuring")
    try:
        text = own_file(folder, FILE).read_bytes().decode()
        if what := find_damage(folder, (FILE, FRAME, REPLICATES)):
            raise ValueError(what)
        document = json.loads(text)
        if (file_format := document.get("format")) != FORMAT:
            raise TrackingError(f"{path} is of format {file_format}, this version reads {FORMAT}: run again")
        if odd := _odd_name(document["tables"]):  # another's path
            raise ValueError(odd)
        if what := find_damage(folder, [f"{name}.csv" for name in document["tables"]]):
            raise ValueError(what)
        values = Values()
        for each in document["values"]:
            ends = {end: np.array([_from_json(v) for v in each.pop(end)]) for end in Estimates._fields if end in each}
            values.add(Key.of(**each), ends.pop("value"), **ends)
        paths = {name: own_file(folder, f"{name}.csv") for name in document["tables"]}
        tables = {name: read_csv(file, document["tables"][name]) for name, file in paths.items()}
        info = RunInfo.from_json(document["info"])
        _check_layers(info.model, values.by_key)
        return values.frame(info.model.layers), tables, _replicates(folder), info
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise TrackingError(f"{path} is not a results file of ctxexp: {error}") from error


def _check_layers(model: ModelInfo, estimates: Mapping[Key, Estimates]) -> None:
    """Raise ValueError for layers that the curves don't have: a curve of as many would be made in memory."""
    lengths = {len(each.value) for key, each in estimates.items() if key.place == LAYER}
    n, few = model.n_layers, model.layers
    if n < 0 or (n and lengths and n != max(lengths)):
        raise ValueError(f"it names {n:,} layers, its curves have {max(lengths, default=0):,}")
    if few and (len(set(few)) < len(few) or not 0 <= min(few) <= max(few) < min(lengths, default=n) or not n):
        raise ValueError(f"it names the layers {short(few)}, its curves have {min(lengths, default=n):,}")


def _odd_name(tables: Iterable[str]) -> str:
    """An error message for the first table name that can't be a file name; empty if all can."""
    odd = [name for name in tables if not re.fullmatch(r"[\w.-]+", name) or len(name.encode()) > LONGEST_NAME]
    return (
        f"a table's name is {odd[0][:100]!r}, expected letters, digits, _ . - (at most {LONGEST_NAME} bytes)"
        if odd
        else ""
    )


def _ends(estimates: Estimates) -> dict[str, list[float | str | None]]:
    """The values, and their intervals if any is known, in JSON's types."""
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
