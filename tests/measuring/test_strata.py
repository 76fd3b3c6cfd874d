"""Levels within strata in closed form: the double loop, and the mean of many twins."""

from __future__ import annotations

import numpy as np
import pytest

from ctxexp import Occurrences
from ctxexp.twins import PositionMatched, StrataLevel, Twins, strata_level
from tests.engine import ALL, Memory, measure, world


def found(store: Memory, occurrences: Occurrences, scheme: Twins) -> StrataLevel:
    rows = np.unique(occurrences.by_sentence.rows)
    return strata_level(
        store.layers[0].__getitem__,
        occurrences,
        occurrences.by_word,
        rows,
        scheme.strata(occurrences, rows),
    )


def test_levels_are_the_double_loops() -> None:
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
        measure(store, occurrences, metrics, PositionMatched(size=50, twins=3, least=20, exact=e), seed=0, bootstrap=99)
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
