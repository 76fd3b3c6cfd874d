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
LENGTHS = [len(own) for own in WORDS]


def arrays() -> list[np.ndarray]:
    """(3, words, 6) of each sentence, no two alike."""
    rng = np.random.default_rng(0)
    return [np.float32(rng.normal(size=(3, len(own), 6)) + 1) for own in WORDS]


def npz(path: Path) -> Path:
    held = {"words": np.concatenate(WORDS), "lengths": LENGTHS}
    np.savez(path.with_suffix(".npz"), vectors=np.concatenate(arrays(), axis=1), **held)
    return path.with_suffix(".npz")


def npz_by_layer(path: Path) -> Path:
    every = np.concatenate(arrays(), axis=1)
    held = {"words": np.concatenate(WORDS), "lengths": LENGTHS}
    np.savez(path.with_suffix(".npz"), **held, **{f"layer_{i}": x for i, x in enumerate(every)})
    return path.with_suffix(".npz")


def parquet(path: Path) -> Path:
    rows = [
        (i, layer, word, x[layer, j])
        for i, (own, x) in enumerate(zip(WORDS, arrays(), strict=True))
        for layer in range(3)
        for j, word in enumerate(own)
    ]
    file = path.with_suffix(".parquet")
    pd.DataFrame(rows, columns=["sentence", "layer", "word", "vector"]).to_parquet(file)
    return file


def safetensors(path: Path) -> Path:
    x = torch.from_numpy(np.ascontiguousarray(np.concatenate(arrays(), axis=1).transpose(1, 0, 2)))
    save_file({"hidden_states": x}, path.with_suffix(".safetensors"), metadata={"words": json.dumps(WORDS)})
    return path.with_suffix(".safetensors")


@pytest.fixture(scope="module")
def expected() -> Results:
    return ctxexp.measure(ctxexp.from_arrays(arrays(), WORDS), options=["bootstrap=0"], progress=False)


@pytest.mark.parametrize("write", [npz, npz_by_layer, parquet, safetensors])
def test_a_file_gives_what_its_arrays_give(write: Callable[[Path], Path], expected: Results, tmp_path: Path) -> None:
    file = write(tmp_path / "mine")
    found = ctxexp.measure("vectors", options=[f"model.path={file}", "bootstrap=0"], progress=False)
    assert found.info.corpus.fingerprint == expected.info.corpus.fingerprint
    assert len(found.measures()) > 3
    for measure in expected.measures():
        assert found.curve(measure).tolist() == pytest.approx(expected.curve(measure).tolist(), nan_ok=True)


def test_the_command_runs_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    npz(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    words = ["model=vectors", "model.path=mine.npz", "metric=anisotropy", "bootstrap=0", "sink=none"]
    assert run_command_line(words) == 0
    assert "vectors mine.npz" in capfd.readouterr().out
    assert run_command_line(["model=vectors", "sink=none"]) == 2
    assert "model.path" in capfd.readouterr().err
    with pytest.raises(ConfigError, match=r"dataset=vectors needs a file, as in dataset.path=mine.npz"):
        vectors_text()


def test_layers_keep_the_numbers_of_the_file(tmp_path: Path) -> None:
    every = np.concatenate(arrays(), axis=1)
    held = {"words": np.concatenate(WORDS), "lengths": LENGTHS}
    np.savez(tmp_path / "few.npz", layer_5=every[0], layer_12=every[1], **held)
    encoder = vectors(path=str(tmp_path / "few.npz"))
    assert (encoder.layers, encoder.n_layers) == ((5, 12), 13)
    np.savez(tmp_path / "few.npz", layer_0=every[0], layer_1=every[1], layer_2=every[2], **held)
    assert vectors(path=str(tmp_path / "few.npz")).layers is None  # read anew, and all of them


def test_bad_files_are_refused_in_a_line(tmp_path: Path) -> None:
    every, words = np.concatenate(arrays(), axis=1), np.concatenate(WORDS)
    cases = {
        "has no words, or no lengths": {"x": every, "words": words},
        "sentence 1: vectors of shape": {"a": every[:, :4], "b": every[:, :5], "words": words[:8], "lengths": [4, 4]},
        "expected different whole numbers": {"a3": every[0], "b3": every[1], "words": words, "lengths": LENGTHS},
    }
    for match, held in cases.items():
        np.savez(tmp_path / "bad.npz", **held)
        with pytest.raises(DataError, match=match):
            vectors(path=str(tmp_path / "bad.npz"))
    for name in ("none.npz", "none.txt"):
        with pytest.raises(DataError, match=r"expected .npz, .parquet or .safetensors of vectors with their words"):
            read_word_vectors(tmp_path / name)
