"""`model=vectors model.path=FILE`: vectors that are in a file with their words, as a model and as its text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from ctxexp import Corpus, CtxexpError, Encoder, from_arrays
from ctxexp.datasets import user_path
from ctxexp.errors import ConfigError, DataError, EncodingError, error_text
from ctxexp_compare.passport.files import read_npz, read_parquet

WordVectors = tuple[list[np.ndarray], list[list[str]], list[int] | None]
EXPECTED = "expected .npz, .parquet or .safetensors of vectors with their words"


def vectors(*, path: str) -> Encoder:
    """Vectors of words in sentences, of any number of layers, as a model of the very text that they are of.

    path: .npz with `words` and `lengths` (words of each sentence) beside the vectors, .parquet with columns sentence,
        layer, word and vector, or .safetensors with `hidden_states` (words, layers, columns) and `words` in its
        metadata.
    """
    file = user_path(path)
    return _encoder(file, file.stat().st_mtime_ns if file.is_file() else 0)


def vectors_text(*, path: str | None = None) -> Corpus:
    """The text that a file of vectors holds.

    path: the file, as for `model=vectors`, which takes this text by itself; null: the model's.
    """
    if path is None:
        raise ConfigError(f"dataset=vectors needs a file, as in dataset.path=mine.npz; {EXPECTED}")
    corpus = vectors(path=path).corpus
    assert corpus is not None  # arrays have one
    return corpus


@lru_cache(maxsize=1)
def _encoder(path: Path, changed: int) -> Encoder:
    """The file's encoder; read once for the model and its text."""
    arrays, words, numbers = read_word_vectors(path)
    try:
        encoder = from_arrays(arrays, words, name=path.stem)
    except EncodingError as error:
        raise DataError(f"{path}: {error}") from None
    if numbers is not None:
        encoder.n_layers = max(numbers) + 1
        encoder.layers = tuple(numbers) if len(numbers) < encoder.n_layers else None
    encoder.details = {"architecture": "vectors of a file", "file": path.name}
    return encoder


def read_word_vectors(path: Path) -> WordVectors:
    """Arrays (layers, words, columns) and words of each sentence, and the numbers of the layers where the file says
    them. Raises DataError for a file of another kind, or without words."""
    if not path.is_file():
        raise DataError(f"no such file: {path} (model.path); {EXPECTED}")
    readers = {".npz": _npz, ".parquet": _parquet, ".safetensors": _safetensors}
    if path.suffix not in readers:
        raise DataError(f"{path.name}: {EXPECTED}")
    try:
        arrays, words, numbers = readers[path.suffix](path)
    except CtxexpError:
        raise
    except Exception as error:  # each library has its own
        raise DataError(f"{path} can't be read: {error_text(error)}; {EXPECTED}") from None
    if len(arrays) != len(words):
        raise DataError(f"{path}: vectors of {len(arrays)} sentences, and words of {len(words)}")
    if any(not np.isfinite(x).all() for x in arrays):
        raise DataError(f"{path} holds NaN or infinite numbers")
    if numbers is not None and (sorted(set(numbers)) != numbers or numbers[0] < 0):
        raise DataError(f"{path}: layers {numbers}; expected different whole numbers from 0 on")
    return arrays, words, numbers


def _npz(path: Path) -> WordVectors:
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        held = {key: file[key] for key in ("words", "lengths") if key in file.files}
    if len(held) < 2:
        raise DataError(f"{path} has no words, or no lengths; expected every word, and the number of each sentence's")
    arrays, numbers = read_npz(path, ())
    return arrays, _split(held["words"].tolist(), held["lengths"].tolist(), path), numbers


def _parquet(path: Path) -> WordVectors:
    import pandas as pd

    table = pd.read_parquet(path, columns=["sentence", "layer", "word"])
    first = table[table["layer"] == table["layer"].min()]
    words = [rows["word"].tolist() for _, rows in first.groupby("sentence", sort=True)]
    arrays, numbers = read_parquet(path, ())
    return arrays, words, numbers


def _safetensors(path: Path) -> WordVectors:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as tensors:  # bfloat16, which NumPy lacks
        metadata, keys = tensors.metadata() or {}, list(tensors.keys())
        if "hidden_states" not in keys or "words" not in metadata:
            raise DataError(
                f"{path}: expected a tensor hidden_states, and in its metadata words, a JSON list a sentence"
            )
        x = tensors.get_tensor("hidden_states").float().numpy().transpose(1, 0, 2)
    words: list[list[str]] = json.loads(metadata["words"])
    ends = np.cumsum([len(own) for own in words])
    if not len(ends) or ends[-1] != x.shape[1]:
        raise DataError(
            f"{path}: hidden_states of {x.shape[1]} words, but {ends[-1] if len(ends) else 0} in its metadata"
        )
    return np.split(x, ends[:-1], axis=1), words, None


def _split(words: Sequence[str], lengths: Sequence[int], path: Path) -> list[list[str]]:
    ends = np.cumsum(lengths).tolist()
    if not ends or ends[-1] != len(words):
        raise DataError(f"{path}: {len(words)} words, but lengths add up to {ends[-1] if ends else 0}")
    return [list(words[end - n : end]) for end, n in zip(ends, lengths, strict=True)]
