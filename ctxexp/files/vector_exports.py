"""Word vectors into files that other programs read; `ctxexp.files.vector_files` reads them back to the last bit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ctxexp.errors import ModelError
from ctxexp.files.writing import atomic_write


def write_text(path: Path, words: Sequence[str], vectors: np.ndarray) -> None:
    """word2vec's text: a line `words dimension`, then each word with its numbers, 9 digits: exact in float32."""
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{len(words)} {vectors.shape[1]}\n")
        for word, row in zip(_writable(words), np.asarray(vectors, np.float32).tolist(), strict=True):
            file.write(word + "".join(f" {value:.9g}" for value in row) + "\n")


def write_binary(path: Path, words: Sequence[str], vectors: np.ndarray) -> None:
    """word2vec's binary: the same header, then each word, a blank, little-endian float32 numbers and a line end."""
    with atomic_write(path) as part, part.open("wb") as file:
        file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for word, row in zip(_writable(words), np.asarray(vectors, "<f4"), strict=True):
            file.write(word.encode() + b" " + row.tobytes() + b"\n")


def write_safetensors(path: Path, words: Sequence[str], vectors: np.ndarray) -> None:
    """A tensor `vectors` (words, dim) float32; the words are a JSON list under `words` in the metadata."""
    from safetensors.numpy import save

    metadata = {"words": json.dumps(list(words), ensure_ascii=False)}
    # Not save_file: it makes a file that nobody but its owner may read.
    with atomic_write(path) as part:
        part.write_bytes(save({"vectors": np.ascontiguousarray(vectors, np.float32)}, metadata=metadata))


def _writable(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if not word or word.split() != [word]:
            raise ModelError(f"word2vec's formats can't hold the word {word!r}: it is empty or has white space")
        yield word


EXPORTS: dict[str, tuple[str, Callable[[Path, Sequence[str], np.ndarray], None]]] = {
    "word2vec_text": ("vectors.txt", write_text),
    "word2vec_binary": ("vectors.bin", write_binary),
    "safetensors": ("vectors.safetensors", write_safetensors),
}
"""Format -> its file's name and its writer."""
