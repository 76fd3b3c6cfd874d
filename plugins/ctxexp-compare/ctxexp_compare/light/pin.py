"""A pin: a model's reference vectors with all that a later check needs, and its file."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .sketch import Sketch

MAX_BYTES = 200_000
KIND, FORMAT = "pin", 4  # of the file
NO_ARCHIVE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, MemoryError)  # of bytes that are none
PLAIN_KEYS = (
    "title", "model", "n_layers", "dim", "dtype", "seed", "pooling", "has_length", "options", "layers", "texts",
    "lengths", "facts", "sentence_noise",
)  # fmt: skip
Span = tuple[int, int]


class PinRows(NamedTuple):
    """The words whose vectors a pin sketches: unit `unit[i]` of what the encoder gives for text `sentence[i]`."""

    sentence: np.ndarray  # (n,) int64
    unit: np.ndarray  # (n,) int64
    n_pieces: np.ndarray  # (n,) int64 that are pooled in it

    def __len__(self) -> int:
        return len(self.sentence)


@dataclass(frozen=True)
class Pin:
    """What a model gave when it was pinned, in short.

    `model` and `options` are the arguments of the command line that name it, empty for one in memory. `layers` are the
    numbers of the layers that are kept. `texts` are what was read, `spans` their words by character, `lengths` the
    model's own tokens of each. `vectors` (n, width) are those of whole texts, whose numbers are `vector_texts`; none of
    a model without such; `pooling` and `has_length` say how they are made: `has_length` where the model's files say
    whether they are normalised. `noise` (layers,) is how far reruns with other batches and threads moved words at most,
    root mean square over rows in lengths of a vector; `sentence_noise` likewise. `facts` are the tokenizer, settings,
    environment and a digest of each tensor.
    """

    title: str
    model: str
    options: tuple[str, ...]
    n_layers: int
    dim: int
    dtype: str
    layers: tuple[int, ...]
    seed: int
    pooling: str
    has_length: bool
    texts: tuple[str, ...]
    spans: tuple[tuple[Span, ...], ...]
    lengths: tuple[int, ...]
    rows: PinRows
    sketch: Sketch
    noise: np.ndarray
    vectors: np.ndarray
    vector_texts: np.ndarray
    sentence_noise: float
    facts: Mapping[str, Any]

    def save(self, path: Path | str) -> int:
        """Write the file, atomically; its size in bytes. Raises ValueError if it is larger than MAX_BYTES."""
        arrays = {
            **self.sketch._asdict(),
            "rows": np.stack(list(self.rows)).astype(np.int32),
            "noise": self.noise,
            "vectors": self.vectors.astype(np.float32),
            "vector_texts": self.vector_texts.astype(np.int32),
        }
        meta = {key: getattr(self, key) for key in PLAIN_KEYS} | {"kind": KIND, "format": FORMAT, "spans": self.spans}
        stream = io.BytesIO()
        np.savez_compressed(stream, **arrays, meta=np.frombuffer(json.dumps(meta).encode(), np.uint8))
        if (size := stream.getbuffer().nbytes) > MAX_BYTES:
            raise ValueError(
                f"the pin would take {size:,} bytes, more than {MAX_BYTES:,}: take fewer occurrences "
                f"(occurrences={len(self.rows) // 2}), or a text of shorter sentences"
            )
        part = Path(f"{path}.{os.getpid()}.part")
        part.write_bytes(stream.getvalue())
        part.replace(path)
        return size

    @classmethod
    def load(cls, path: Path | str) -> Pin:
        """The pin of a file. Raises ValueError for one that is missing, damaged, or of another format."""
        path = Path(path).expanduser()
        hint = f"ctxexp pin MODEL out={path.name}"
        try:
            with path.open("rb") as file, np.lib.npyio.NpzFile(file) as content:
                arrays = dict(content)
            meta = json.loads(arrays.pop("meta").tobytes())
            meta = meta.get("meta", meta)  # of older formats
            if (meta["kind"], meta["format"]) != (KIND, FORMAT):
                raise ValueError(f"it is a {meta['kind']} of format {meta['format']}, expected {KIND} {FORMAT}")
            return cls._of(meta, arrays)
        except FileNotFoundError:
            raise ValueError(f"no pin at {path}; make one: {hint}") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, *NO_ARCHIVE) as error:
            raise ValueError(f"{path} is no pin, or damaged ({error}); make it anew: {hint}") from None

    @classmethod
    def _of(cls, meta: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Pin:
        rows, n_layers, n_texts = PinRows(*arrays["rows"].astype(np.int64)), len(meta["layers"]), len(meta["texts"])
        sketch = Sketch(*(arrays[name] for name in Sketch._fields))
        shapes = {sketch.lengths.shape, sketch.cosines.shape, sketch.projections.shape[:2], (n_layers, len(rows))}
        numbers = [*rows.sentence, *arrays["vector_texts"], 0]
        if len(shapes) > 1 or len(arrays["vector_texts"]) != len(arrays["vectors"]) or len(meta["spans"]) != n_texts:
            raise ValueError("its arrays don't fit each other")
        if max(numbers) >= n_texts or min(*numbers, rows.unit.min(initial=0)) < 0:
            raise ValueError("its rows name texts that it hasn't got")
        plain: dict[str, Any] = {
            key: tuple(meta[key]) if isinstance(meta[key], list) else meta[key] for key in PLAIN_KEYS
        }
        return cls(
            **plain,
            spans=tuple(tuple((int(a), int(b)) for a, b in own) for own in meta["spans"]),
            rows=rows,
            sketch=sketch,
            noise=arrays["noise"],
            vectors=arrays["vectors"],
            vector_texts=arrays["vector_texts"],
        )
