"""NumPy's archives of arrays."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

NO_ARCHIVE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, MemoryError)
"""Errors that zipfile raises for bytes that are no archive, or one that it can't read."""


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name. Raises ValueError for one that isn't as long as it says, and zipfile's errors
    (NO_ARCHIVE) for bytes that are no archive."""
    with path.open("rb") as file, np.lib.npyio.NpzFile(file) as arrays:
        return dict(arrays)
