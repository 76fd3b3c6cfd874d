"""Rows' influences: against leaving each row out, and against the spread of scores that they foretell."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from ctxexp.maths import mean_cosine, resampling
from ctxexp.maths.geometry import PreparedRows, explained_variance, mean_cosine_to_mean
from ctxexp.maths.statistics import aggregate, summary

CASES = {
    "mean cosine": (mean_cosine, resampling.mean_cosine_influence),
    "cosine to mean": (mean_cosine_to_mean, resampling.mean_cosine_to_mean_influence),
    "cosine to mean, unit": (
        partial(mean_cosine_to_mean, unit_norm=True), partial(resampling.mean_cosine_to_mean_influence, unit_norm=True)
    ),
    **{
        name: tuple(partial(f, definition=name) for f in (explained_variance, resampling.explained_variance_influence))
        for name in ("uncentred", "centred", "released")
    },
}  # fmt: skip


def rows(n: int, *, w: int = 3, d: int = 20, seed: int = 0, first: float = 4.0) -> np.ndarray:
    """Rows about a common mean; `first`, how far their first direction stands out of the others."""
    rng = np.random.default_rng(seed)
    axes = np.concatenate([[first], np.linspace(1, 0.2, d - 1)])
    return (rng.normal(size=(w, n, d)) * axes + 2 * rng.normal(size=d)) * rng.uniform(0.7, 1.4, (w, n, 1))


@pytest.mark.parametrize("n", [30, 90, 300])
@pytest.mark.parametrize("name", CASES)
def test_influences_are_what_leaving_a_row_out_changes(name: str, n: int) -> None:
    score, of = CASES[name]
    x = rows(n)
    got = of(x)
    left_out = np.stack([score(x) - score(np.delete(x, i, axis=1)) for i in range(0, n, 7)], axis=1)
    expected = (left_out - left_out.mean(1, keepdims=True)) * np.sqrt((n - 1) / n)
    tried = got[:, ::7] - got[:, ::7].mean(1, keepdims=True)
    assert got.sum(axis=1) == pytest.approx(0, abs=1e-9)
    assert np.sqrt(((tried - expected) ** 2).mean()) < (0.1 if n > 50 else 0.25) * expected.std()
    y = PreparedRows(x.astype(np.float32))
    score(y)
    for same in (y, y.x):
        np.testing.assert_allclose(of(same), got, atol=2e-2 * got.std())


def weighted_score(name: str, x: np.ndarray, weights: np.ndarray) -> float:
    """The score of rows (n, d) of which each counts as often as its weight says, by its definition."""
    shares = (weights / weights.sum())[:, None]
    mean = (shares * x).sum(axis=0)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    if name.startswith("cosine to mean"):
        direction = (shares * unit).sum(axis=0) if name.endswith("unit") else mean
        return float(shares[:, 0] @ unit @ direction / np.linalg.norm(direction))
    uncentred, about_mean = (y.T @ (shares * y) for y in (x, x - mean))
    moment = about_mean if name == "centred" else uncentred
    first = np.linalg.eigh(moment)[1][:, -1]
    if name == "released":
        moment = about_mean
    return float(first @ moment @ first / np.trace(moment))


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize("name", [name for name in CASES if name != "mean cosine"])
def test_influences_are_derivatives_by_the_rows_weights(name: str, n: int) -> None:
    """To the last factor: sqrt(n / (n - 1)), which makes a mean's squares sum to its unbiased variance."""
    x = rows(n, w=1, first=9.0)[0]
    steps = 1e-5 * np.eye(n)
    slopes = np.array([weighted_score(name, x, 1 + s) - weighted_score(name, x, 1 - s) for s in steps]) / 2e-5
    got = CASES[name][1](x[None])[0]
    np.testing.assert_allclose(
        got, slopes * np.sqrt(n / (n - 1)), atol=0.02 * got.std() if name == "released" else 1e-8
    )


@pytest.mark.parametrize("name", CASES)
def test_their_squares_foretell_the_spread_of_scores(name: str) -> None:
    """Groups of fresh rows: the scores' variance is the mean sum of squares, within a third."""
    score, of = CASES[name]
    x = rows(20, w=2000, seed=1)
    assert 0.75 < float((of(x) ** 2).sum(1).mean() / score(x).var()) < 1.35


def test_leaving_out_is_exact_for_few_and_good_for_many() -> None:
    for few in (rows(3), rows(8)):
        expected = resampling.mean_cosine_influence(few)
        np.testing.assert_allclose(resampling.jackknife(few, mean_cosine), expected, atol=1e-9)
    many = rows(24, w=2000, seed=2)
    some = resampling.jackknife(many, mean_cosine)
    assert ((some != 0).sum(axis=1) == resampling.MAX_LEFT_OUT).all()
    assert (some[:, [0, -1]] != 0).all()  # spaced evenly from the first to the last
    np.testing.assert_array_equal(resampling.jackknife(many[None, :9], mean_cosine)[0], some[:9])
    assert (some**2).sum() == pytest.approx((resampling.mean_cosine_influence(many) ** 2).sum(), rel=0.1)


