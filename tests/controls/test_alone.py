"""Words by themselves: the same vectors whatever stands around them, at their own place where the model has places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ctxexp import Encoder, Sentence
from tests.shipped import Alone, bert, elmo, gpt2, huggingface
from tests.tiny_models import make

TEXTS = [text.split() for text in ("The bank of a river untangles .", "Some bank with no river untangles ! Yes")]


@pytest.fixture(params=[bert, gpt2, elmo], ids=["bert", "gpt2", "elmo"])
def model(request: pytest.FixtureRequest) -> Encoder:
    encoder: Encoder = request.param()
    return encoder


def test_words_alone_know_their_place_and_nothing_else(model: Encoder) -> None:
    sentences = [Sentence.of(words) for words in TEXTS]
    encoder = Alone().encoder(model)
    one, other = encoder.encode(sentences)
    plain = next(iter(model.encode(sentences[:1])))
    assert one.units == plain.units == sentences[0].words
    for i in (1, 4, 5):
        np.testing.assert_allclose(one.layers[:, i], other.layers[:, i], atol=1e-4)
    np.testing.assert_allclose(one.layers[0], plain.layers[0], atol=1e-4)  # which sees no other word, but its position
    assert np.abs(one.layers[-1] - plain.layers[-1]).max() > 0.1
    assert encoder.name != model.name
    moved = next(iter(encoder.encode([Sentence.of(["the", "old", "bank"])]))).layers[:, 2]
    assert np.allclose(moved, one.layers[:, 1], atol=1e-4) == (model.positional is False)


def test_roberta_counts_places_from_behind_its_padding(tmp_path: Path) -> None:
    encoder = huggingface(checkpoint=str(make("roberta", tmp_path / "model")), device="cpu", dtype="float32")
    assert type(encoder).__name__ == "TransformerEncoder"
    sentence = Sentence.of(TEXTS[0])
    (alone,), (plain,), (read,) = (of([sentence]) for of in (encoder.encode_alone, encoder.encode, encoder.read_pieces))
    np.testing.assert_allclose(alone.layers[0], plain.layers[0], atol=1e-5)  # where transformers itself puts the words
    at = read.at[: read.counts[0]]
    ids, places = torch.from_numpy(read.ids[at]).long(), torch.from_numpy(at) + encoder.model.config.pad_token_id + 1
    with torch.inference_mode():
        out = encoder.model(input_ids=ids[None], position_ids=places[None], output_hidden_states=True)
    expected = torch.cat(out.hidden_states).mean(1).numpy()
    np.testing.assert_allclose(alone.layers[:, 0], expected, atol=1e-5)
