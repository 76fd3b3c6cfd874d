"""A pin: a model's reference vectors with what a later check needs, and its file."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 5  # of the file
NO_ARCHIVE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, MemoryError)  # of bytes that are none


@dataclass(frozen=True)
class Pin:
    """What a model gave when it was pinned.

    `model` and `options` are the arguments of the command line that name it, empty for one in memory. `vectors` (n,
    dim) are those of whole `texts`, of `lengths` in the model's own tokens, by `pooling`; `has_length` where the
    model's files say whether they are normalised. `noise` is how far reruns with other batches and threads moved them
    at most, root mean square over texts in lengths of a vector. `facts` are the settings, the environment, and digests
    of the tokenizer and of each tensor.
    """

    title: str
    model: str
    options: tuple[str, ...]
    pooling: str
    has_length: bool
    texts: tuple[str, ...]
    lengths: tuple[int, ...]
    noise: float
    facts: Mapping[str, Mapping[str, Any]]
    vectors: np.ndarray

    def save(self, path: Path | str) -> int:
        """Write the file, atomically; its size in bytes."""
        told = asdict(self)
        vectors = told.pop("vectors").astype(np.float32)
        stream = io.BytesIO()
        meta = np.frombuffer(json.dumps(told | {"pin": FORMAT}).encode(), np.uint8)
        np.savez_compressed(stream, vectors=vectors, meta=meta)
        part = Path(f"{path}.{os.getpid()}.part")
        part.write_bytes(stream.getvalue())
        part.replace(path)
        return stream.getbuffer().nbytes

    @classmethod
    def load(cls, path: Path | str) -> Pin:
        """The pin of a file. Raises ValueError for one that is missing, damaged, or of another format."""
        path = Path(path).expanduser()
        hint = f"ctxexp pin MODEL out={path.name}"
        try:
            with path.open("rb") as file, np.lib.npyio.NpzFile(file) as content:
                vectors, told = content["vectors"], json.loads(content["meta"].tobytes())
            if told.pop("pin", None) != FORMAT:
                raise ValueError(f"it is of another format, expected {FORMAT}")
            plain: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value for key, value in told.items()
            }
            made = cls(**plain, vectors=vectors)
            if not len(made.texts) == len(made.lengths) == len(vectors):
                raise ValueError("its arrays don't fit each other")
        except FileNotFoundError:
            raise ValueError(f"no pin at {path}; make one: {hint}") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, *NO_ARCHIVE) as error:
            raise ValueError(f"{path} is no pin, or damaged ({error}); make it anew: {hint}") from None
        return made
