"""Kinds of input that `sizes` and `devices` spoil: what makes an intact one in a folder, and what reads its values."""

from __future__ import annotations

import shutil
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from bounded import bounded

from ctxexp import Results
from tests.made import results_with, told

from . import weights

Values = dict[str, np.ndarray]
Maker = Callable[[Path], object]
Reader = Callable[[Path], Values]


@contextmanager
def copy_of(kind: str, make: Maker, read: Reader, folder: Path) -> Iterator[Values]:
    """A copy of an intact input in `folder`, for the time of the block; gives the intact one's values."""
    source, values = intact(kind, make, read, folder.parent)
    shutil.copytree(source, folder)
    try:
        yield values
    finally:
        shutil.rmtree(folder)


@cache
def intact(kind: str, make: Maker, read: Reader, parent: Path) -> tuple[Path, Values]:
    """An intact input of that kind and its values; reading it also imports what is imported late."""
    if kind == "gguf" and find_spec("gguf") is None:
        raise unittest.SkipTest("the package gguf is not installed")
    folder = parent / f"intact-{kind}"
    make(folder)
    values = read(folder)
    bounded(lambda: read(folder))  # or a bound would refuse what is not spoilt
    return folder, values


def differences(found: Values, expected: Values) -> list[str]:
    """The names of up to three expected values that were not found, or differ."""
    return [name for name in expected if not same(found.get(name), expected[name])][:3]


def same(one: np.ndarray | None, other: np.ndarray) -> bool:
    return one is not None and np.array_equal(one, other, equal_nan=other.dtype.kind == "f")


def make_checkpoint(kind: str) -> Maker:
    return lambda folder: weights.make(kind, folder)


def read_checkpoint(kind: str) -> Reader:
    """Every layer of a short text."""

    def read(folder: Path) -> Values:
        import torch

        torch.set_num_threads(1)  # a forked process has none of its parent's threads
        files = {"words": sorted(p.name for p in folder.glob("v.*"))}.get(kind, [""])
        found = {}
        for file in files:
            encoder = weights.load(kind, folder, file)
            for i, one in enumerate(encoder.encode(weights.TEXT.sentences)):
                found[f"{file} {i}"] = np.asarray(one.layers)
        return found

    return read


def make_gguf(folder: Path) -> None:
    from models.test_gguf import write

    folder.mkdir()
    write(folder / "model.gguf")


def read_gguf(folder: Path) -> Values:
    import torch

    from ctxexp.models.huggingface import huggingface

    torch.set_num_threads(1)
    encoder = huggingface(checkpoint=str(folder / "model.gguf"), pooling="pieces", device="cpu")
    return {str(i): np.asarray(one.layers) for i, one in enumerate(encoder.encode(weights.TEXT.sentences))}


def make_results(folder: Path) -> None:
    import pandas as pd

    curves = {"self_similarity/raw": [0.1, 0.2, 0.3], "self_similarity/adjusted": [0.1, np.nan, 0.2]}
    tables = {"words": pd.DataFrame({"word": ["bank", "river"], "raw": [0.25, 0.5]})}
    replicates = {"self_similarity/raw": np.ones((3, 8), np.float32)}
    results_with(curves, {"sts.last2/all": 0.3}, tables=tables, replicates=replicates, info=told(n_layers=3)).save(
        folder
    )


def read_results(folder: Path) -> Values:
    """The values, after everything that looks at the number of layers has been asked."""
    results = Results.load(folder)
    repr(results), results._repr_html_(), results.plot()
    found = {**results.by_name, "layers": np.arange(results.n_layers)}
    found |= {f"table {name}": table.to_numpy(str) for name, table in results.tables.items()}
    return found | {f"replicates {key}": drawn for key, drawn in results.replicates.items()}


def make_text(folder: Path) -> None:
    (folder / "text").mkdir(parents=True)
    (folder / "text" / "a.txt").write_text("the river\nthe bank\n")
    (folder / "text" / "b.txt").write_text("the money\n")


def read_text(folder: Path, name: str = "text") -> Values:
    from ctxexp.datasets.text import text

    return {"sentences": np.array([s.text for s in text(path=str(folder / name)).sentences])}
