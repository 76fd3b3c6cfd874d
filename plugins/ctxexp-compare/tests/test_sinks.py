"""Sinks: scores against naive loops, planted ones all found and no others, masks, and what leaving them out does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from ctxexp_compare import Sinks, WithoutSinks, sink_mask, sinks
from ctxexp_compare.attention_sinks import command
from ctxexp_compare.attention_sinks.sinks import effects, norm_ratios, number_ranges, received_attention
from transformers import AutoTokenizer, GPT2Config, GPT2Model

import ctxexp
from ctxexp.errors import ConfigError
from tests.shipped import mini

TEXT = [
    "The river, which was wide, ran to the sea and the old bank of the river was wet.",
    "She went to the bank to get money, and he waited at the river with the dog.",
    "A small dog ran along the river to the old house of the man who had money.",
]
RESERVED = 7  # a dimension that no embedding has


def model(*, norm: tuple[int, ...] = (), first: float = 0, attention: tuple[int, ...] = ()) -> GPT2Model:
    """An untrained GPT-2; the pieces `norm` have long vectors, those of `attention` keys that every query looks for,
    and the first place a long vector of its own where `first` isn't 0."""
    torch.manual_seed(0)
    tokens = len(AutoTokenizer.from_pretrained(mini("gpt2")))
    made = GPT2Model(
        GPT2Config(vocab_size=tokens, eos_token_id=0, n_positions=64, n_embd=32, n_layer=3, n_head=4)
    ).eval()
    with torch.no_grad():
        for table in (made.wte.weight, made.wpe.weight):
            table[:, RESERVED] = 0
        made.wpe.weight[0] *= 1 + first
        made.wte.weight[list(norm)] *= 30
        made.wte.weight[list(attention), RESERVED] = 0.3
        for block in made.h if attention else ():
            keys = 32 + 8 * torch.arange(4)  # the first of each head's
            block.attn.c_attn.weight[:, keys] = 0
            block.attn.c_attn.weight[RESERVED, keys] = 2
            block.attn.c_attn.bias[keys - 32] = 4
    return made


def found(made: GPT2Model) -> tuple[Sinks, ctxexp.Encoder]:
    encoder = ctxexp.from_transformers(made, AutoTokenizer.from_pretrained(mini("gpt2")), name="planted")
    return sinks(encoder, TEXT), encoder


def piece(text: str) -> int:
    ids = AutoTokenizer.from_pretrained(mini("gpt2"))(f"the{text}")["input_ids"]
    assert len(ids) == 2
    return ids[1]


def test_scores_are_those_of_naive_loops() -> None:
    rng = np.random.default_rng(0)
    norms = rng.uniform(1, 2, size=(3, 7))
    assert (norm_ratios(norms) == norms / np.sort(norms)[:, 3:4]).all()
    weights = rng.dirichlet(np.ones(7), size=(2, 7))
    causal = np.tril(weights)
    causal /= causal.sum(axis=2, keepdims=True)
    for given, is_causal in ((weights, False), (causal, True)):
        drawn = received_attention(given, causal=is_causal)
        for key in range(7):
            queries = [q for q in range(7) if (q > key if is_causal else q != key)]
            excess = [given[h, q, key] - 1 / (q + 1 if is_causal else 7) for q in queries for h in range(2)]
            if len(queries) < 4:
                assert np.isnan(drawn[key])
            else:
                assert drawn[key] == pytest.approx(np.mean(excess))
    assert (norm_ratios(np.zeros((1, 3))) == 1).all()
    assert sink_mask(np.ones((1, 4)), np.array([[0.4, np.nan, 0.1, 0.3]])).tolist() == [True, False, False, False]
    assert (number_ranges([]), number_ranges([2, 3, 4, 7])) == ("", "2 to 4, 7")


