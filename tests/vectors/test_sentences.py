"""Sentence vectors: transformers' own hidden states pooled by hand, whatever the batch; mixes of layers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ctxexp import Corpus, Encoder, Occurrences, Sentence
from ctxexp.errors import ConfigError, EncodingError, ModelError
from ctxexp.vectors.encoding import open_store
from ctxexp.vectors.stores import PooledSentences, WordMeans, layer_mixes, mix_layers, sentence_view
from tests.measuring_helpers import MemoryStore
from tests.tiny_models import Folder, edit, encoder, hidden_states

TEXTS = [
    "The quick brown fox , jumps", "unbelievable", "money in the bank", "the dog , running", "a", "happiest 1234 x"
]  # fmt: skip
SENTENCES = tuple(Sentence.of(text.split()) for text in TEXTS)


def by_hand(folder: Path, text: str, limit: int | None = None) -> dict[str, np.ndarray]:
    read, states, pooled = hidden_states(folder, text, limit)
    special = read["special_tokens_mask"][0].bool().numpy()
    found = {
        "mean": states.mean(1),
        "mean_text": states[:, ~special].mean(1),
        "cls": states[:, 0],
        "last": states[:, -1],
    }
    if pooled is not None:
        found["pooler"] = np.concatenate([np.zeros((len(states) - 1, len(pooled))), pooled[None]])
    return found


OFFERED = {
    "bert": "mean mean_text cls last pooler",
    "roberta": "mean mean_text cls last pooler",
    "distilbert": "mean mean_text cls last",
    "deberta-v2": "mean mean_text cls last",
    "gpt2": "mean mean_text last",  # its first piece is the first word, which has seen nothing else
    "qwen2": "mean mean_text last",
    "llama": "mean mean_text cls last",  # <s> in front
    "t5": "mean mean_text cls last",  # reads both ways
}


@pytest.mark.parametrize("kind", OFFERED)
def test_poolings_are_transformers_hidden_states_pooled_by_hand(tiny_model: Folder, kind: str) -> None:
    view = encoder(tiny_model(kind)).sentence_encoder()
    assert list(view.poolings) == OFFERED[kind].split()
    for i, (text, encoded) in enumerate(zip(TEXTS, view.encode(SENTENCES), strict=True)):
        view.check_encoded(i, encoded)
        assert encoded.units == view.poolings
        expected = by_hand(tiny_model(kind), text)
        for k, unit in enumerate(encoded.units):
            np.testing.assert_allclose(encoded.layers[:, k], expected[unit], atol=2e-6, rtol=2e-6, err_msg=unit)


def test_mean_words_is_the_mean_of_the_measured_rows(tiny_model: Folder, tmp_path: Path) -> None:
    made = encoder(tiny_model("gpt2"))
    corpus = Corpus("small", (*SENTENCES, Sentence.of([",", "."])))
    store = open_store(corpus, made, cache=tmp_path)
    for keep in (lambda unit: any(map(str.isalnum, unit)), lambda _: True):
        vectors = WordMeans(store, Occurrences.of(store, corpus, keep=keep), len(corpus.sentences))
        for i in range(made.n_layers):
            for sentence, row in zip(corpus.sentences, vectors.layer(i), strict=True):
                (encoded,) = made.encode([sentence])
                kept = [k for k, unit in enumerate(encoded.units) if keep(unit)]
                if kept:
                    np.testing.assert_allclose(row, encoded.layers[i, kept].mean(0), atol=1e-6, rtol=1e-5)
                else:
                    assert np.isnan(row).all()  # no word, no vector


def test_a_sentence_without_pieces_has_no_such_vector(tiny_model: Folder, tmp_path: Path) -> None:
    corpus = Corpus("odd", (SENTENCES[0], Sentence("", (), ()), SENTENCES[1]))
    special = encoder(tiny_model("bert")).sentence_encoder()
    assert [e.units for e in special.encode(corpus.sentences)][1] == ("mean", "cls", "last", "pooler")
    plain = encoder(tiny_model("gpt2")).sentence_encoder()
    assert [e.units for e in plain.encode(corpus.sentences)][1] == ()
    for view, pooling in ((special, "mean_text"), (plain, "mean")):
        layer = PooledSentences(open_store(corpus, view, cache=tmp_path), pooling).layer(1)
        assert np.isnan(layer).all(axis=1).tolist() == [False, True, False]
    pooler = PooledSentences(open_store(corpus, special, cache=tmp_path), "pooler")  # which the last layer alone has
    assert [np.isnan(pooler.layer(i)).all() for i in range(3)] == [True, True, False]


def test_what_is_too_long_is_cut_as_sentence_transformers_does(
    tiny_model: Folder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    long = Sentence.of(["the", "quick", "dog", "jumps"] * 20)
    view = encoder(tiny_model("bert")).sentence_encoder()
    assert view.limit == 40
    (length,) = view.lengths([long])
    assert length == 40
    assert "1 of 1 sentences have more than 40 pieces" in caplog.text
    (encoded,) = view.encode([long])
    expected = by_hand(tiny_model("bert"), long.text, 40)
    for k, unit in enumerate(encoded.units):
        np.testing.assert_allclose(encoded.layers[:, k], expected[unit], atol=2e-6, rtol=2e-6)
    with pytest.raises(EncodingError, match=r"has \d+ pieces, but .* takes 40; long=window cuts it there"):
        encoder(tiny_model("bert"), long="refuse").sentence_encoder().lengths([long])
    own = tmp_path / "own"
    shutil.copytree(tiny_model("bert"), own)
    edit(own, "sentence_bert_config.json", max_seq_length=12)
    shorter = encoder(own).sentence_encoder()
    assert (shorter.limit, shorter.details["window"], shorter.details["long"]) == (12, 12, "truncate")
    (encoded,) = shorter.encode([long])
    np.testing.assert_allclose(encoded.layers[:, 0], by_hand(own, long.text, 12)["mean"], atol=2e-6, rtol=2e-6)
    assert shorter.name != view.name
    (own / "sentence_bert_config.json").write_text("[7]")
    with pytest.raises(ModelError, match=r"sentence_bert_config\.json is no JSON object"):
        encoder(own).sentence_encoder()
    (own / "sentence_bert_config.json").write_text('{"max_seq_length": 2}')  # special pieces alone are no sentence
    with pytest.raises(ModelError, match=r"says max_seq_length=2 .*; expected a number of pieces, such as 256"):
        encoder(own).sentence_encoder()


def test_a_checkpoint_without_pooler_weights_offers_none(tiny_model: Folder, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    bare = tmp_path / "bare"
    shutil.copytree(tiny_model("bert"), bare)
    weights = load_file(bare / "model.safetensors")
    save_file({k: v for k, v in weights.items() if "pooler" not in k}, bare / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        ConfigError, match=r"model 'bert' has no sentence\.pooling=pooler \(its checkpoint has no weights"
    ):
        sentence_view(encoder(bare), "pooler", model="bert")


def test_a_missing_pooling_is_refused_with_those_available(tiny_model: Folder) -> None:
    gpt2 = encoder(tiny_model("gpt2"))
    assert sentence_view(gpt2, "mean_words", model="gpt2") is None
    expected = (
        r"model 'gpt2' has no sentence\.pooling=cls \(a causal model's first piece .*\); it has mean_words, mean, "
    )
    with pytest.raises(ConfigError, match=expected):
        sentence_view(gpt2, "cls", model="gpt2")
    with pytest.raises(ConfigError, match=r"sentence\.pooling='maen': no such pooling; did you mean 'mean'"):
        sentence_view(gpt2, "maen", model="gpt2")

    class Words(Encoder):
        name, n_layers, dim = "words", 1, 4

        def encode(self, batch: object) -> list[object]:
            return []

    with pytest.raises(ConfigError, match=r"model 'elmo' has no sentence\.pooling=mean; it has mean_words$"):
        sentence_view(Words(), "mean", model="elmo")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("chosen", "layers", "named"),
    [
        ("last2", (11, 12), "last2: layers 11, 12"),
        ("scalar_mix", tuple(range(13)), "scalar_mix: layers 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12"),
        ("first_last", (1, 12), "first_last: layers 1, 12"),
        ("flow_paper_last2", (1, 12), "flow_paper_last2: layers 1, 12"),
        ([1, 12], (1, 12), "layers_1_12: layers 1, 12"),
        ([0], (0,), "layers_0: layer 0"),
        ([4, 0, 2], (4, 0, 2), "layers_4_0_2: layers 4, 0, 2"),
    ],
    ids=str,
)
def test_a_mix_is_the_mean_of_its_layers(chosen: Any, layers: tuple[int, ...], named: str) -> None:
    stack = np.random.default_rng(0).standard_normal((13, 5, 4))
    stack[:, 2] = np.nan  # a sentence without a vector has none in a mix
    (mix,) = layer_mixes([chosen], 13)
    assert (mix.layers, str(mix)) == (layers, named)
    found = mix_layers(MemoryStore(stack.astype(np.float32)), mix)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.mean([stack[i] for i in layers], axis=0), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([[1, -1]], r"no layer -1 \(in \[1, -1\]\): the model has layers 0 to 4; its last is 4"),
        ([[5]], r"no layer 5 \(in \[5\]\): the model has layers 0 to 4$"),
        (["last2", "last2"], "last2 is there twice"),
    ],
    ids=str,
)
def test_mistakes_are_named(chosen: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        layer_mixes(chosen, 5)
