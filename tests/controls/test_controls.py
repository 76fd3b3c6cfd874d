"""Controls: what is shuffled, left out or read alone is exactly that, and what it ought to remove is gone."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from ctxexp import Control, Corpus, Encoder, Occurrences, Pair, Sense, Sentence
from ctxexp.matched_baselines import FrequencyMatched, PositionMatched, Twins
from ctxexp.maths import mean_cosine
from ctxexp.measuring.word_record import _first_share
from ctxexp.vectors.stores import apply_control
from tests import tiny_models
from tests.composed import registry_of
from tests.measuring_helpers import MemoryStore, contextual, measure, row_index_of, rows_by_key, sentences
from tests.shipped import (
    Alone,
    IntraSentenceSimilarity,
    NoFirst,
    NoSinks,
    OnePerSentence,
    SelfSimilarity,
    Shuffled,
    bert,
    elmo,
    gpt2,
)

REGISTRY = registry_of()


def control(node: dict[str, object]) -> Control:
    """The control that a config's node names."""
    arguments = {key: value for key, value in node.items() if key != "name"}
    return REGISTRY.find("control", str(node["name"])).factory(**arguments)


def corpus() -> Corpus:
    lists = [*sentences(120), [], *sentences(5, seed=3)]
    rng = np.random.default_rng(0)
    senses = tuple(Sense(i, int(rng.integers(len(s))), f"l{i % 2}") for i, s in enumerate(lists) if s)
    return Corpus("plain", tuple(Sentence.of(s) for s in lists), (Pair(0, 1, 2.0),), senses, {"tokenizer": "x"})


# Shuffled text.


@pytest.mark.parametrize("how", ["contexts", "order"])
def test_shuffling_keeps_lengths_counts_and_senses(how: str) -> None:
    plain = corpus()
    shuffled = control({"name": "shuffled", "how": how}).corpus(plain, 0)
    assert [len(s) for s in shuffled.sentences] == [len(s) for s in plain.sentences]
    assert Counter(w for s in shuffled.sentences for w in s) == Counter(w for s in plain.sentences for w in s)
    assert sum(a.words != b.words for a, b in zip(shuffled.sentences, plain.sentences, strict=True)) > 100
    same_bags = [sorted(a.words) == sorted(b.words) for a, b in zip(shuffled.sentences, plain.sentences, strict=True)]
    assert all(same_bags) if how == "order" else sum(same_bags) < 10
    assert all(s.text == " ".join(s.words) for s in shuffled.sentences)
    assert shuffled.pairs == plain.pairs
    assert shuffled.fingerprint != plain.fingerprint
    assert shuffled.choices == {"tokenizer": "x", "control": f"shuffled {how}"}
    if how == "order":
        assert [s.sentence for s in shuffled.senses] == [s.sentence for s in plain.senses]


@pytest.mark.parametrize("how", ["contexts", "order"])
def test_senses_and_tags_follow_their_very_word(how: str) -> None:
    """With words that are all different, each label must find its own again."""
    lists = [[f"w{i}x{j}" for j in range(i % 5)] for i in range(40)]
    senses = tuple(Sense(i, j, word) for i, words in enumerate(lists) for j, word in enumerate(words))
    tags = {"self": tuple(map(tuple, lists))}
    plain = Corpus("one each", tuple(Sentence.of(words) for words in lists), senses=senses, tags=tags)
    shuffled = Shuffled(how=how).corpus(plain, 7)  # type: ignore[arg-type]
    assert shuffled.tags["self"] == tuple(s.words for s in shuffled.sentences)
    assert [shuffled.sentences[s.sentence].words[s.position] for s in shuffled.senses] == [s.label for s in senses]


def test_another_seed_shuffles_otherwise() -> None:
    shuffle = Shuffled().corpus
    assert shuffle(corpus(), 1).fingerprint != shuffle(corpus(), 2).fingerprint


def topical(n: int = 400) -> Corpus:
    """Sentences of one topic each: a topic's words share a direction, so sentences hold together."""
    rng = np.random.default_rng(4)
    return Corpus.of("topics", [[f"t{i % 8}w{rng.integers(12)}" for _ in range(rng.integers(2, 14))] for i in range(n)])