def test_planted_ones_are_found_wherever_they_stand_and_no_others() -> None:
    """By norm the first place, a delimiter and a word; by attention a word whose vectors aren't long."""
    comma, dog, money = piece(","), piece(" dog"), piece(" money")
    by_norm, encoder = found(model(norm=(comma, dog), first=60))
    ids = np.concatenate([own.ids for own in encoder.read_pieces(by_norm.sentences)])  # type: ignore[attr-defined]
    planted = np.isin(ids, (comma, dog)) | (by_norm.place == 0)
    assert planted.sum() == 3 + 3 + 2
    assert by_norm.by_norm.tolist() == planted.tolist()
    assert set(by_norm.frame["kind"]) == {"first", "delimiter", "later"}
    frame = by_norm.frame.set_index("kind")
    assert frame["by_norm"].to_dict() == {"first": 3, "delimiter": 3, "later": 2}
    by_attention, _ = found(model(attention=(money,)))
    where = ids == money
    assert not by_attention.by_norm.any()
    seen = where & ~np.isnan(by_attention.attention[1])  # by four or more
    assert seen.sum() == 1
    assert by_attention.by_attention.tolist() == seen.tolist()


def test_characters_and_words_are_those_of_the_text() -> None:
    own, _ = found(model(norm=(piece(" dog"),)))
    for i in range(len(own.place)):
        start, end = own.spans[i].tolist()
        text = own.sentences[own.sentence[i]].text
        assert own.tokens[i].replace("Ġ", " ").strip() == text[start:end].strip()
        word = own.sentences[own.sentence[i]].words[own.units[i]]
        assert text[start:end].strip() in word
    assert [own.sentences[0].words[i] for i in own.units_left_out(own.sentences[0])] == []
    assert [own.sentences[1].words[i] for i in own.units_left_out(own.sentences[1])] == ["dog"]
    assert len(own.units_left_out(ctxexp.Sentence.of(["another"]))) == 0


def test_a_measure_without_them_is_that_of_the_other_words() -> None:
    made = model(norm=(piece(" dog"),), first=60)
    own, encoder = found(made)
    options = ["bootstrap=0", "min_contexts=2"]
    results = ctxexp.measure(
        encoder, TEXT, metrics="word_norm", control=WithoutSinks(own), options=options, progress=False
    )
    rest = [
        vectors.layers[:, i]
        for sentence, vectors in zip(own.sentences, encoder.encode(own.sentences), strict=True)
        for i, word in enumerate(sentence.words)
        if i and word != "dog" and any(map(str.isalnum, word))
    ]
    expected = np.linalg.norm(np.array(rest), axis=2).mean(axis=0)
    assert results.curve("word_norm").tolist() == pytest.approx(expected.tolist(), rel=1e-5)
    measured = effects(encoder, own, metrics=["word_norm"], options=["min_contexts=2"])
    assert measured["without"].tolist() == pytest.approx(expected.tolist(), rel=1e-5)
    assert (measured["difference"][:3] < 0).all()


def test_the_model_is_left_as_it_was() -> None:
    made = model()
    before = made.config._attn_implementation
    _, encoder = found(made)
    assert (made.config._attn_implementation, encoder.details["attention"]) == (before, before)


def test_the_command_writes_a_mask_that_numpy_reads(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(TEXT), encoding="utf-8")
    made = command.sinks("gpt2", text=str(text), factor=1.3, min_contexts=2, mask=tmp_path / "mask.npz")
    assert made.tables["sinks"].shown[0][:3] == ["first", "3", "3"]
    assert len(made.tables["curves"].numbers) == 5 * 5
    with np.load(tmp_path / "mask.npz") as mask:
        assert mask["texts"].tolist() == TEXT
        assert (mask["by_norm"] | mask["by_attention"]).sum() == len(made.tables["sinks"].numbers)
    with pytest.raises(ConfigError, match="in the pieces of a model of transformers, and elmo isn't one"):
        command.sinks("elmo", text=str(text))
    with pytest.raises(ConfigError, match=r"factor=1, share=0.3: expected a factor above 1 and a share between 0 and"):
        sinks("gpt2", TEXT, factor=1)
