"""Vectors that other engines wrote, or a file holds with its words: an array a sentence, whatever its axes, and the
numbers of its layers; `model=vectors model.path=FILE` is a model of the latter, and its text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ctxexp import Corpus, CtxexpError, Encoder, from_arrays
from ctxexp.datasets import user_path
from ctxexp.errors import ConfigError, DataError, EncodingError, ModelError, error_text
from ctxexp.models import TokenStates

EXPECTED = (
    "expected .npz, .parquet, .json (llama.cpp), .onnx, .xml (OpenVINO), .safetensors, or a folder of these (vLLM), "
    "one a sentence"
)
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
            `.parquet` with columns sentence, layer, vector; `.json` as llama.cpp's `llama-embedding --pooling none
            --embd-output-format json`, its server (`/embedding`) or llama-cpp-python's `create_embedding` gives;
            `.safetensors` with `hidden_states` (tokens, layers, columns) and `token_ids`, as vLLM's extracted hidden
            states are documented, or a folder of them in the order of their names; `.onnx` and `.xml`, models whose
            outputs are run here.
        states: The checkpoint's own token states, of the same sentences.

    Returns:
        Arrays with three axes each, and numbers.

    Raises:
        DataError: The file can't be read, or isn't of these sentences.
    """
    readers: dict[str, Callable[[Path], VectorFile]] = {
        ".npz": _npz,
        ".parquet": _parquet,
        ".json": lambda file: _llama_cpp(file, states),
        ".onnx": lambda file: run_onnx(file, states),
        ".xml": lambda file: run_openvino(file, states),
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
    """An array of all sentences, cut along the axis that holds their rows."""
    if lengths is None:
        return [x]
    axes = [i for i, size in enumerate(x.shape) if size == int(lengths.sum())]
    if not axes:
        raise DataError(f"{path}: lengths add up to {int(lengths.sum())}, but the array has shape {x.shape}")
    return np.split(x, np.cumsum(lengths)[:-1], axis=axes[0])


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


def _llama_cpp(path: Path, states: Sequence[TokenStates]) -> VectorFile:
    """The last layer: of `llama-embedding` an entry a token of all texts, of others one a text."""
    read = json.loads(path.read_text(encoding="utf-8"))
    entries = read["data"] if isinstance(read, dict) else read
    vectors = [np.array(entry["embedding"], np.float64) for entry in sorted(entries, key=lambda e: e["index"])]
    if all(x.ndim == 1 for x in vectors):
        if len(vectors) == len(states):
            raise DataError(f"{path} holds one vector a text; expected one a token: run llama.cpp with --pooling none")
        lengths = [len(own.ids) for own in states]
        if len(vectors) != sum(lengths):
            raise DataError(
                f"{path} has vectors of {len(vectors)} tokens, the checkpoint's tokenizer makes {sum(lengths)} of the "
                "text; expected the same text, a line a sentence"
            )
        vectors = np.split(np.array(vectors), np.cumsum(lengths)[:-1])
    return VectorFile([x[None] for x in vectors])


def _safetensors(path: Path, states: Sequence[TokenStates]) -> VectorFile:
    from safetensors import safe_open

    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    vectors = []
    for file, own in zip(files, states, strict=False):
        with safe_open(file, framework="pt") as tensors:  # bfloat16, which NumPy lacks
            keys = list(tensors.keys())
            if "hidden_states" not in keys:
                raise DataError(f"{file}: no tensor hidden_states; it has {', '.join(keys)}")
            x = tensors.get_tensor("hidden_states").float().numpy()
            ids = tensors.get_tensor("token_ids").numpy().ravel() if "token_ids" in keys else own.ids
        n = len(own.ids)
        if not np.array_equal(ids[:n], own.ids):
            raise DataError(
                f"{file}: its token_ids begin {ids[:5].tolist()}, the checkpoint's tokenizer gives "
                f"{own.ids[:5].tolist()} for this sentence; expected the same text in the same order"
            )
        vectors.append(x[:n] if len(ids) > n else x)  # generated tokens stand behind the text's
    if len(files) != len(states):
        raise DataError(f"{path} has {len(files)} files of sentences, the text {len(states)} sentences")
    return VectorFile(vectors)


def _word_safetensors(path: Path) -> VectorFile:
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
    return VectorFile(np.split(x, ends[:-1], axis=1), None, words)


def run_onnx(path: Path, states: Sequence[TokenStates]) -> VectorFile:
    """Every output of three axes of an ONNX model, for each sentence's tokens. Raises ModelError without the engine."""
    try:
        import onnxruntime  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError as error:
        raise ModelError(f"{path.name} is run by ONNX Runtime: pip install onnxruntime") from error
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    return VectorFile([_stack(session.run(None, _inputs(names, own.ids, path)), path) for own in states])


def run_openvino(path: Path, states: Sequence[TokenStates]) -> VectorFile:
    """Every output of three axes of an OpenVINO model, likewise."""
    try:
        import openvino  # type: ignore[import-not-found,unused-ignore]
    except ModuleNotFoundError as error:
        raise ModelError(f"{path.name} is run by OpenVINO: pip install openvino") from error
    # float32 throughout: some processors compute in half precision otherwise
    model = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    names = [one.any_name for one in model.inputs]
    vectors = []
    for own in states:
        out = model(_inputs(names, own.ids, path))
        vectors.append(_stack([out[i] for i in range(len(model.outputs))], path))
    return VectorFile(vectors)


def _inputs(names: Sequence[str], ids: np.ndarray, path: Path) -> dict[str, np.ndarray]:
    known = {
        "input_ids": ids[None].astype(np.int64),
        "attention_mask": np.ones((1, len(ids)), np.int64),
        "token_type_ids": np.zeros((1, len(ids)), np.int64),
        "position_ids": np.arange(len(ids), dtype=np.int64)[None],
    }
    if unknown := [name for name in names if name not in known]:
        raise DataError(f"{path.name} asks for {', '.join(unknown)}; expected inputs among {', '.join(known)}")
    return {name: known[name] for name in names}


def _stack(outputs: Sequence[Any], path: Path) -> np.ndarray:
    """(layers, tokens, columns) of outputs (1, tokens, columns); others, such as a pooler's, are passed over."""
    arrays = [np.asarray(x) for x in outputs]
    layers = [x[0] for x in arrays if x.ndim == 3 and len(x) == 1]
    if not layers or len({x.shape for x in layers}) > 1:
        raise DataError(
            f"{path.name} has outputs of shapes {[x.shape for x in arrays]}; expected (1, tokens, columns) of "
            "each layer"
        )
    return np.stack(layers)


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
