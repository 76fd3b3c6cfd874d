"""The files of results: the frame (Parquet), results.json with the metadata, findings.json, a CSV file a table,
replicates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.errors import MetricError, TrackingError
from ctxexp.files import (
    NO_ARCHIVE,
    OTHER_KINDS,
    atomic_write,
    column_types,
    find_damage,
    read_csv,
    read_npz,
    write_csv,
    write_file,
)
from ctxexp.results.finding import Finding
from ctxexp.results.run_info import RunInfo
from ctxexp.results.values import COLUMNS, Key

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import TypeAdapter


RESULTS_FILE, FRAME, REPLICATES, FINDINGS = "results.json", "results.parquet", "replicates.npz", "findings.json"
FORMAT = 2  # of these files
MAX_NAME_BYTES = 200  # of a table: a file's name may have 255, with `.csv` and the suffix while it is written


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
