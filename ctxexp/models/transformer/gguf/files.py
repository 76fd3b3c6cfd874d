"""GGUF files, llama.cpp's single-file format: what one holds, and a place where transformers reads it alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp.errors import ModelError, error_text

if TYPE_CHECKING:
    from gguf import GGUFReader

OUTPUT = "output.weight"  # the format's name of a language model's output matrix; absent where it is tied


def check_gguf(file: Path) -> None:
    """Raise `ModelError` unless the file is there and begins as a GGUF file does; nothing else is read."""
    try:
        with file.open("rb") as raw:
            start = raw.read(4)
    except OSError as error:
        raise ModelError(
            f"{file} can't be read ({error_text(error)}); expected a model's GGUF file or folder"
        ) from None
    if start != b"GGUF":
        raise ModelError(f"{file} begins with {start!r}, so it is no GGUF file; expected one, or the model's folder")


def language_model(kind: str) -> list[str]:
    """transformers' class for a language model of that type, which the file doesn't name; empty if there is none."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CLASSES

    return [name for name in [CLASSES.get(kind)] if isinstance(name, str)]


def read_matrix(file: Path, name: str) -> np.ndarray | None:
    """One tensor by the format's name for it, dequantised to float32; None if it isn't there."""
    from gguf import dequantize

    for tensor in _open(file)[0].tensors:
        if tensor.name == name:
            matrix: np.ndarray = dequantize(tensor.data, tensor.tensor_type)
            return matrix
    return None


@contextmanager
def isolated_file(file: Path) -> Iterator[tuple[Path, GGUFReader, dict[str, Any]]]:
    """A folder that holds the file and nothing else, the file's reader, the only one meanwhile, and its keys with their
    values (the number of strings in an array); no bars.

    Of a tokenizer.json beside the file transformers would take the pieces, whichever model it belongs to; and it parses
    the file three times, which takes seconds each for a vocabulary.
    """
    from unittest.mock import patch  # brings asyncio, which `--help` needn't wait for

    reader, keys = _open(file)
    with TemporaryDirectory(prefix="ctxexp-gguf-") as folder, redirect_stderr(StringIO()):
        (Path(folder) / file.name).symlink_to(file.resolve())
        with patch("gguf.GGUFReader", lambda _: reader):
            yield Path(folder), reader, keys


def _open(file: Path) -> tuple[GGUFReader, dict[str, Any]]:
    check_gguf(file)
    if missing := [name for name in ("gguf", "accelerate") if find_spec(name) is None]:
        raise ModelError(f"reading the GGUF file {file} needs {' and '.join(missing)}: pip install 'ctxexp[gguf]'")
    from gguf import GGUFReader
    from transformers.integrations.gguf import read_gguf_metadata

    try:
        keys, _ = read_gguf_metadata(str(file))  # which ends where the file ends; gguf's goes through 2^60 items
        reader = GGUFReader(file)
    except Exception as error:  # whatever a damaged file makes of its parsing
        raise ModelError(f"{file} can't be read as GGUF ({error_text(error)}); copy or download it again") from error
    if not reader.tensors:
        raise ModelError(f"{file} is a GGUF file without tensors, perhaps of a vocabulary alone; expected a model")
    return reader, keys
