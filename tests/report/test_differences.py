"""Differences of curves: paired on the same resamples they are sharper, and hold the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from ctxexp import Results
from ctxexp.results import Key
from tests.measuring_helpers import ALL, MemoryStore, contextual, measure, world
from tests.sample_results import with_info
from tests.shipped import OnePerSentence

KEY = Key("intra_sentence_similarity", "raw")


def run(store: MemoryStore, occurrences: object, *, seed: int = 0, bootstrap: int = 200) -> Results:
    metrics = {label: ALL[label] for label in ("self_similarity", "intra_sentence_similarity")}
    exact = OnePerSentence(size=50, redraws=0, exact=True)
    results = measure(store, occurrences, metrics, exact, seed=seed, bootstrap=bootstrap)  # type: ignore[arg-type]
    return with_info(results, fingerprint="the same")


def test_shared_resamples_remove_what_both_curves_share() -> None:
    store, occurrences, _ = world((1.0, 0.9))
    one = run(store, occurrences)
    nothing = one.difference(one, KEY)
    assert nothing.value.tolist() == nothing.low.tolist() == nothing.high.tolist() == [0, 0]
    found = one.difference(one, KEY, layers=[1], others=[0])
    assert found.value == pytest.approx(np.diff(one.by_key[KEY].value))
    assert found.low[0] < found.value[0] < found.high[0]
    assert one.difference(one, KEY, layers=[-1], others=[0]).value == found.value
    own = one.by_key[KEY].high - one.by_key[KEY].low
    assert (found.high - found.low)[0] < 0.5 * np.hypot(*own)


def test_only_runs_on_the_same_text_are_paired() -> None:
    store, occurrences, _ = world((1.0,))
    twin = MemoryStore([store.layers[0] + 0.01 * contextual(store.row_index, 1.0, seed=4)], store.row_index)
    one, same, other = run(store, occurrences), run(twin, occurrences), run(twin, occurrences, seed=1)
    assert one.info.shares_resamples(same.info)
    assert not one.info.shares_resamples(other.info)
    widths = [float((d.high - d.low)[0]) for d in (one.difference(same, KEY), one.difference(other, KEY))]
    assert widths[0] < 0.5 * widths[1]
    own = [float((r.by_key[KEY].high - r.by_key[KEY].low)[0]) for r in (one, other)]
    assert widths[1] == pytest.approx(np.hypot(*own), rel=0.25)


def test_without_replicates_there_is_no_interval() -> None:
    store, occurrences, _ = world((1.0,))
    one, none = run(store, occurrences), run(store, occurrences, bootstrap=0)
    for a, b in ((one, none), (none, one)):
        found = a.difference(b, KEY)
        assert found.value == [0]
        assert np.isnan([found.low, found.high]).all()
