"""The shipped models' vectors of the embedded sentences: every measure against loops written from its definition."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from ctxexp import Corpus, Results
from ctxexp.command import Built, configured
from tests.shipped import (
    Anisotropy,
    IntraSentenceSimilarity,
    MaxExplainableVariance,
    OnePerSentence,
    SelfSimilarity,
    bert,
    elmo,
    gpt2,
    polysemy,
)

Rows = dict[str, list[np.ndarray]]


def is_word(unit: str) -> bool:
    return any(map(str.isalnum, unit))


OTHERS = [pytest.param(model, marks=pytest.mark.nightly) for model in (gpt2, elmo)]


@pytest.fixture(scope="module", params=[bert, *OTHERS], ids=lambda f: f.__name__)
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Corpus, Results]:
    """A model's store of some sentences, and what `measure` says of it."""
    whole = polysemy()
    corpus = Corpus("part", tuple(s for s in whole.sentences if "the" in s.words)[:150])
    metrics = {
        "self": SelfSimilarity,
        "intra": IntraSentenceSimilarity,
        "anisotropy": Anisotropy,
        **{d: partial(MaxExplainableVariance, definition=d) for d in ("uncentred", "centred", "released")},
    }
    cache = tmp_path_factory.mktemp("cache")
    baseline, options = OnePerSentence(size=100), [f"cache.folder={cache}", "figures.explorer=0"]
    built = Built(configured(request.param(), corpus, options, metrics=metrics, baseline=baseline, bootstrap=20))
    store, _, _ = built.study.space(built.vectors)
    return store, built.corpus, built.run(cache)


def by_word(store: Any, corpus: Corpus, layer: np.ndarray) -> Rows:
    """word -> its rows, float64, for words in at least five sentences: a plain loop over the corpus."""
    rows: Rows = {}
    contexts: dict[str, set[int]] = {}
    for number, sentence in enumerate(corpus.sentences):
        start = store.offsets[store.stored_of[number]]
        for position, word in enumerate(sentence.words):
            if is_word(word):
                rows.setdefault(word, []).append(layer[start + position].astype(np.float64))
                contexts.setdefault(word, set()).add(number)
    return {word: x for word, x in rows.items() if len(contexts[word]) >= 5}


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.sqrt(a @ a) * np.sqrt(b @ b)))


def test_self_similarity_is_the_double_loop(measured: tuple[Any, Corpus, Results]) -> None:
    store, corpus, results = measured
    table = results.tables["self"]
    for i in range(store.n_layers):
        found = dict(zip(table["word"], table[f"raw_{i}"], strict=True))
        words = by_word(store, corpus, store.layer(i))
        assert set(found) == set(words)
        for word, x in words.items():
            n = len(x)
            if n <= 20:  # the double loop takes its time
                pairs = [cosine(x[j], x[k]) for j in range(n) for k in range(j)]
                assert found[word] == pytest.approx(np.mean(pairs), abs=1e-6)
        (longest,) = [w for w in words if len(words[w]) == max(map(len, words.values()))][:1]
        u = np.array([r / np.sqrt(r @ r) for r in words[longest]])
        n = len(u)
        assert found[longest] == pytest.approx(float(((u @ u.T).sum() - n) / (n * n - n)), abs=1e-6)


def test_intra_sentence_similarity_is_the_loop(measured: tuple[Any, Corpus, Results]) -> None:
    store, corpus, results = measured
    for i in range(store.n_layers):
        layer, scores = store.layer(i), []
        for number, sentence in enumerate(corpus.sentences):
            start = store.offsets[store.stored_of[number]]
            x = [layer[start + p].astype(np.float64) for p, w in enumerate(sentence.words) if is_word(w)]
            mean = sum(x) / len(x)
            if len(x) > 1:
                scores.append(sum(cosine(mean, row) for row in x) / len(x))
        assert results.by_name["intra/raw"][i] == pytest.approx(np.mean(scores), abs=1e-6)


@pytest.mark.parametrize("definition", ["uncentred", "centred", "released"])
def test_explained_variance_is_the_full_decomposition(measured: tuple[Any, Corpus, Results], definition: str) -> None:
    store, corpus, results = measured
    table = results.tables[definition]
    for i in range(store.n_layers):
        found = dict(zip(table["word"], table[f"raw_{i}"], strict=True))
        for word, rows in by_word(store, corpus, store.layer(i)).items():
            x = np.array(rows)
            centred = x - x.mean(axis=0)
            if np.abs(centred).max() < 1e-5 and definition != "uncentred":
                assert np.isnan(found[word])  # ELMo's input layer: a word has one vector
                continue
            if definition == "centred":
                s = np.linalg.svd(centred, compute_uv=False)
                expected = s[0] ** 2 / (s**2).sum()
            else:
                _, s, vt = np.linalg.svd(x, full_matrices=False)
                expected = s[0] ** 2 / (s**2).sum()
                if definition == "released":
                    expected = (x @ vt[0]).var() / x.var(axis=0).sum()
            assert found[word] == pytest.approx(expected, abs=1e-6), word


def test_anisotropy_is_the_double_loop_over_some_sample(measured: tuple[Any, Corpus, Results]) -> None:
    """The baseline of self-similarity is the anisotropy, and both lie where all pairs of the corpus say."""
    store, corpus, results = measured
    np.testing.assert_array_equal(results.by_name["self/baseline"], results.by_name["anisotropy/mean_cosine"])
    for i in range(store.n_layers):
        x = store.layer(i).astype(np.float64)
        kept = [
            r
            for number, s in enumerate(corpus.sentences)
            for p, w in enumerate(s.words)
            if is_word(w)
            for r in [x[store.offsets[store.stored_of[number]] + p]]
        ]
        u = np.array([r / np.sqrt(r @ r) for r in kept])
        total, n = u.sum(axis=0), len(u)
        everywhere = (total @ total - n) / (n * n - n)
        assert results.by_name["anisotropy/mean_cosine"][i] == pytest.approx(everywhere, abs=0.08)
