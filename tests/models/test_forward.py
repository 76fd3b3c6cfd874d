"""Prepacked linear layers give the plain ones' vectors, and are refused where they can't be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ctxexp
from ctxexp import Corpus, Sentence
from ctxexp.errors import ConfigError, UnknownName
from ctxexp.models import Checkpoint, TransformerOptions
from ctxexp.models.huggingface import from_files
from ctxexp.models.transformer import forward
from tests import tiny_models

TEXTS = ["the dog jumps", "money in the bank", "the dog , running", "happiest 1234 x", "the fox"]
SENTENCES = [Sentence.of(text.split()) for text in TEXTS]
TOLERANCE = 1e-5  # of both kinds' vectors, relative to a layer's largest value


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.make("gpt2", tmp_path_factory.mktemp("gpt2"))


def encoder(folder: Path, **choices: object) -> Any:
    return from_files(Checkpoint.of(str(folder)), TransformerOptions(device="cpu", **choices))  # type: ignore[arg-type]


def read(encoder: Any) -> np.ndarray:
    """Every layer's vectors of the sentences, read as a store reads them."""
    encoder.lengths(SENTENCES)
    return np.concatenate([one.layers for one in encoder.encode(SENTENCES)], axis=1)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "t5"])  # with and without biases, Conv1D, views as inputs
def test_prepacked_layers_give_the_plain_vectors(kind: str, tmp_path: Path) -> None:
    checkpoint = tiny_models.make(kind, tmp_path)
    plain, prepacked = encoder(checkpoint), encoder(checkpoint, linear="prepacked")
    linear = [m for m in prepacked.model.modules() if type(m).__name__ in ("Linear", "Conv1D")]
    assert set(prepacked._forward.linear) == set(linear)
    assert plain._forward.linear == {}
    assert bool(plain._forward.gelu) == (kind == "gpt2")
    for ours, theirs in zip(read(prepacked), read(plain), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE * np.abs(theirs).max())
    assert not any("forward" in vars(layer) for layer in linear)  # the model is as it was


def test_each_choice_has_vectors_of_its_own_and_is_recorded(folder: Path, tmp_path: Path) -> None:
    corpus, recorded = Corpus("tiny", tuple(SENTENCES)), []
    for choices in ({}, {"linear": "plain"}, {"linear": "prepacked"}):
        one = encoder(folder, **choices)
        recorded.append((one.details["linear"], one.sentence_encoder().details["linear"]))
        options = [f"cache.folder={tmp_path}"]
        found = ctxexp.measure(one, corpus, metrics="word_norm", min_contexts=2, options=options, progress=False)
        assert found.info.encoded == len(SENTENCES) * (choices != {"linear": "plain"})  # plain is the default
    assert recorded == [("plain",) * 2, ("plain",) * 2, ("prepacked",) * 2]


def fails(*_: object) -> None:
    raise AttributeError("no such operator")


def test_gelu_in_one_pass_is_transformers_own(folder: Path) -> None:
    (layer, gelu), *_ = encoder(folder)._forward.gelu.items()
    x = torch.linspace(-12, 12, 2001)
    torch.testing.assert_close(gelu(x), layer(x), rtol=1e-6, atol=1e-6)
    assert encoder(folder, dtype="bfloat16")._forward.gelu == {}  # rounded once instead of eight times: other numbers


def test_messages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for choice in ("quick", "auto"):
        with pytest.raises(UnknownName, match=rf"no model.linear '{choice}'.*\bplain, prepacked"):
            encoder(folder, linear=choice)
    with pytest.raises(ConfigError, match=r"layers in float32 on a CPU, got GPT2Model in .*; use linear=plain$"):
        encoder(folder, linear="prepacked", dtype="bfloat16")
    monkeypatch.setattr(forward, "prepacked_product", fails)
    with pytest.raises(ConfigError, match=r"has no such layers on this processor \(no such operator\)"):
        encoder(folder, linear="prepacked")