def test_words_of_shuffled_sentences_exceed_random_bags_by_nothing() -> None:
    """Length-matched intra-sentence similarity of a context-free encoder: topics hold sentences together, until the
    words are exchanged between sentences; exchanging them within a sentence changes nothing."""
    rng = np.random.default_rng(5)
    topics = {f"t{k}": rng.normal(size=24) for k in range(8)}
    vectors = {f"t{k}w{j}": topics[f"t{k}"] + rng.normal(size=24) for k in range(8) for j in range(12)}
    excess = {}
    for how in (None, "order", "contexts"):
        plain = topical()
        of = plain if how is None else Shuffled(how=how).corpus(plain, 0)
        index = row_index_of(of)
        rows = np.array([vectors[index.vocabulary[c]] for c in index.unit_codes], np.float32)
        metric = {"iss": partial(IntraSentenceSimilarity, baselines=("run", "size_matched"))}
        results = measure(
            MemoryStore([rows], index), Occurrences.of(index, of), metric, OnePerSentence(size=200), bootstrap=400
        )
        excess[how] = [results.by_name[f"iss/size_matched_adjusted{end}"][0] for end in ("_ci_low", "", "_ci_high")]
    assert excess[None][0] > 0.2
    assert excess["order"][1] == pytest.approx(excess[None][1], abs=0.02)
    assert excess["contexts"][0] < 0 < excess["contexts"][2]
    assert abs(excess["contexts"][1]) < 0.01


# Occurrences left out.


def world(strength: float = 0.5) -> tuple[MemoryStore, Callable[..., Occurrences], Corpus]:
    of = Corpus.of("world", [["."] * (i % 3 == 0) + words for i, words in enumerate(sentences(200))])
    index = row_index_of(of)
    store = MemoryStore([contextual(index, strength), contextual(index, 2 * strength, seed=4)], index)
    return store, partial(Occurrences.of, index, of, keep=str.isalnum), of


@pytest.mark.parametrize("first", [1, 3])
def test_first_places_are_left_out_everywhere(first: int) -> None:
    store, index, of = world()
    occurrences, n = apply_control(store, index, NoFirst(first=first), corpus="world")
    naive = [[w for w in s.words[first:] if w.isalnum()] for s in of.sentences]
    assert n == sum(w.isalnum() for s in of.sentences for w in s.words[:first])
    assert occurrences.n_occurrences == sum(map(len, naive)) == index().n_occurrences - n
    units = store.row_index
    got = {
        i: [units.vocabulary[c] for c in units.unit_codes[rows]]
        for i, rows in rows_by_key(occurrences.by_sentence).items()
    }
    assert got == {i: words for i, words in enumerate(naive) if words}
    contexts = Counter(w for words in naive for w in set(words))
    assert set(occurrences.words) == {w for w, k in contexts.items() if k >= 5}
    assert occurrences.counts.sum() == sum(words.count(w) for words in naive for w in occurrences.words)
    for rows in OnePerSentence(size=100, redraws=3).groups(occurrences, np.random.default_rng(0)):
        assert (occurrences.places[rows] >= first).all()


def test_sinks_are_left_out_by_their_norm_in_any_layer(caplog: pytest.LogCaptureFixture) -> None:
    store, index, _ = world()
    rows = np.unique(index().by_sentence.rows)
    norms = [np.linalg.norm(layer.astype(np.float64), axis=1) for layer in store.layers]
    marks = np.setdiff1d(np.arange(len(norms[0])), rows)
    store.layers[0][rows[3]] *= 2.2 * np.median(norms[0][rows]) / norms[0][rows[3]]
    store.layers[1][rows[8]] *= 100
    store.layers[1][marks] *= 1000  # not measured anyway, and no part of the median
    norms = [np.linalg.norm(layer.astype(np.float64), axis=1) for layer in store.layers]
    for factor in (1.2, 2.0, 50.0):
        expected = {r for r in rows.tolist() for n in norms if n[r] > factor * np.median(n[rows])}
        with caplog.at_level(logging.INFO, logger="ctxexp"):
            occurrences, n = apply_control(store, index, NoSinks(factor=factor), corpus="world")
        assert set(rows.tolist()) - set(occurrences.by_sentence.rows.tolist()) == expected
        assert n == index().n_occurrences - occurrences.n_occurrences == len(expected)  # all sentences differ
        words = f"control 'no sinks above {factor:g} × median': {n} of {index().n_occurrences:,} occurrences are not"
        assert words in caplog.text.replace(f"{n:,}", str(n))
    assert len(expected) == 1


