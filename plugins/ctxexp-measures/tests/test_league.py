"""The calibration league: standings, table and figure from made-up runs with known answers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ctxexp_measures.calibration.league.standings import paired_interval, standings
from scipy import stats

from ctxexp import Results
from ctxexp.results import Key
from tests.sample_results import results_with, run_info

MEASURES = {
    "sts": {"name": "sts", "definition": "Spearman", "main": "all"},
    "sentence_geometry": {"name": "sentence_geometry", "definition": "mean cosine"},
}
MIXES = {"flow_paper_last2": "flow_paper_last2: layers 1, 2", "last2": "last2: layers 1, 2"}


def made(
    transform: str = "none",
    scores: tuple[float, ...] = (30.0, 40.0, 35.0),
    *,
    cosine: float = 0.8,
    iso: float = 0.1,
    **info: Any,
) -> Results:
    """A run of three layers and two tasks, the second 2 above the first, `wmean` 1 above `all`, 36 in each mix."""
    said = {"n_layers": 3, "measures": MEASURES, "mixes": MIXES, "pooling": "mean_words"}
    said |= {"name": "bert", "title": "bert", "weights": "mini", "encoder": "e", "fingerprint": "f", "seed": 0}
    said |= {"bootstrap": 50, "n_pairs": 9, "transform": transform, "corpus": "sts"}
    said |= {"transform_arguments": {"name": transform.partition(" ")[0]}}
    if transform != "none":
        said |= {"fit_on": "target", "transductive": True, "title": f"bert + {transform}"}
    above = {"STS12/all": 0, "STS12/wmean": 1, "STS-B/all": 2, "STS-B/wmean": 3, "avg/all": 1}
    curves = {f"sts/{name}": np.array(scores) + more for name, more in above.items()}
    curves |= {"sts/undefined": np.zeros(3)}  # of no task
    curves |= {"sentence_geometry/mean_cosine": np.full(3, cosine), "sentence_geometry/isoscore": np.full(3, iso)}
    scalars = {f"sts.{mix}/{name}": 36.0 + more for name, more in above.items() for mix in MIXES}
    noise = np.random.default_rng(5).normal(size=(3, 50))
    replicates = {"sts/avg/all": (curves["sts/avg/all"][:, None] + noise).astype(np.float32)}
    return results_with(curves, scalars, replicates=replicates, info=run_info(**{**said, **info}))


def league() -> list[tuple[str, Results]]:
    """Whitening gains 4 in the last layer and 1 in the best of none, flow -1, 0, 1 by seed, center nothing."""
    runs = [made(), made("whitening", (30, 41, 39), cosine=0.0, iso=1.0), made("center", cosine=0.1)]
    for seed in range(3):
        name, arguments = "flow" if not seed else f"flow (seed={seed})", {"name": "flow", "seed": seed, "levels": 2}
        runs.append(made(name, (30, 40, 34.0 + seed), cosine=0.2, iso=0.5, transform_arguments=arguments))
    return [(run.info.title, run) for run in runs]


def apart(run: Results) -> Results:
    """Its replicates from 1 below to 1 above what they were."""
    key = Key("sts", "all", "avg")
    return replace(run, replicates={key: run.replicates[key] + np.linspace(-1, 1, 50, dtype=np.float32)})


# Standings.


def test_transforms_are_ranked_at_the_last_and_best_layer() -> None:
    rows = standings(league())
    places = dict.fromkeys(str(row.place) for row in rows)
    assert list(places) == ["last layer (2)", "best layer of none (1)", "flow_paper_last2", "last2"]
    last = [row for row in rows if row.place.at == 2]
    assert (last[0].rank, last[0].transform) == (1, "whitening")
    assert {row.transform: row.gain for row in last} == pytest.approx(
        {"whitening": 4, "center": 0, "flow": 0, "none": 0}
    )
    best = {row.transform: row for row in rows if row.place.at == 1}
    assert best["whitening"].gain == pytest.approx(1)
    assert best["whitening"].less_cosine == pytest.approx(0.8)
    assert best["whitening"].more_isoscore == pytest.approx(0.9)
    assert best["none"].scores == {"STS12": 40, "STS-B": 42}
    assert (best["none"].score, best["none"].transductive, best["flow"].transductive) == (41, None, True)


def test_runs_that_differ_in_seed_are_one_standing() -> None:
    (flow,) = [row for row in standings(league()) if row.transform == "flow" and row.place.at == 2]
    assert (len(flow.runs), flow.over) == (3, "pairs and 3 seeds")
    mean, low, high = 0.0, *stats.t.interval(0.95, 2, loc=0, scale=stats.sem([-1, 0, 1]))
    assert (flow.gain, flow.low, flow.high) == pytest.approx((mean, low, high))


def test_one_runs_interval_is_that_of_paired_differences() -> None:
    runs = league()
    (row,) = [row for row in standings(runs) if row.transform == "whitening" and row.place.at == 2]
    assert (row.low, row.high) == pytest.approx((4, 4), abs=1e-5)  # the same resamples: their noise is no difference
    assert row.over == "pairs"
    a, b = made(), apart(made("rank"))
    (low, high), _ = paired_interval(b, a, 0)
    assert (low, high) == pytest.approx(tuple(np.percentile(np.linspace(-1, 1, 50), [2.5, 97.5])), abs=1e-5)


def test_neighbours_that_seeds_or_pairs_dont_tell_apart_are_level() -> None:
    rows = [row for row in standings(league()) if row.place.at == 2]
    assert [(row.lead, row.is_level) for row in rows] == [
        (4, False),
        (0, True),
        (0, True),
        (pytest.approx(math.nan, nan_ok=True), True),
    ]
    assert (rows[0].lead_low, rows[0].lead_high) == pytest.approx((4, 4), abs=1e-5)
    a, b = made(), apart(made("rank", (30, 41, 37)))  # 2 above, by replicates 1 to 3 above: both kinds of chance
    seeds = [made("rank", (30, 41, 37 + more), transform_arguments={"seed": more}) for more in (-1, 1)]
    rank, _ = (row for row in standings([("", a), ("", b), *(("", one) for one in seeds)]) if row.place.at == 2)
    by_pairs, by_seeds = 0.95 * (50 - 1) / 49, stats.t.ppf(0.975, 2) / math.sqrt(3)
    assert (rank.lead, rank.lead - rank.lead_low) == pytest.approx((2, math.hypot(by_pairs, by_seeds)), abs=1e-4)


@pytest.mark.parametrize("key", ["seed", "bootstrap", "fingerprint", "n_pairs"])
def test_runs_with_other_resamples_have_no_paired_interval(key: str) -> None:
    (low, high), over = paired_interval(made("rank", **{key: 77}), made(), 0)
    assert math.isnan(low)
    assert math.isnan(high)
    assert over == ""


# Table and figure.


def test_without_the_transform_none_there_is_no_gain() -> None:
    runs = [run for run in league() if run[1].info.transform.name != "none"]
    rows = standings(runs)
    assert all(math.isnan(row.gain) for row in rows)
    assert "best" not in "".join(row.place.name for row in rows)
    same = [("a", made("none", (1, 2, 3))), ("b", made("rank"))]
    assert standings(same)[0].place.name == "last layer, best of none"


def test_each_model_and_pooling_has_its_league() -> None:
    two = [
        *league(),
        *[(n, made(t, name="gpt2", title="gpt2", encoder="g")) for n, t in (("x", "none"), ("y", "rank"))],
    ]
    assert list(dict.fromkeys(row.model for row in standings(two))) == ["bert (mini)", "gpt2 (mini)"]
    assert standings([("a", made()), ("b", made(pooling="cls"))]) == []
    assert standings([("a", made()), ("b", made("rank", choices={"lower": "true"}))]) == []
    twice = [row for row in standings([*league(), *league()]) if row.transform == "flow"]
    assert [len(row.runs) for row in twice] == [3] * len(twice)  # the same runs again are no other seeds
    assert standings([("a", made()), ("b", Results())]) == []
