"""Tables as CSV files: floats round-trip exactly, text stays text."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.errors import short
from ctxexp.files.paths import no_device
from ctxexp.files.writing import atomic_write

if TYPE_CHECKING:
    import pandas as pd

_TYPES = {"i": "int64", "u": "int64", "f": "float64", "b": "bool"}  # NumPy's kind -> type; unsigned ones become signed


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write the table with full precision, UTF-8, one header line; NaN as an empty cell."""
    with atomic_write(path) as part:
        table.to_csv(part, index=False, encoding="utf-8", lineterminator="\r\n")


def column_types(table: pd.DataFrame) -> dict[str, str]:
    """The column types that `read_csv` needs: int64, float64, bool or str by column name."""
    return {str(name): _TYPES.get(dtype.kind, "str") for name, dtype in table.dtypes.items()}


def read_csv(path: Path, types: Mapping[str, str]) -> pd.DataFrame:
    """Read a table that `write_csv` wrote, with these column types; an empty cell of a text column is an empty text."""
    import pandas as pd

    cells = pd.read_csv(no_device(path), dtype=str, keep_default_na=False, encoding="utf-8")
    return pd.DataFrame({name: _convert(cells[name], kind) for name, kind in types.items()})


def _convert(cells: pd.Series, kind: str) -> pd.Series | np.ndarray:
    """The column's cells (n,) converted to its type; pandas' own parser of numbers may miss the last bit."""
    if kind == "str":
        return cells
    if kind == "bool":
        return cells == "True"
    if kind not in _TYPES.values():  # a damaged file may name U99999999, for which NumPy would ask so much memory
        raise ValueError(f"a column of type {short(kind)}, expected str, {', '.join(sorted({*_TYPES.values()}))}")
    return cells.replace("", "nan").to_numpy(np.str_).astype(kind)


NO_ARCHIVE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, MemoryError)
"""Errors that zipfile raises for bytes that are no archive, or one that it can't read."""


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name. Raises ValueError for one that isn't as long as it says, and zipfile's errors
    (NO_ARCHIVE) for bytes that are no archive."""
    with path.open("rb") as file, np.lib.npyio.NpzFile(file) as arrays:
        return dict(arrays)
