"""Files of vectors with words as a model: every format gives what the arrays in memory give."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from ctxexp_compare.checks.token_files import read_word_vectors, vectors, vectors_text
from safetensors.torch import save_file

import ctxexp
from ctxexp import Results
from ctxexp.errors import ConfigError, DataError
from tests.composed import run_command_line

WORDS = [[f"w{j}" for j in range(i % 7, i % 7 + 4)] for i in range(1, 60)]
HELD = {"words": np.concatenate(WORDS), "lengths": [len(own) for own in WORDS]}
EVERY = np.float32(np.random.default_rng(0).normal(size=(3, 4 * len(WORDS), 6)) + 1)  # of all words, no two alike
ARRAYS = np.split(EVERY, len(WORDS), axis=1)  # of each sentence


def npz(path: Path) -> None:
    np.savez(path, vectors=EVERY, **HELD)


def npz_by_layer(path: Path) -> None:
    np.savez(path, **HELD, **{f"layer_{i}": x for i, x in enumerate(EVERY)})


def parquet(path: Path) -> None:
    rows = [
        (i, layer, word, x[layer, j])
        for i, (own, x) in enumerate(zip(WORDS, ARRAYS, strict=True))
        for layer in range(3)
        for j, word in enumerate(own)
    ]
    pd.DataFrame(rows, columns=["sentence", "layer", "word", "vector"]).to_parquet(path)


def safetensors(path: Path) -> None:
    x = torch.from_numpy(np.ascontiguousarray(EVERY.transpose(1, 0, 2)))
    save_file({"hidden_states": x}, path, metadata={"words": json.dumps(WORDS)})


@pytest.fixture(scope="module")
def expected() -> Results:
    return ctxexp.measure(ctxexp.from_arrays(ARRAYS, WORDS), options=["bootstrap=0"], progress=False)


@pytest.mark.parametrize(
    ("write", "suffix"), [(npz, ".npz"), (npz_by_layer, ".npz"), (parquet, ".parquet"), (safetensors, ".safetensors")]
)
def test_a_file_gives_what_its_arrays_give(
    write: Callable[[Path], None], suffix: str, expected: Results, tmp_path: Path
) -> None:
    file = tmp_path / f"mine{suffix}"
    write(file)
    found = ctxexp.measure("vectors", options=[f"model.path={file}", "bootstrap=0"], progress=False)
    assert found.info.corpus.fingerprint == expected.info.corpus.fingerprint
    assert len(found.measures()) > 3
    for measure in expected.measures():
        assert found.curve(measure).tolist() == pytest.approx(expected.curve(measure).tolist(), nan_ok=True)


def test_the_command_runs_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    npz(tmp_path / "mine.npz")
    monkeypatch.chdir(tmp_path)
    words = ["model=vectors", "model.path=mine.npz", "metric=anisotropy", "bootstrap=0", "sink=none"]
    assert run_command_line(words) == 0
    assert "vectors mine.npz" in capfd.readouterr().out
    assert run_command_line(["model=vectors", "sink=none"]) == 2
    assert "model.path" in capfd.readouterr().err
    with pytest.raises(ConfigError, match=r"dataset=vectors needs a file, as in dataset.path=mine.npz"):
        vectors_text()


def test_layers_keep_the_numbers_of_the_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "few.npz", layer_5=EVERY[0], layer_12=EVERY[1], **HELD)
    encoder = vectors(path=str(tmp_path / "few.npz"))
    assert (encoder.layers, encoder.n_layers) == ((5, 12), 13)
    npz_by_layer(tmp_path / "few.npz")
    assert vectors(path=str(tmp_path / "few.npz")).layers is None  # read anew, and all of them


def test_bad_files_are_refused_in_a_line(tmp_path: Path) -> None:
    words = HELD["words"]
    cases = {
        "has no words, or no lengths": {"x": EVERY, "words": words},
        "sentence 1: vectors of shape": {"a": EVERY[:, :4], "b": EVERY[:, :5], "words": words[:8], "lengths": [4, 4]},
        "expected different whole numbers": {"a3": EVERY[0], "b3": EVERY[1], **HELD},
    }
    for match, held in cases.items():
        np.savez(tmp_path / "bad.npz", **held)
        with pytest.raises(DataError, match=match):
            vectors(path=str(tmp_path / "bad.npz"))
    for name in ("none.npz", "none.txt"):
        with pytest.raises(DataError, match=r"expected .npz, .parquet or .safetensors of vectors with their words"):
            read_word_vectors(tmp_path / name)
