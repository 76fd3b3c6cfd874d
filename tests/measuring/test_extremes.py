"""Lists of the most and least self-similar words: what is constant by construction, and what their intervals hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ctxexp
from ctxexp import Corpus, EncodedSentence, Encoder, Occurrences, Results, Sentence
from ctxexp.report.page.explorer import explorer_data
from ctxexp.report.page.word_map import extremes
from tests.measuring_helpers import DIM, MemoryStore, measure, row_index_of
from tests.shipped import OnePerSentence, SelfSimilarity


class Leftward(Encoder):
    """A vector is the word's and its left neighbours': the first word's is always the same."""

    name, n_layers, dim, causal = "leftward", 2, 12, True

    def encode(self, batch: list[Sentence]) -> list[EncodedSentence]:  # type: ignore[override]
        found = []
        for sentence in batch:
            own = np.stack([np.random.default_rng(list(w.encode())).normal(size=12) for w in sentence.words])
            left = np.cumsum(own, axis=0) - own
            found.append(EncodedSentence(sentence.words, np.stack([own, own + left]).astype(np.float32)))
        return found


class EitherWay(Leftward):
    name, causal = "either way", None


def openings() -> Corpus:
    """Sentences of ten common words; `Every` and `Who` only ever open one, `common0` sometimes does."""
    rng = np.random.default_rng(0)
    first = ["Every", "Who", "common0"]
    words = [f"common{i}" for i in range(30)]
    return Corpus.of("openings", [[first[i % 3], *rng.choice(words, 9).tolist()] for i in range(120)])


def run(encoder: Encoder, tmp_path: Path, most: int = 2000) -> Results:
    options = [f"figures.explorer={most}", f"cache.folder={tmp_path}"]
    return ctxexp.measure(encoder, openings(), metrics={"s": SelfSimilarity}, options=options, progress=False)


def test_words_always_first_in_causal_models_are_marked(tmp_path: Path) -> None:
    results = run(Leftward(), tmp_path)
    table = results.tables["s"].set_index("word")
    assert set(table.index[table["constant"]]) == {"Every", "Who"}
    assert table.loc["Every", "raw_1"] == pytest.approx(1)  # else they would head the list
    listed = [*results.tables["most_self_similar"]["word"], *results.tables["least_self_similar"]["word"]]
    assert len(listed) == 20
    assert list(results.tables["most_self_similar"]) == [*results.tables["s"], "low_0", "low_1", "high_0", "high_1"]
    assert not {"Every", "Who"} & set(listed)
    assert 0 < table.loc["common0", "first_share"] < 1
    results.save(tmp_path / "kept")
    again = Results.load(tmp_path / "kept").tables["s"]
    assert set(again["word"][again["constant"]]) == {"Every", "Who"}
    data: Any = explorer_data([("leftward", results)])
    overview = data.overview
    assert {overview["words"][i] for i in overview["models"][0]["constant"]} == {"Every", "Who"}


def test_without_causality_no_word_is_left_out_and_each_has_points(tmp_path: Path) -> None:
    """Where there is room for few points too."""
    results = run(EitherWay(), tmp_path, most=100)
    assert "constant" not in results.tables["s"]
    assert set(results.tables["most_self_similar"]["word"]) >= {"Every", "Who"}
    data: Any = explorer_data([("either way", results)])
    overview = data.overview
    assert overview["models"][0]["constant"] == []
    listed = {word for words in extremes(results.tables, [0, 1]).values() for word in words}
    points = results.tables["word_map"].groupby("word").size()
    assert listed <= set(points.index)
    assert len(listed) * 48 > 2 * 100  # with as many rows of a word as there are by default they had no room
    assert points[list(listed)].min() >= 2


@pytest.mark.nightly
@pytest.mark.parametrize(("n_words", "least", "most", "documents"), [(60, 5, 12, 1), (200, 5, 30, 1), (100, 8, 16, 2)])
def test_extremes_intervals_of_equal_words_cover_as_stated(n_words: int, least: int, most: int, documents: int) -> None:
    """All words are alike, so that chance alone makes the list; 1.96 standard errors hold .5 to .8 of it.

    With `documents` of two sentences a word's rows come in pairs that share an effect.
    """
    rng = np.random.default_rng(n_words)
    sizes = rng.integers(least // documents, most // documents + 1, n_words) * documents
    text = [(f"w{w:03}", f"only{w}.{i}") for w, n in enumerate(sizes) for i in range(n)]
    places = np.repeat(np.arange(len(text) // documents), documents)
    corpus = Corpus("equal", tuple(Sentence.of(list(s)) for s in text), documents=tuple(places.tolist()))
    index = row_index_of(corpus)
    occurrences = Occurrences.of(index, corpus, min_contexts=least // documents * documents)
    own = np.eye(DIM)[0]

    def rows(n_documents: int) -> np.ndarray:
        shared = 0.1 * rng.normal(size=(n_documents, DIM)) * (documents > 1)
        x = own + np.repeat(shared, documents, axis=0) + 0.15 * rng.normal(size=(n_documents * documents, DIM))
        return x.astype(np.float32)

    unit = np.array([row / np.linalg.norm(row) for row in rows(40_000)])
    parts = unit.reshape(-1, documents, DIM).sum(axis=1)
    within = (np.vecdot(parts, parts).sum() - len(unit)) / max(len(unit) * (documents - 1), 1)
    apart = float(np.square(unit.mean(axis=0)).sum())
    held, naive = [], []
    for _ in range(25):
        x = np.zeros((len(index.unit_codes), DIM), np.float32)
        x[::2] = rows(len(text) // documents)
        x[1::2] = rng.normal(size=(len(text), DIM))
        store, chance = MemoryStore([x], index), OnePerSentence(size=50)
        tables = measure(store, occurrences, {"s": SelfSimilarity}, chance, bootstrap=2).tables  # type: ignore[arg-type]
        errors = tables["s_errors"].set_index("word")
        for name in ("most_self_similar", "least_self_similar"):
            for one in tables[name].itertuples():
                share = (documents - 1) / (one.count - 1)  # of a word's pairs that are of one document
                truth = share * within + (1 - share) * apart
                held.append(one.low_0 <= truth <= one.high_0)
                naive.append(abs(one.raw_0 - truth) <= 1.96 * errors.loc[one.word, "error_0"])
    assert 0.92 <= np.mean(held) <= 0.985, np.mean(held)
    assert np.mean(naive) < 0.86
    assert len(held) == 500
