"""Vectors that other engines wrote, or a file holds with its words: an array a sentence, whatever its axes, and the
numbers of its layers; `model=vectors model.path=FILE` is a model of the latter, and its text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ctxexp import Corpus, CtxexpError, Encoder, from_arrays
from ctxexp.datasets import user_path
from ctxexp.errors import ConfigError, DataError, EncodingError, error_text
from ctxexp.models import TokenStates
from ctxexp_compare.light.files import read_tensors

EXPECTED = "expected .npz, .parquet, .safetensors, or a folder of these (vLLM), one a sentence"
EXPECTED_WORDS = "expected .npz, .parquet or .safetensors of vectors with their words"


class VectorFile(NamedTuple):
    """An array a sentence, and the numbers of the layers and the words of each sentence where the file says them."""

    arrays: list[np.ndarray]
    layers: list[int] | None = None
    words: list[list[str]] | None = None


def read_vectors(path: Path, states: Sequence[TokenStates]) -> VectorFile:
    """The arrays of a file, one for each sentence, and the numbers of their layers where the file says them.

    Args:
        path: `.npz` with an array (layers, tokens, columns) for each sentence, in the order of their keys, or with
            `layers` and `lengths`, or with an array (tokens, columns) for each layer, its number last in the key;
            `.parquet` with columns sentence, layer, vector; `.safetensors` with `hidden_states` (tokens, layers,
            columns) and `token_ids`, as vLLM's extracted hidden states are documented, or a folder of them in the order
            of their names.
        states: The checkpoint's own token states, of the same sentences.

    Returns:
        Arrays with three axes each, and numbers.

    Raises:
        DataError: The file can't be read, or isn't of these sentences.
    """
    readers: dict[str, Callable[[Path], VectorFile]] = {
        ".npz": _npz,
        ".parquet": _parquet,
        ".safetensors": lambda file: _safetensors(file, states),
    }
    return _read(path, readers, EXPECTED)


def read_word_vectors(path: Path) -> VectorFile:
    """Arrays (layers, words, columns) and words of each sentence, and the numbers of the layers where the file says
    them. Raises DataError for a file of another kind, or without words."""
    readers = {".npz": _npz, ".parquet": _parquet, ".safetensors": _word_safetensors}
    if path.is_dir():
        raise DataError(f"{path.name}: {EXPECTED_WORDS}")
    found = _read(path, readers, EXPECTED_WORDS)
    if found.words is None:
        raise DataError(f"{path} has no words, or no lengths; expected every word, and the number of each sentence's")
    if len(found.arrays) != len(found.words):
        raise DataError(f"{path}: vectors of {len(found.arrays)} sentences, and words of {len(found.words)}")
    if found.layers is not None and (sorted(set(found.layers)) != found.layers or found.layers[0] < 0):
        raise DataError(f"{path}: layers {found.layers}; expected different whole numbers from 0 on")
    return found


def _read(path: Path, readers: Mapping[str, Callable[[Path], VectorFile]], expected: str) -> VectorFile:
    """A file by its suffix; a folder is one of safetensors. Raises DataError if unreadable or not finite."""
    suffix = ".safetensors" if path.is_dir() else path.suffix
    if not path.exists():
        raise DataError(f"no such file or folder: {path}; {expected}")
    if suffix not in readers:
        raise DataError(f"{path.name}: {expected}")
    try:
        found = readers[suffix](path)
    except CtxexpError:
        raise
    except Exception as error:  # each library has its own
        raise DataError(f"{path} can't be read: {error_text(error)}; {expected}") from None
    if any(not np.isfinite(x).all() for x in found.arrays):
        raise DataError(f"{path} holds NaN or infinite numbers")
    return found


def _npz(path: Path) -> VectorFile:
    """The arrays, by sentence where it has `lengths`, and the numbers of their layers where its keys say them."""
    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    lengths, words = arrays.pop("lengths", None), arrays.pop("words", None)
    by_sentence = None if words is None or lengths is None else _split_words(words.tolist(), lengths.tolist(), path)
    vectors = {key: x for key, x in arrays.items() if np.issubdtype(x.dtype, np.floating)}
    if not vectors:
        raise DataError(f"{path} holds no array of floats; it has {', '.join(arrays) or 'nothing'}")
    keys = sorted(vectors, key=lambda key: (_number(key), key))
    if all(vectors[key].ndim == 2 for key in keys):
        whole, names = np.stack([vectors[key] for key in keys]), [_number(key) for key in keys]
        return VectorFile(_split(whole, lengths, path), names if -1 not in names else None, by_sentence)
    if len(keys) == 1:
        return VectorFile(_split(vectors[keys[0]], lengths, path), None, by_sentence)
    return VectorFile([vectors[key] for key in keys], None, by_sentence)


def _split(x: np.ndarray, lengths: np.ndarray | None, path: Path) -> list[np.ndarray]:
    """An array (layers, rows, columns) of all sentences, cut into theirs."""
    if lengths is None:
        return [x]
    if x.ndim != 3 or x.shape[1] != int(lengths.sum()):
        raise DataError(f"{path}: lengths add up to {int(lengths.sum())}, but the array has shape {x.shape}")
    return np.split(x, np.cumsum(lengths)[:-1], axis=1)


def _number(key: str) -> int:
    """The last whole number in a key; -1 for none."""
    found = re.findall(r"\d+", key)
    return int(found[-1]) if found else -1


def _split_words(words: Sequence[str], lengths: Sequence[int], path: Path) -> list[list[str]]:
    ends = np.cumsum(lengths).tolist()
    if not ends or ends[-1] != len(words):
        raise DataError(f"{path}: {len(words)} words, but lengths add up to {ends[-1] if ends else 0}")
    return [list(words[end - n : end]) for end, n in zip(ends, lengths, strict=True)]


def _parquet(path: Path) -> VectorFile:
    """Arrays of a table of sentence, layer and vector, a row a token, the numbers of its layers, and words if any."""
    import pandas as pd

    table = pd.read_parquet(path)
    if missing := [name for name in ("sentence", "layer", "vector") if name not in table.columns]:
        raise DataError(f"{path}: no column {', '.join(missing)}; expected sentence, layer, vector, a row a token")
    layers = sorted(int(i) for i in table["layer"].unique())
    vectors = []
    for _, rows in table.groupby("sentence", sort=True):
        by_layer = [np.stack(rows.loc[rows["layer"] == i, "vector"].to_list()) for i in layers]
        if len({len(x) for x in by_layer}) > 1:
            raise DataError(f"{path}: layers have other numbers of rows in one sentence; expected one a token in each")
        vectors.append(np.stack(by_layer))
    if "word" not in table.columns:
        return VectorFile(vectors, layers)
    first = table[table["layer"] == layers[0]]
    return VectorFile(vectors, layers, [rows["word"].tolist() for _, rows in first.groupby("sentence", sort=True)])


def _safetensors(path: Path, states: Sequence[TokenStates]) -> VectorFile:
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    if len(files) != len(states):
        raise DataError(f"{path} has {len(files)} files of sentences, the text {len(states)} sentences")
    vectors = []
    for file, own in zip(files, states, strict=True):
        x, tensors, _ = _hidden_states(file)
        n, ids = len(own.ids), tensors.get("token_ids", own.ids).ravel()
        if not np.array_equal(ids[:n], own.ids):
            raise DataError(
                f"{file}: its token_ids begin {ids[:5].tolist()}, the checkpoint's tokenizer gives "
                f"{own.ids[:5].tolist()} for this sentence; expected the same text in the same order"
            )
        vectors.append(x[:, :n] if len(ids) > n else x)  # generated tokens stand behind the text's
    return VectorFile(vectors)


def _hidden_states(path: Path) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, str]]:
    """`hidden_states` as (layers, rows, columns), all tensors, and the metadata."""
    tensors, metadata = read_tensors(path)
    if "hidden_states" not in tensors:
        raise DataError(f"{path}: no tensor hidden_states; it has {', '.join(tensors)}")
    return tensors["hidden_states"].transpose(1, 0, 2), tensors, metadata


def _word_safetensors(path: Path) -> VectorFile:
    x, _, metadata = _hidden_states(path)
    words: list[list[str]] = json.loads(metadata.get("words", "[]"))
    lengths = [len(own) for own in words]
    return VectorFile(_split(x, np.array(lengths, int), path), None, words)


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
        raise ConfigError(f"dataset=vectors needs a file, as in dataset.path=mine.npz; {EXPECTED_WORDS}")
    corpus = vectors(path=path).corpus
    assert corpus is not None  # arrays have one
    return corpus


@lru_cache(maxsize=1)
def _encoder(path: Path, changed: int) -> Encoder:
    """The file's encoder; read once for the model and its text."""
    arrays, numbers, words = read_word_vectors(path)
    assert words is not None
    try:
        encoder = from_arrays(arrays, words, name=path.stem)
    except EncodingError as error:
        raise DataError(f"{path}: {error}") from None
    if numbers is not None:
        encoder.n_layers = max(numbers) + 1
        encoder.layers = tuple(numbers) if len(numbers) < encoder.n_layers else None
    encoder.details = {"architecture": "vectors of a file", "file": path.name}
    return encoder
