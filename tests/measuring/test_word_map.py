"""Words' occurrences on their principal planes: against plain singular value decompositions, and laws."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import pytest

from ctxexp import Corpus, Occurrences, Sense
from ctxexp.report.page import word_map
from tests.measuring_helpers import MemoryStore, contextual, measure, reader_of, row_index_of, rows_by_key, sentences
from tests.shipped import SelfSimilarity

TEXT = Corpus.of("world", sentences(120))
SENSES = tuple(
    Sense(i, sentence.words.index("w3"), f"w3.{i % 2}")
    for i, sentence in enumerate(TEXT.sentences)
    if "w3" in sentence.words
)[:30]
LABELLED = Corpus("world", TEXT.sentences, senses=SENSES)
INDEX = row_index_of(LABELLED)
OCCURRENCES = Occurrences.of(INDEX, LABELLED)
STRENGTHS = (0.2, 1.0, 0.6)


def mapped(layers: Sequence[np.ndarray], most: int = 3000, numbers: Sequence[int] = range(3)) -> pd.DataFrame:
    made = word_map.WordMap(INDEX, OCCURRENCES, LABELLED, dim=layers[0].shape[1], most=most)
    for i, x in zip(numbers, layers, strict=False):
        made.take(reader_of(x, OCCURRENCES, i))
    return made.table()


def layers() -> list[np.ndarray]:
    return [contextual(INDEX, strength, seed=i) for i, strength in enumerate(STRENGTHS)]


def points(table: pd.DataFrame, word: str, kind: str, layer: int) -> np.ndarray:
    """(n, 2)"""
    mine = table[table["word"] == word]
    return mine[[f"{kind}_x_{layer}", f"{kind}_y_{layer}"]].to_numpy(np.float64)


def centred(x: np.ndarray, table: pd.DataFrame, word: str) -> np.ndarray:
    """The word's unit rows about their mean, found by sentence and span."""
    mine = table[table["word"] == word]
    rows = []
    for sentence, start in zip(mine["sentence"], mine["start"], strict=True):
        position = [a for a, _ in LABELLED.sentences[sentence].spans].index(start)
        rows.append(x[INDEX.offsets[INDEX.stored_of[sentence]] + position].astype(np.float64))
    unit = np.array([row / np.linalg.norm(row) for row in rows])
    return unit - unit.mean(axis=0)


def test_each_layers_own_plane_is_that_of_a_plain_decomposition() -> None:
    vectors = layers()
    table = mapped(vectors)
    words = table["word"].unique()
    assert len(words) > 15
    for word in words:
        for layer, x in enumerate(vectors):
            u, s, _ = np.linalg.svd(centred(x, table, word), full_matrices=False)
            expected, found = (u * s)[:, :2], points(table, word, "own", layer)
            largest = np.abs(expected).argmax(axis=0)
            expected *= np.sign(expected[largest, [0, 1]]) * np.sign(found[largest, [0, 1]])
            np.testing.assert_allclose(found, expected, atol=2e-4)
            assert (found.max(axis=0) >= 0.998 * -found.min(axis=0)).all()  # the sign is no accident


def test_the_common_plane_is_near_optimal_in_all_layers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors = layers()

    def captured(table: pd.DataFrame) -> dict[str, float]:
        return {
            w: sum(np.square(points(table, w, "common", i)).sum() for i in range(3)) for w in table["word"].unique()
        }

    def best(table: pd.DataFrame, word: str) -> float:
        stacked = np.concatenate([centred(x, table, word) for x in vectors])
        return float(np.square(np.linalg.svd(stacked, compute_uv=False)[:2]).sum())

    table = mapped(vectors)
    for word, found in captured(table).items():
        assert 0.85 * best(table, word) < found < best(table, word) + 1e-3
    monkeypatch.setattr(word_map, "RANK", 48)  # every direction
    exact = mapped(vectors)
    for word, found in captured(exact).items():
        assert found == pytest.approx(best(exact, word), rel=2e-3)
    same = mapped([vectors[1], vectors[1]])  # equal layers: what they have in common is their own
    np.testing.assert_allclose(points(same, "w3", "common", 0), points(same, "w3", "common", 1), atol=2e-4)
    spread = [np.square(points(same, "w3", kind, 0)).sum() for kind in ("own", "common")]
    assert spread[0] == pytest.approx(spread[1], rel=1e-3)


def test_a_row_names_its_word_sentence_and_label() -> None:
    table = mapped(layers())
    for row in table.itertuples():
        assert LABELLED.sentences[row.sentence].text == row.text
        assert row.text[row.start : row.end] == row.word
    mine = table[table["word"] == "w3"]
    labels = {(sense.sentence, sense.label) for sense in SENSES}
    assert len(mine) == 48  # of many more; all labelled ones are among them
    assert {(row.sentence, row.sense) for row in mine.itertuples() if row.sense} == labels
    assert set(table.loc[table["word"] != "w3", "sense"]) == {""}
    assert set(table["pos"]) == {""}  # nothing is known of them


def test_labelled_words_come_first_and_rows_are_bounded() -> None:
    few = mapped(layers(), most=60)
    assert len(few) <= 60
    assert (few["word"] == "w3").sum() == 48
    assert len(mapped(layers(), most=2)) == 0
    counts = mapped(layers())["word"].value_counts()
    assert counts.min() >= 3
    assert counts.max() == 48


def test_a_words_error_is_its_sentences_influence() -> None:
    vectors = layers()
    tables = measure(MemoryStore(vectors, INDEX), OCCURRENCES, {"s": partial(SelfSimilarity)}, bootstrap=10).tables
    errors = tables["s_errors"].set_index("word")
    repeated = 0
    for word, rows in rows_by_key(OCCURRENCES.by_word).items():
        clusters = OCCURRENCES.clusters.of_row[rows]
        repeated += len(set(clusters.tolist())) < len(clusters)
        for layer, x in enumerate(vectors):
            moved = SelfSimilarity().influence(x[rows][None])[0]
            expected = np.sqrt(sum(moved[clusters == unit].sum() ** 2 for unit in set(clusters.tolist())))
            assert errors.loc[word, f"error_{layer}"] == pytest.approx(expected, rel=1e-6)
    assert repeated > 3
    unknown = measure(MemoryStore(vectors, INDEX), OCCURRENCES, {"s": SelfSimilarity}, bootstrap=0).tables["s_errors"]
    assert unknown.set_index("word").isna().to_numpy().all()
