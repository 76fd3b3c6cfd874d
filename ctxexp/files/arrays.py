"""NumPy's archives, read after checking the sizes that they name, before memory is allocated."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path

import numpy as np

NO_ARCHIVE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, MemoryError)
"""Errors that zipfile raises for bytes that are no archive, or one that it can't read."""


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name. Raises ValueError for a file whose header names another size than it has
    (numpy would allocate that memory first), and zipfile's errors (NO_ARCHIVE) for bytes that are no archive."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                if version == (1, 0):
                    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
                else:
                    shape, _, dtype = np.lib.format.read_array_header_2_0(file)
                expected = math.prod(shape) * dtype.itemsize
                n_held = member.file_size - file.tell()
            if expected != n_held or member.file_size > 1100 * max(member.compress_size, 1):  # deflate's best is 1,032
                raise ValueError(f"{member.filename} names {expected:,} bytes and holds {n_held:,}")
            with archive.open(member) as file:
                array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
                arrays[member.filename.removesuffix(".npy")] = array
    return arrays
