"""The training step as an axis: checkpoints that aren't what they are called are named, heat maps hold the values."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from ctxexp_lab.steps.command import (
    distances,
    find_checkpoints,
    misplaced,
    sampled_weights,
    steps,
    wrong_checkpoints,
)
from ctxexp_lab.steps.figure import table
from ctxexp_lab.steps.first_word_length import FirstWordLength
from ctxexp_lab.training.train import train

from ctxexp.command.verb import Verb
from ctxexp.errors import DataError
from ctxexp.testing import check
from tests.sample_results import results_with, run_info

from .tiny_recipes import config

STEPS = (0, 8, 16, 32, 64, 128, 256, 512)


def way(seed: int, *, pull: float = 0.0) -> list[np.ndarray]:
    """Weights at STEPS of a random walk with a drift, which `pull` holds back as weight decay does."""
    rng = np.random.default_rng(seed)
    w, drift, out, t = rng.normal(size=2000) * 0.02, rng.normal(size=2000) * 1e-5, [], 0
    for step in STEPS:
        for _ in range(step - t):
            w = w * (1 - pull) + drift + rng.normal(size=2000) * 3e-4
        out.append(w.copy())
        t = step
    return out


@pytest.fixture(scope="module")
def ways() -> list[np.ndarray]:
    return [distances(way(seed, pull=0.004 * (seed % 2))) for seed in range(6)]


def test_checkpoints_in_order_raise_no_alarm(ways: Sequence[np.ndarray]) -> None:
    assert [misplaced(distance) for distance in ways] == [[]] * 6


def test_every_exchange_of_two_checkpoints_is_noticed(ways: Sequence[np.ndarray]) -> None:
    for distance in ways:
        for i in range(len(STEPS)):
            for j in range(i + 1, len(STEPS)):
                order = np.arange(len(STEPS))
                order[[i, j]] = j, i
                assert {*misplaced(distance[np.ix_(order, order)])} & {i, j}


def test_a_checkpoint_of_another_step_or_training_is_named() -> None:
    weights = way(0)
    at_300 = weights[6] + (weights[7] - weights[6]) * 0.2  # between steps 256 and 512
    for i in (0, 1, 2, 3, 4):
        assert misplaced(distances([*weights[:i], at_300, *weights[i + 1 :]])) == [i]
    assert misplaced(distances([*weights[:3], way(9)[3], *weights[4:]])) == [3]


# --- a training's own checkpoints -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    train(config("gpt2", text, folder, "steps=16", "keep=1", "held_out_limit=20", "model.muon_rate=0.01"))
    return folder / "checkpoints"


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "tiny" / "checkpoints"))


def test_a_training_s_checkpoints_are_what_they_are_called(trained: Path) -> None:
    found = find_checkpoints(str(trained), [])
    assert [one.step for one in found] == [0, 1, 2, 4, 8, 16]
    assert wrong_checkpoints(found) == []
    assert len(sampled_weights(found[0].files)) > 5000


def test_wrong_ones_are_named(copied: Path) -> None:
    for name in ("step2", "step8"):
        (copied / name / "run.json").unlink()
    shutil.copy(copied / "step8" / "model.safetensors", copied / "step2")
    assert wrong_checkpoints(find_checkpoints(str(copied), [])) == ["step2 and step8 have the same weights"]
    shutil.rmtree(copied / "step8")
    assert wrong_checkpoints(find_checkpoints(str(copied), [])) == [
        "step2 is out of order: its weights lie elsewhere on the training's way, or on another's"
    ]
    (copied / "step1" / "run.json").write_text(json.dumps({"steps": 7}))
    assert wrong_checkpoints(find_checkpoints(str(copied), []))[0] == "step1 says in its run.json that it is step 7"


def test_the_verb_refuses_wrong_checkpoints(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(copied / "step4" / "model.safetensors", copied / "step2")
    with pytest.raises(DataError, match=r"step2 and step4 have the same weights. With check=false they are measured"):
        steps(str(copied))
    typed = []
    monkeypatch.setattr("ctxexp.command.application.run_experiment", lambda words: typed.append(words) or 0)
    assert Verb("steps", steps)([str(copied), "check=false", "metric=word_norm"]) == 0
    [words] = typed
    assert words[:2] == ["-m", "model=huggingface"]
    assert [Path(path).name for path in words[2].partition("=")[2].split(",")] == [
        f"step{i}" for i in (0, 1, 2, 4, 8, 16)
    ]
    assert words[3:] == ["metric=word_norm"]


# --- when the sink appears ---------------------------------------------------------------------------------------


def test_the_first_word_s_length_is_the_definition_s() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3, 6, 4)) * np.array([9.0, 1, 1, 1, 1, 1])[:, None]
    naive = [np.linalg.norm(one[0]) / np.mean([np.linalg.norm(row) for row in one[1:]]) for one in x]
    np.testing.assert_allclose(FirstWordLength().score(x), naive)
    assert np.isnan(FirstWordLength().score(np.zeros((1, 3, 4)))).all()
    check("metric", FirstWordLength)


# --- the report -----------------------------------------------------------------------------------------------------


def row(*values: float) -> list[str]:
    """The table's row of gpt2's two layers, whose self-similarity is one of these values at each of STEPS."""
    runs = []
    about = {"self_similarity": {"name": "self_similarity", "title": "Self-similarity", "unit": "cosine"}}
    for step, value in zip(STEPS, values, strict=True):
        own = {"checkpoint": f"out/gpt2/checkpoints/step{step}", "weights_hash": f"{step:x}"}
        info = run_info(name="huggingface", n_layers=2, details=own, measures=about)
        ends = {"": 0.0, "_ci_low": -0.01, "_ci_high": 0.01}
        curves = {f"self_similarity/raw{end}": np.full(2, value + by) for end, by in ends.items()}
        runs.append((f"gpt2 step{step}", results_with(curves, info=info)))
    [shown] = table(runs).shown
    return shown


def test_the_table_says_when_half_of_the_change_is_made() -> None:
    assert row(1, 1, 0.95, 0.6, 0.5, 0.5, 0.5, 0.5) == [
        "gpt2", "self_similarity", "1", "0: 1.000 [0.990, 1.010]", "64: 0.500 [0.490, 0.510]",
        "512: 0.500 [0.490, 0.510]", "32",
    ]  # fmt: skip
    for noise in (np.arange(8) * 1e-4, np.array([0, 5, -3, 4, 1, -6, 2, 1]) * 1e-4):
        assert row(*(0.5 + noise))[-1] == "no change"
    turning = row(0.3, 0.3, 0.4, 0.7, 0.5, 0.4, 0.3, 0.2)
    assert turning[4:] == ["32: 0.700 [0.690, 0.710]", "512: 0.200 [0.190, 0.210]", "turns"]
    assert row(0.3, 0.3, 0.35, 0.45, 0.51, 0.52, 0.51, 0.5)[-1] == "32"  # .52 isn't beyond .50
