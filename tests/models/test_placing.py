"""A model laid over devices by accelerate, and weights quantised while they are loaded."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from ctxexp import Sentence
from ctxexp.errors import ConfigError
from ctxexp.models import TransformerOptions
from ctxexp.models.transformer.leftovers import loading_arguments
from tests import tiny_models
from tests.shipped import huggingface

SENTENCES = [Sentence.of(text.split()) for text in ("the dog jumps", "money in the bank")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.make("llama", tmp_path_factory.mktemp("llama"))


def read(folder: Path, **choices: object) -> tuple[str, np.ndarray]:
    encoder = huggingface(checkpoint=str(folder), **choices)
    return encoder.name, np.concatenate([one.layers for one in encoder.encode(SENTENCES)], axis=1)


@pytest.mark.skipif(find_spec("accelerate") is None, reason="accelerate is not installed")
def test_a_model_that_accelerate_lays_out_gives_the_same_vectors(folder: Path) -> None:
    (name, ours), (plain, theirs) = read(folder, device_map="auto"), read(folder, device="cpu")
    assert name == plain  # where a model computes is no part of what its vectors are
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.skipif(find_spec("torchao") is None, reason="torchao is not installed")
def test_quantised_weights_are_another_model_close_by(folder: Path) -> None:
    (name, ours), (plain, theirs) = read(folder, quantization="torchao_int8", device="cpu"), read(folder, device="cpu")
    assert "quantized=torchao_int8(torchao " in name
    assert "quantized" not in plain
    np.testing.assert_array_equal(ours[0], theirs[0])  # the embedding is no linear layer
    away = np.abs(ours - theirs).max(axis=(1, 2)) / np.abs(theirs).max(axis=(1, 2))
    assert np.all(away[1:] > 0)
    assert np.all(away < 0.1)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"device_map": "auto", "device": "cpu"}, r"^model\.device_map=auto lays the model on all devices that there "),
        ({"quantization": "torchao_int8"}, r"^model\.quantization=torchao_int8 needs the package torchao: pip install"),
        ({"device_map": "balanced"}, r"^model\.device_map=balanced needs the package accelerate: pip install accel"),
    ],
)
def test_what_is_missing_is_named_before_anything_is_loaded(
    choices: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxexp.models.choices.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=message):
        TransformerOptions(**choices)  # type: ignore[arg-type]


def test_bitsandbytes_needs_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxexp.models.choices.find_spec", lambda name: name)
    with pytest.raises(
        ConfigError, match=r"^model\.quantization=bitsandbytes_4bit: expected a GPU, .* device=cpu; use "
    ):
        loading_arguments(TransformerOptions(quantization="bitsandbytes_4bit"), torch.device("cpu"))
