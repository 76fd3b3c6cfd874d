"""NumPy's archives, with a look at the sizes that they name before memory is asked for."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path

import numpy as np

NO_ARCHIVE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, MemoryError)
"""What zipfile raises for bytes that are no archive, or one that it can't read."""


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name. Raises ValueError for one that names another size than it holds (numpy asks
    for the memory first), and whatever zipfile raises for what is no archive."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                if version == (1, 0):
                    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
                else:
                    shape, _, dtype = np.lib.format.read_array_header_2_0(file)
                needed = math.prod(shape) * dtype.itemsize
                held = member.file_size - file.tell()
            if needed != held or member.file_size > 1100 * max(member.compress_size, 1):  # deflate's best is 1,032
                raise ValueError(f"{member.filename} names {needed:,} bytes and holds {held:,}")
            with archive.open(member) as file:
                array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
                arrays[member.filename.removesuffix(".npy")] = array
    return arrays