def test_the_turn_of_the_released_direction_is_its_inverses_series() -> None:
    """Against the pseudo-inverse: four terms leave the fourth power of the eigenvalues' ratio."""
    x = rows(60, w=1, first=7.0)[0]
    values, vectors = np.linalg.eigh(x.T @ x)
    v, s = vectors[:, -1], x.sum(axis=0)
    inverse = (vectors[:, :-1] / (values[-1] - values[:-1])) @ vectors[:, :-1].T
    expected = -2 * (v @ s) * (x @ v) * (x @ inverse @ s) / len(x)
    got = resampling._turning(x[None], values[-1:], (x @ v)[None], s[None])[0]
    ratio = values[-2] / values[-1]
    wrong = np.abs(got - expected).max() / np.abs(expected).max()
    assert 0.03 < ratio < 0.7
    assert 0.05 * ratio**resampling.TERMS < wrong < 1.5 * ratio**resampling.TERMS


@pytest.mark.parametrize("of", [pair[1] for pair in CASES.values()], ids=list(CASES))
def test_undefined_influences_are_nan(of: Callable[[np.ndarray], np.ndarray]) -> None:
    assert np.isnan(of(rows(1))).all()
    broken = rows(6)
    broken[1, 2] = np.nan
    got = of(broken)
    assert np.isnan(got[1]).all()
    assert np.isfinite(got[[0, 2]]).all()


A, B = np.array([3.0, 4.0, 0.0]), np.array([4.0, 3.0, 0.0])


def test_two_rows_have_an_influence_and_one_a_score() -> None:
    two = np.stack([A, 2 * B])[None]
    assert np.isnan(resampling.mean_cosine_influence(two)).all()  # one pair: nothing can be left out
    assert np.isfinite(resampling.mean_cosine_to_mean_influence(two)).all()
    assert np.isfinite(resampling.explained_variance_influence(two)).all()
    one_column = np.arange(1.0, 5)[None, :, None]  # which explains all
    assert (resampling.explained_variance_influence(one_column) == 0).all()
    no_columns = resampling.explained_variance_influence(np.ones((3, 4, 0)))
    assert np.isnan(no_columns).all()
    assert no_columns.shape == (3, 4)
    none = resampling.jackknife(np.concatenate([two] * 3), mean_cosine)
    assert np.isnan(none).all()
    assert none.shape == (3, 2)


def test_a_summary_of_few_values_omits_undefined_parts() -> None:
    assert summary(np.array([5.0, 1.0])) == pytest.approx({"raw": 3, "median": 3, "sd": np.sqrt(8), "n": 2})
    assert summary(np.array([5.0])) == pytest.approx({"raw": 5, "median": 5, "sd": np.nan, "n": 1}, nan_ok=True)
    none = {"raw": np.nan, "median": np.nan, "sd": np.nan, "n": 0}
    assert summary(np.array([])) == pytest.approx(none, nan_ok=True)


def test_a_summary_knows_no_order_to_the_last_bit() -> None:
    values = np.array([1e16, 1.0, -1e16, 3.0])
    assert len({summary(values[list(order)])["raw"] for order in itertools.permutations(range(4))}) == 1


def test_weights_count_as_repeated_scores_do() -> None:
    scores, weights = np.array([0.3, 0.1, np.nan, 0.9, 0.2]), np.array([2, 1, 5, 3, 1])
    got = aggregate(scores, weights.astype(float))
    repeated = np.repeat(scores[[0, 1, 3, 4]], weights[[0, 1, 3, 4]])
    assert got["raw"] == pytest.approx(repeated.mean())
    assert got["median"] == pytest.approx(np.median(repeated))
    assert got["sd"] == pytest.approx(repeated.std() * np.sqrt(4 / 3))
    assert (got["n"], got["undefined"]) == (4, 1)
    two = aggregate(np.array([1.0, 3.0]), np.array([1.0, 3.0]))
    assert two["sd"] == pytest.approx(np.repeat([1.0, 3.0], [1, 3]).std() * np.sqrt(2))
    assert np.isnan(aggregate(scores[:1], weights[:1].astype(float))["sd"])
    equal = aggregate(scores, np.ones(5))
    assert {name: equal[name] for name in ("raw", "sd")} == pytest.approx(
        {name: aggregate(scores)[name] for name in ("raw", "sd")}
    )
