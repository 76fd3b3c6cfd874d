"""Words by themselves: the same vectors whatever stands around them, at their own place where the model has places."""

from __future__ import annotations

import numpy as np
import pytest

from ctxexp.controls.alone import Alone
from ctxexp.dataset import Sentence
from ctxexp.model import Encoder
from ctxexp.models.bert import bert
from ctxexp.models.elmo.factory import elmo
from ctxexp.models.gpt2 import gpt2

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
