"""Prepacked linear layers give the plain ones' vectors, and are taken where they are quicker, equal and to be had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiny_models
import torch

from ctxexp.dataset import Corpus, Sentence
from ctxexp.errors import ConfigError, UnknownName
from ctxexp.models.choices import Reading
from ctxexp.models.transformer import quickest
from ctxexp.models.transformer.build import from_files
from ctxexp.models.transformer.checkpoints import describe
from ctxexp.models.transformer.encoder import TransformerEncoder
from ctxexp.vectors.encode import open_store

TEXTS = ["the dog jumps", "money in the bank", "the dog , running", "happiest 1234 x", "the fox"]
SENTENCES = [Sentence.of(text.split()) for text in TEXTS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.make("gpt2", tmp_path_factory.mktemp("gpt2"))


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Any number of pieces is enough to try, and any gain to choose."""
    monkeypatch.setattr(quickest, "ENOUGH", 1)
    monkeypatch.setattr(quickest, "GAIN", 0)
    return monkeypatch


def encoder(folder: Path, **choices: object) -> TransformerEncoder:
    return from_files(describe(folder, source="tiny"), Reading(device="cpu", **choices))  # type: ignore[arg-type]


def read(made: TransformerEncoder) -> np.ndarray:
    """Every layer's vectors of the sentences, read as a store reads them."""
    made.lengths(SENTENCES)
    return np.concatenate([one.layers for one in made.encode(SENTENCES)], axis=1)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "t5"])  # with and without biases, Conv1D, views as inputs
def test_prepacked_layers_give_the_plain_vectors(kind: str, tmp_path: Path) -> None:
    made = tiny_models.make(kind, tmp_path)
    plain, prepacked = encoder(made, linear="plain"), encoder(made, linear="prepacked")
    assert len({plain.name, prepacked.name, encoder(made).name}) == 3  # neither is another's cached vectors
    linear = [m for m in prepacked._model.modules() if type(m).__name__ in ("Linear", "Conv1D")]
    assert set(prepacked._pass._layers) == set(linear)
    vectors = read(plain)
    assert bool(plain._pass._gelu) == (kind == "gpt2")
    for ours, theirs in zip(read(prepacked), vectors, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=quickest.TOLERANCE * np.abs(theirs).max())
    assert (plain.made, prepacked.made) == ({"linear": "plain"}, {"linear": "prepacked"})
    assert not any("forward" in vars(layer) for layer in linear)  # the model is as it was


def test_the_quicker_way_is_chosen_once_there_is_enough_to_read(
    folder: Path, tmp_path: Path, always: pytest.MonkeyPatch, two_threads: int
) -> None:
    corpus = Corpus("tiny", tuple(SENTENCES))
    quick, again = encoder(folder), encoder(folder)
    store = open_store(corpus, quick, cache=tmp_path)
    assert quick.made == store.made == quick.sentences().made == {"linear": "prepacked"}
    assert quick._pass._threads in (1, two_threads)
    assert torch.get_num_threads() == two_threads
    assert open_store(corpus, again, cache=tmp_path).made == {"linear": "prepacked"}  # what made it, untried
    assert again.made == {"linear": "plain"}

    always.setattr(quickest, "GAIN", np.inf)
    slow = encoder(folder)
    np.testing.assert_allclose(read(slow), read(quick), rtol=0, atol=1e-4)
    assert slow.made == {"linear": "plain"}
    always.setattr(quickest, "ENOUGH", 10_000)
    few = encoder(folder)
    read(few)
    assert not few._pass._settled


def test_the_view_of_sentences_settles_as_its_model_does(folder: Path, always: pytest.MonkeyPatch) -> None:
    view = encoder(folder).sentences()
    view.settle({"linear": "plain"})  # as a worker is told, whatever it would find by trying
    list(view.encode(SENTENCES))
    assert view.made == {"linear": "plain"}


def fails(*_: object) -> None:
    raise AttributeError("no such operator")


def test_gelu_in_one_pass_is_transformers_own(folder: Path) -> None:
    (layer, quick), *_ = encoder(folder)._pass._gelu.items()
    x = torch.linspace(-12, 12, 2001)
    torch.testing.assert_close(quick(x), layer(x), rtol=1e-6, atol=1e-6)
    assert encoder(folder, dtype="bfloat16")._pass._gelu == {}  # rounded once instead of eight times: other numbers


@pytest.mark.parametrize("why", ["unequal", "missing", "large", "half"])
def test_plain_layers_are_kept_where_prepacked_ones_are_none(
    folder: Path, always: pytest.MonkeyPatch, why: str
) -> None:
    if why == "unequal":
        stand_in = quickest._stand_in
        always.setattr(quickest, "_stand_in", lambda w, b: stand_in(w * 1.001, b))
    elif why == "missing":
        always.setattr(quickest, "_stand_in", fails)
    elif why == "large":
        always.setattr(quickest, "MOST_BYTES", 1000)
    made = encoder(folder, **({"dtype": "bfloat16"} if why == "half" else {}))
    read(made)
    assert made._pass._settled
    assert made.made == {"linear": "plain"}


def test_messages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownName, match="no kind of linear layers 'quick'"):
        encoder(folder, linear="quick")
    with pytest.raises(ConfigError, match=r"expected a model with linear layers in float32 on a CPU, got GPT2Model in"):
        encoder(folder, linear="prepacked", dtype="bfloat16")
    monkeypatch.setattr(quickest, "_stand_in", fails)
    with pytest.raises(ConfigError, match=r"has no such layers on this processor \(no such operator\)"):
        encoder(folder, linear="prepacked")