def test_the_share_of_first_places_is_that_of_a_loop() -> None:
    _, index, of = world()
    occurrences = index()
    for word, share in zip(occurrences.words, _first_share(occurrences).tolist(), strict=True):
        at = [j for s in of.sentences for j, w in enumerate(s.words) if w == word]
        assert share == pytest.approx(at.count(0) / len(at))
    assert _first_share(Occurrences.of(row_index_of(of), of, min_contexts=10_000)).tolist() == []


# Baselines of twins.

KINDS = ("word", "sentence")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", [PositionMatched(least=20), FrequencyMatched(least=20)], ids=lambda s: s.name)
def test_twins_resemble_their_groups(scheme: Twins, kind: str) -> None:
    _, index, _ = world()
    occurrences = index()
    groups, measured = occurrences.groups(kind), np.unique(occurrences.by_sentence.rows)
    stratum = np.full(len(occurrences.places), -1)
    stratum[measured] = scheme.strata(occurrences, measured)
    all_twins = list(scheme.twins(groups, occurrences, np.random.default_rng(0)))
    assert len(all_twins) == 10
    for twins in all_twins:
        assert twins.keys is groups.keys
        np.testing.assert_array_equal(stratum[twins.rows], stratum[groups.rows])
        assert (twins.rows != groups.rows).mean() > 0.9
        for a, b in pairwise(groups.starts.tolist()):
            assert len(set(twins.rows[a:b].tolist())) == len(set(groups.rows[a:b].tolist()))
    assert not np.array_equal(all_twins[0].rows, all_twins[1].rows)
    again = next(iter(scheme.twins(groups, occurrences, np.random.default_rng(0))))
    np.testing.assert_array_equal(again.rows, all_twins[0].rows)


def test_a_level_is_the_mean_score_of_the_twins() -> None:
    """Against a loop over groups and twins, with a sample of the sentences and the curves of the sizes beside it."""
    store, index, _ = world()
    occurrences, scheme = index(), PositionMatched(twins=3, least=20, exact=False)
    metrics = {
        "self": SelfSimilarity,
        "iss": partial(IntraSentenceSimilarity, unit_norm=True),
        "some": partial(IntraSentenceSimilarity, unit_norm=True, sample=30, baselines=("run", "size_matched")),
    }
    results = measure(store, occurrences, metrics, scheme, seed=5, bootstrap=50)
    for kind, score, name in (("word", mean_cosine, "self"), ("sentence", to_mean, "iss")):
        groups = occurrences.groups(kind)  # type: ignore[arg-type]
        twins = list(scheme.twins(groups, occurrences, np.random.default_rng([5, 6])))
        for layer, x in enumerate(store.layers):
            levels = [
                np.mean([score(x[t.rows[a:b]].astype(np.float64)) for t in twins])
                for a, b in pairwise(groups.starts.tolist())
                if b - a > 1
            ]
            assert results.by_name[f"{name}/baseline"][layer] == pytest.approx(np.mean(levels), abs=1e-6)
            low, at, high = (results.by_name[f"{name}/adjusted{end}"][layer] for end in ("_ci_low", "", "_ci_high"))
            assert low < at < high
    assert np.isfinite(results.by_name["some/adjusted"]).all()
    assert np.isfinite(results.by_name["some/size_matched_adjusted"]).all()
    assert results.by_name["some/n"].tolist() == [30, 30]
    assert results.info.baseline.name == "position_matched"


def to_mean(x: np.ndarray) -> float:
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    mean = u.mean(axis=0)
    return float((u @ mean / np.linalg.norm(mean)).mean())


TEXTS = [text.split() for text in ("The bank of a river untangles .", "Some bank with no river untangles ! Yes")]


@pytest.fixture(params=[bert, gpt2, elmo], ids=["bert", "gpt2", "elmo"])
def model(request: pytest.FixtureRequest) -> Encoder:
    return request.param()


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
    encoder = tiny_models.encoder(tiny_models.make("roberta", tmp_path / "model"))
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
