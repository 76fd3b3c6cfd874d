"""Chance levels in closed form, of strata too: the double loop, the mean of many draws, rows without a direction."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

from ctxexp import Corpus, Occurrences, Pair
from ctxexp.matched_baselines import PositionMatched, StrataBaseline, Twins, strata_baseline
from ctxexp.measuring.baseline_levels import expected_mean_cosine
from tests.measuring_helpers import ALL, MemoryStore, contextual, measure, reader_of, row_index_of, rows_by_key, world
from tests.shipped import OnePerSentence, SizeMatched

LINKS = ((0, 1), (2, 1), (3, 4))


def small(*, repeat: int = 1, n: int = 12, links: tuple[tuple[int, int], ...] = ()) -> tuple[MemoryStore, Occurrences]:
    rng = np.random.default_rng(0)
    corpus = Corpus.of("small", [[f"s{i}", *(f"w{j}" for j in rng.integers(0, 9, i % 5))] for i in range(n)] * repeat)
    corpus = replace(corpus, pairs=tuple(Pair(a, b, 1.0, "all") for a, b in links))
    index = row_index_of(corpus)
    return MemoryStore([contextual(index, 1.0)], index), Occurrences.of(index, corpus)


def level(store: MemoryStore, occurrences: Occurrences, over: Any) -> Any:
    reader = reader_of(store.layers[0], occurrences, block_bytes=2000)
    return expected_mean_cosine(reader.blocks_of, occurrences, over)


def unit(store: MemoryStore) -> np.ndarray:
    x = store.layers[0].astype(np.float64)
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


@pytest.mark.parametrize("repeat", [1, 2])
def test_levels_are_the_double_loops(repeat: int) -> None:
    store, occurrences = small(repeat=repeat)
    u, groups = unit(store), occurrences.distinct
    parts = rows_by_key(groups).values()
    between = [np.mean([u[i] @ u[j] for i in a for j in b]) for a, b in combinations(parts, 2)]
    assert level(store, occurrences, "sentence").value == pytest.approx(np.mean(between), abs=1e-7)
    every = [u[i] @ u[j] for i, j in combinations(groups.rows.tolist(), 2)]
    assert level(store, occurrences, "row").value == pytest.approx(np.mean(every), abs=1e-7)
    assert level(store, occurrences, "sentence").n == 12


def test_sentences_that_gold_pairs_link_are_not_unrelated() -> None:
    store, occurrences = small(links=LINKS)
    u, parts = unit(store), rows_by_key(occurrences.distinct)
    linked = [(0, 1), (0, 2), (1, 2), (3, 4)]
    between = [
        np.mean([u[i] @ u[j] for i in parts[s] for j in parts[t]])
        for s, t in combinations(range(12), 2)
        if (s, t) not in linked
    ]
    got = level(store, occurrences, "sentence")
    assert got.value == pytest.approx(np.mean(between), abs=1e-7)
    assert got.influence.sum() == pytest.approx(0, abs=1e-6)
    assert len(got.influence) == 9


def test_draws_take_one_sentence_of_those_that_gold_pairs_link() -> None:
    _, occurrences = small(links=LINKS)
    groups = occurrences.distinct
    sentence = dict(zip(groups.rows.tolist(), np.repeat(groups.keys, groups.counts).tolist(), strict=True))
    rng, seen = np.random.default_rng(0), set()
    matched = SizeMatched(draws=40, exact=9).draw(np.array([3, 9]), occurrences, rng)
    for rows in (*OnePerSentence(size=9, redraws=60).groups(occurrences, rng), *chain(*matched.draws)):
        sentences = {sentence[row] for row in rows.tolist()}
        assert len(sentences) == len(rows)
        assert not any({a, b} <= sentences for a, b in ((0, 1), (0, 2), (1, 2), (3, 4)))
        seen |= sentences
    assert seen == set(range(12))


def test_a_levels_influence_is_what_leaving_out_changes() -> None:
    store, occurrences = small(n=60)
    groups = occurrences.distinct
    u = unit(store)
    m = np.stack([u[rows].mean(0) for rows in rows_by_key(groups).values()])
    without = []
    for i in range(60):
        k = np.delete(m, i, axis=0)
        without.append(((k.sum(0) ** 2).sum() - (k**2).sum()) / (59 * 58))
    found = level(store, occurrences, "sentence")
    moved = found.influence[occurrences.clusters.of_sentence[np.array(groups.keys)]]
    np.testing.assert_allclose(moved, (found.value - np.array(without)) * 58 / 60, atol=1e-6)
    for over in ("sentence", "row"):
        assert level(store, occurrences, over).influence.sum() == pytest.approx(0, abs=1e-6)


def test_rows_without_a_direction_have_no_share() -> None:
    store, occurrences = small()
    whole = level(store, occurrences, "sentence")
    longest = occurrences.distinct.rows[-5:]
    store.layers[0][longest[:2]] = 0
    store.layers[0][longest[2]] = np.inf
    some = level(store, occurrences, "sentence")
    assert (some.n, some.value != whole.value) == (12, True)
    store.layers[0][longest] = 0
    assert level(store, occurrences, "sentence").n == 11
    store.layers[0][:] = 0
    nothing = level(store, occurrences, "row")
    assert np.isnan(nothing.value)
    assert np.isnan(nothing.influence).all()


def test_the_exact_baseline_is_anisotropy_itself() -> None:
    store, occurrences = small(n=80)
    exact = OnePerSentence(size=30, redraws=2, exact=True)
    results = measure(store, occurrences, ALL, exact, bootstrap=50)
    curves, expected = results.by_name, level(store, occurrences, "sentence").value
    for key in ("anisotropy/mean_cosine", "self_similarity/baseline", "intra_sentence_similarity/baseline"):
        assert curves[key][0] == expected, key
    assert curves["anisotropy/n"][0] == 80
    gap = curves["self_similarity/raw"] - curves["self_similarity/adjusted"]
    assert gap[0] == pytest.approx(expected)
    for key in ("anisotropy/mean_cosine", "self_similarity/adjusted", "mev/adjusted"):
        assert curves[f"{key}_ci_low"][0] < curves[key][0] < curves[f"{key}_ci_high"][0]
    levels = [results.info.measures[label].level for label in ("anisotropy", "self_similarity", "mev")]
    assert levels == ["exact", "exact", "drawn"]
    other = measure(store, occurrences, ALL, exact, seed=9, bootstrap=0).by_name
    assert other["self_similarity/adjusted"][0] == curves["self_similarity/adjusted"][0]  # no draw in it
    assert other["mev/adjusted"][0] != curves["mev/adjusted"][0]


def found(store: MemoryStore, occurrences: Occurrences, scheme: Twins) -> StrataBaseline:
    rows = np.unique(occurrences.by_sentence.rows)
    return strata_baseline(
        store.layers[0].__getitem__,
        occurrences,
        occurrences.by_word,
        rows,
        scheme.strata(occurrences, rows),
    )


def test_levels_within_strata_are_the_double_loops() -> None:
    store, occurrences, _ = world((1.0,))
    scheme = PositionMatched(least=20)
    rows = np.unique(occurrences.by_sentence.rows)
    store.layers[0][rows[3]] = 0  # without a direction: no share
    stratum = scheme.strata(occurrences, rows)
    length = np.linalg.norm(store.layers[0][rows].astype(np.float64), axis=1)
    u = store.layers[0][rows] / np.where(length > 0, length, 1)[:, None]
    cosine, k = u @ u.T, stratum.max() + 1
    np.fill_diagonal(cosine, np.nan)
    cosine[length == 0] = cosine[:, length == 0] = np.nan
    mean = [[np.nanmean(cosine[np.ix_(stratum == a, stratum == b)]) for b in range(k)] for a in range(k)]
    groups, got = occurrences.by_word, found(store, occurrences, scheme)
    for g in (0, len(groups) - 1):
        own = stratum[np.searchsorted(rows, groups.rows[groups.starts[g] : groups.starts[g + 1]])]
        pairs = [mean[a][b] for i, a in enumerate(own) for j, b in enumerate(own) if i != j]
        assert got.of_group[g] == pytest.approx(np.mean(pairs), abs=1e-6)
    assert got.influence.sum() == pytest.approx(0, abs=1e-5)


def test_exact_twins_are_the_level_of_self_similarity_alone() -> None:
    store, occurrences, _ = world((1.0,))
    metrics = {label: ALL[label] for label in ("self_similarity", "intra_sentence_similarity", "anisotropy")}
    exact, drawn = (
        measure(store, occurrences, metrics, PositionMatched(size=50, twins=3, least=20, exact=e), bootstrap=99)
        for e in (True, False)
    )
    assert {label: about.level for label, about in exact.info.measures.items()} == {
        "self_similarity": "exact", "intra_sentence_similarity": "drawn", "anisotropy": "exact",
    }  # fmt: skip
    assert {about.level for about in drawn.info.measures.values()} == {"drawn"}
    level = found(store, occurrences, PositionMatched(least=20)).of_group.mean()
    assert exact.by_name["self_similarity/baseline"][0] == pytest.approx(level)
    assert drawn.by_name["self_similarity/baseline"][0] == pytest.approx(level, abs=0.02)
    for name in ("baseline", "adjusted"):
        key = f"intra_sentence_similarity/{name}"
        assert exact.by_name[key][0] == drawn.by_name[key][0]
    low, value, high = (exact.by_name[f"self_similarity/adjusted{end}"][0] for end in ("_ci_low", "", "_ci_high"))
    assert low < value < high
