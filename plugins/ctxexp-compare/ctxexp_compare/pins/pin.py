"""A pin: a model's reference vectors with all that a later check needs, and its file."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp import Sentence
from ctxexp.errors import DataError, error_text
from ctxexp.report import write_file
from ctxexp_compare.pins.facts import Fact, TokenizerDigest
from ctxexp_compare.pins.sketch import Sketch
from ctxexp_compare.pins.text import PinRows

MAX_BYTES = 200_000
KIND, FORMAT = "pin", 3  # of the file
NO_ARCHIVE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, MemoryError)  # of bytes that are none
PLAIN_KEYS = (
    "title", "model", "n_layers", "dim", "seed", "pooling", "precision", "options", "layers", "lengths", "reruns",
)  # fmt: skip


@dataclass(frozen=True)
class Pin:
    """The vectors of a model when it was pinned, in short.

    `model` and `options` are the arguments of the command line that name it, empty for one in memory. `layers` are the
    numbers of the layers that are kept. `pooling` is that of sentence vectors, empty without any. `lengths` are the
    model's own tokens of each sentence. `noise` (layers,) by
    dtype is how far reruns moved at most, root mean square over rows in lengths of a vector: other batch sizes, threads
    and kernels, and dtypes that were pinned as equal. `settings` decide vectors, `environment` doesn't, or hardly.
    `weights` are, by dtype, a digest of each tensor; `precision` is what their values are rounded to in the first.
    """

    title: str
    model: str
    options: tuple[str, ...]
    n_layers: int
    dim: int
    layers: tuple[int, ...]
    seed: int
    pooling: str
    sentences: tuple[Sentence, ...]
    lengths: tuple[int, ...]
    rows: PinRows
    sketch: Sketch
    noise: Mapping[str, np.ndarray]
    reruns: tuple[str, ...]
    tokenizer: TokenizerDigest
    settings: Mapping[str, Fact]
    environment: Mapping[str, Fact]
    weights: Mapping[str, Mapping[str, str]]
    precision: str

    def save(self, path: Path | str) -> int:
        """Write the file, atomically; its size in bytes. Raises DataError if it is larger than MAX_BYTES."""
        arrays = {
            **self.sketch._asdict(),
            "rows": np.stack(list(self.rows)).astype(np.int32),
            "noise": np.stack(list(self.noise.values())),
        }
        meta = json.dumps({"meta": self._meta()}).encode()
        stream = io.BytesIO()
        np.savez_compressed(stream, **arrays, meta=np.frombuffer(meta, np.uint8))
        if (size := stream.getbuffer().nbytes) > MAX_BYTES:
            raise DataError(
                f"the pin would take {size:,} bytes, more than {MAX_BYTES:,}: take fewer occurrences "
                f"(occurrences={len(self.rows) // 2}), or a text of shorter sentences"
            )
        write_file(Path(path), stream.getvalue())
        return size

    def _meta(self) -> dict[str, object]:
        return {
            "kind": KIND,
            "format": FORMAT,
            **{key: getattr(self, key) for key in PLAIN_KEYS},
            "sentences": [[one.text, one.spans] for one in self.sentences],
            "dtypes": list(self.noise),
            "tokenizer": asdict(self.tokenizer),
            "settings": dict(self.settings),
            "environment": dict(self.environment),
            "weights": dict(self.weights),
        }

    @classmethod
    def load(cls, path: Path | str) -> Pin:
        """The pin of a file. Raises DataError for one that is missing, damaged, or of another format."""
        path = Path(path).expanduser()
        hint = f"ctxexp pin MODEL out={path.name}"
        try:
            with path.open("rb") as file, np.lib.npyio.NpzFile(file) as content:
                arrays = dict(content)
            meta = json.loads(arrays.pop("meta").tobytes())["meta"]
            if (meta["kind"], meta["format"]) != (KIND, FORMAT):
                raise ValueError(f"it is a {meta['kind']} of format {meta['format']}, expected {KIND} {FORMAT}")
            return cls._of(meta, arrays)
        except FileNotFoundError:
            raise DataError(f"no pin at {path}; make one: {hint}") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, *NO_ARCHIVE) as error:
            raise DataError(f"{path} is no pin, or damaged ({error_text(error)}); make it anew: {hint}") from None

    @classmethod
    def _of(cls, meta: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Pin:
        rows, n_layers = arrays["rows"], len(meta["layers"])
        sketch = Sketch(*(arrays[name] for name in Sketch._fields))
        shapes = {sketch.lengths.shape, sketch.cosines.shape, sketch.projections.shape[:2], (n_layers, rows.shape[1])}
        if (
            len(shapes) > 1
            or arrays["noise"].shape != (len(meta["dtypes"]), n_layers)
            or len(rows) != len(PinRows._fields)
        ):
            raise ValueError("its arrays don't fit each other")
        sentence, unit, is_sentence, n_pieces = rows.astype(np.int64)
        if sentence.max(initial=-1) >= len(meta["sentences"]) or min(sentence.min(initial=0), unit.min(initial=0)) < 0:
            raise ValueError("its rows name sentences that it hasn't got")
        tokenizer: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in meta["tokenizer"].items()}
        sentences = tuple(
            Sentence(text, tuple(text[a:b] for a, b in spans), tuple((a, b) for a, b in spans))
            for text, spans in meta["sentences"]
        )
        plain: dict[str, Any] = {
            key: tuple(meta[key]) if isinstance(meta[key], list) else meta[key] for key in PLAIN_KEYS
        }
        return cls(
            **plain,
            sentences=sentences,
            rows=PinRows(sentence, unit, is_sentence.astype(bool), n_pieces),
            sketch=sketch,
            noise=dict(zip(meta["dtypes"], arrays["noise"], strict=True)),
            tokenizer=TokenizerDigest(**tokenizer),
            settings=meta["settings"],
            environment=meta["environment"],
            weights=meta["weights"],
        )
