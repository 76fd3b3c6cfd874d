"""Tables as CSV files, whose numbers come back to the last bit and whose words stay words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.files.writing import replacing

if TYPE_CHECKING:
    import pandas as pd

_TYPES = {"i": "int64", "u": "int64", "f": "float64", "b": "bool"}


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write it with full precision, UTF-8, one header line; NaN as an empty cell."""
    with replacing(path) as part:
        table.to_csv(part, index=False, encoding="utf-8", lineterminator="\r\n")


def types(table: pd.DataFrame) -> dict[str, str]:
    """What `read_csv` must know of each column: whole numbers, numbers, truth values or text."""
    return {str(name): _TYPES.get(dtype.kind, "str") for name, dtype in table.dtypes.items()}


def read_csv(path: Path, types: Mapping[str, str]) -> pd.DataFrame:
    """What `write_csv` wrote of a table of these types; in text an empty cell is an empty text."""
    import pandas as pd

    cells = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    return pd.DataFrame({name: _typed(cells[name], kind) for name, kind in types.items()})


def _typed(cells: pd.Series, kind: str) -> pd.Series | np.ndarray:
    """The column's cells, (n,), as what they were; pandas' own reading of numbers may miss the last bit."""
    if kind == "str":
        return cells
    if kind == "bool":
        return cells == "True"
    return cells.replace("", "nan").to_numpy(np.str_).astype(kind)
