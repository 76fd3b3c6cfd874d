"""The file of a pin: NumPy's archive of arrays with a sealed description, whole or an error."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ctxexp.errors import DataError, error_text
from ctxexp.report import write_file

Content = TypeVar("Content")
KIND, FORMAT = "pin", 2  # of the file
NO_ARCHIVE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, MemoryError)  # of bytes that are none


def write_archive(path: Path, meta: Mapping[str, object], arrays: Mapping[str, Any]) -> int:
    """Write the file, atomically; its size in bytes."""
    stream = io.BytesIO()
    meta = {**meta, "kind": KIND, "format": FORMAT}
    description = json.dumps({"seal": _checksum(meta), "meta": meta}).encode()
    np.savez_compressed(stream, **arrays, meta=np.frombuffer(description, np.uint8))
    write_file(path, stream.getvalue())
    return stream.getbuffer().nbytes


def read_archive(path: Path, make: Callable[[dict[str, Any], dict[str, np.ndarray]], Content]) -> Content:
    """What `make` makes of the file's description and arrays. Raises DataError for a file that is missing, damaged, of
    another kind or format, and where `make` raises ValueError, KeyError or TypeError."""
    hint = f"ctxexp pin MODEL out={path.name}"
    try:
        with path.open("rb") as file, np.lib.npyio.NpzFile(file) as content:
            arrays = dict(content)
        sealed = json.loads(arrays.pop("meta").tobytes())
        meta = sealed["meta"]
        if sealed["seal"] != _checksum(meta):
            raise ValueError("its checksum differs")
        if (meta["kind"], meta["format"]) != (KIND, FORMAT):
            raise ValueError(f"it is a {meta['kind']} of format {meta['format']}, expected {KIND} of format {FORMAT}")
        return make(meta, arrays)
    except FileNotFoundError:
        raise DataError(f"no pin at {path}; make one: {hint}") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, *NO_ARCHIVE) as error:
        raise DataError(f"{path} is no pin, or damaged ({error_text(error)}); make it anew: {hint}") from None


def _checksum(meta: object) -> str:
    return hashlib.blake2b(json.dumps(meta, sort_keys=True).encode(), digest_size=16).hexdigest()
