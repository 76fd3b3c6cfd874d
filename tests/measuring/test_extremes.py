"""Lists of the most and least self-similar words: what is constant by construction, and what their intervals hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ctxexp
from ctxexp import Corpus, Encoder, Results
from ctxexp.report.page.explorer import explorer_data
from ctxexp.report.page.word_map import extremes
from tests.measuring_helpers import Hashed
from tests.shipped import SelfSimilarity


class Leftward(Hashed):
    """A vector is the word's and its left neighbours': the first word's is always the same."""

    name, causal = "leftward", True

    def in_context(self, words: np.ndarray) -> np.ndarray:
        return np.cumsum(words, axis=0)


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
    return ctxexp.measure(encoder, openings(), metrics={"s": SelfSimilarity}, options=options)


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
    data = explorer_data([("leftward", results)])
    overview = data.overview
    assert {overview["words"][i] for i in overview["models"][0]["constant"]} == {"Every", "Who"}


def test_without_causality_no_word_is_left_out_and_each_has_points(tmp_path: Path) -> None:
    """Where there is room for few points too."""
    results = run(EitherWay(), tmp_path, most=100)
    assert "constant" not in results.tables["s"]
    assert set(results.tables["most_self_similar"]["word"]) >= {"Every", "Who"}
    data = explorer_data([("either way", results)])
    overview = data.overview
    assert overview["models"][0]["constant"] == []
    listed = {word for words in extremes(results.tables, [0, 1]).values() for word in words}
    points = results.tables["word_map"].groupby("word").size()
    assert listed <= set(points.index)
    assert len(listed) * 48 > 2 * 100  # with as many rows of a word as there are by default they had no room
    assert points[list(listed)].min() >= 2
