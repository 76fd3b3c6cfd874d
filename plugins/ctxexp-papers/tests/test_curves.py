"""Curves and the kinds of tests on them, against naive references and in planted cases."""

from __future__ import annotations

import numpy as np
import pytest
from ctxexp_papers.claims.best_layer import best_layer_gain
from ctxexp_papers.claims.evidence import Member
from ctxexp_papers.claims.kinds import TEST_KINDS, Check, Test, key_of, places, sides_of
from ctxexp_papers.claims.statistics import LayerCurve, NotMeasuredError

RNG = np.random.default_rng


def tried(test: Test, *curves: LayerCurve | np.ndarray, n_refuting: int = 1) -> Check:
    """The check of one model with these curves, of a test's sides."""
    made = [c if isinstance(c, LayerCurve) else LayerCurve.of_samples(c) for c in curves]
    test = {"metric": "a/raw", **test}
    by_key = dict(zip([key_of(side) for side in sides_of(test)], made, strict=False))
    return TEST_KINDS[test["kind"]](Member("m", by_key), test, n_refuting)


def points(values: list[float], half: float = 0.01) -> LayerCurve:
    value = np.array(values)
    return LayerCurve(value, value - half, value + half, tuple(range(len(values))))


def test_a_mean_over_layers_is_taken_sample_by_sample() -> None:
    values = RNG(0).normal(0.3, 0.1, (20, 3))
    curve = LayerCurve.of_samples(values, (0, 4, 8))
    assert curve.at([2]).layers == (8,)
    assert curve.mean().by_sample[:, 0] == pytest.approx(values.mean(axis=1))
    assert curve.mean().value == pytest.approx(values.mean())


def test_differences_use_the_same_resamples_where_both_have_them() -> None:
    """Layers that move together differ by a certain amount, however wide each one's interval is."""
    together = RNG(0).normal(0, 0.1, 400)
    runs = [
        LayerCurve(np.array([v]), np.array([v - 0.2]), np.array([v + 0.2]), (0,), None, v + together[None], seed)
        for v, seed in ((0.5, 0), (0.3, 0), (0.3, 1))
    ]
    same, other = runs[0].less(runs[1]), runs[0].less(runs[2])
    assert (same.low[0], same.high[0]) == pytest.approx((0.2, 0.2))
    assert (other.low[0], other.high[0]) == pytest.approx((0.2 - 0.2 * 2**0.5, 0.2 + 0.2 * 2**0.5))
    assert runs[0].redrawn(5)[:, 0] == pytest.approx(0.5 + together[:5])


def test_a_bound_holds_in_every_layer_or_in_the_share_that_is_asked_for() -> None:
    values = RNG(0).normal(0.3, 0.1, (20, 3))
    check = tried({"kind": "layers"}, values)
    at = int(np.argmin(LayerCurve.of_samples(values).low))
    assert (check.passed, check.brief, check.n) == (True, "3 of 3", 20)
    assert check.effect == pytest.approx(values.mean(axis=0)[at])
    broken = points([0.5, 0.5, 0.5, -0.5])
    for test, curve, passed in (
        ({"above": 0.9}, values, False), ({"below": 0.2}, values, False), ({"within": 0.5}, values, True),
        ({}, broken, False), ({"least": 0.75}, broken, True), ({"layers": "last"}, broken, False),
        ({"layers": "middle"}, broken, True), ({}, points([0.5, -0.012]), False),
    ):  # fmt: skip
        assert tried({"kind": "layers", **test}, curve).passed is passed, test


def test_what_has_no_value_decides_nothing() -> None:
    """A bound in every layer of a run isn't met by those that have a value; of samples, layers without are left out."""
    with pytest.raises(NotMeasuredError, match="a/raw is undefined in layer 1"):
        tried({"kind": "layers"}, points([0.5, np.nan, 0.5]))
    with pytest.raises(NotMeasuredError, match="has no interval: run with bootstrap"):
        tried({"kind": "layers"}, points([0.5, 0.5], np.nan))
    with pytest.raises(NotMeasuredError, match="undefined: too few rows"):
        tried({"kind": "layers"}, np.full((9, 2), np.nan))
    values = np.full((9, 3), 0.5)
    values[4, 1] = np.nan
    assert tried({"kind": "layers"}, values).brief == "2 of 2"
    with pytest.raises(NotMeasuredError, match="a trend needs 3 layers"):
        tried({"kind": "trend"}, points([0.5, 0.4]))
    with pytest.raises(NotMeasuredError, match="fewer than 8 samples or three layers"):
        tried({"kind": "ends"}, np.zeros((7, 5)))


def test_a_trend_goes_beyond_its_bound_and_beyond_walks() -> None:
    falls = {"kind": "trend", "below": -0.05}
    for test, first, last, passed in (
        (falls, 0.8, 0.1, True), (falls, 0.1, 0.8, False), ({**falls, "rises": True}, 0.1, 0.8, True),
        (falls, 0.3, 0.29, False),  # no change to speak of
    ):  # fmt: skip
        assert tried(test, points(np.linspace(first, last, 13).tolist(), 0.001)).passed is passed, (test, first)
    three = tried(falls, points([0.9, 0.5, 0.1]))
    assert (three.passed, three.effect) == (None, -1.0)
    assert "50.0% of walks go as far" in three.text


def test_halves_and_measurements_are_compared() -> None:
    halves = {"kind": "compare", "one": {"layers": "upper half"}, "other": {"layers": "lower half"}, "below": 0}
    assert places("lower half", 6) == [1, 2]
    assert places("upper half", 6) == [4, 5]
    assert places("upper half", 3) == [2]
    check = tried(halves, points([0.9, 0.8, 0.7, 0.5, 0.4, 0.3]))
    assert (check.passed, check.effect) == (True, pytest.approx(-0.4))
    values = RNG(1).normal(0.5, 0.1, (12, 4))
    twin = {"kind": "compare", "one": {}, "other": {"twin": True}, "above": 0.1}
    check = tried(twin, values, values - 0.2)
    assert (check.passed, check.brief) == (True, "4 of 4")
    assert check.high - check.low == pytest.approx(0, abs=1e-9)  # sample by sample


def gain(scores: np.ndarray, *, both_ends: bool):  # type: ignore[no-untyped-def]
    rivals = (0, scores.shape[1] - 1) if both_ends else (scores.shape[1] - 1,)
    return best_layer_gain(scores, rivals=rivals, rng=RNG(0), resamples=400)


def test_the_best_layer_is_found_and_held_out() -> None:
    rng = RNG(2)
    for _ in range(5):
        noise = rng.normal(size=(32, 13))
        peak = (np.arange(13) == 6) * 3.0
        assert gain(noise + peak, both_ends=True).passed is True
        assert gain(noise + peak, both_ends=True).layers[0] == 6
        assert gain(noise + (np.arange(13) == 0) * 3.0, both_ends=True).passed is False
        assert gain(noise + (np.arange(13) == 0) * 3.0, both_ends=False).passed is None
    for scores in (np.zeros((9, 2)), np.full((9, 5), np.nan)):
        with pytest.raises(ValueError, match="expected finite scores of 8 tasks"):
            gain(scores, both_ends=False)


def test_what_an_untrained_network_shows_too_is_not_learned() -> None:
    test = {"kind": "ends", "rivals": "last", "beyond": {"twin": True}}
    rng = RNG(6)

    def scores(height: float) -> np.ndarray:
        return np.asarray(rng.normal(0, 0.3, (32, 7)) + height * (np.arange(7) == 3))

    assert tried(test, scores(3), scores(1)).passed is True
    assert tried(test, scores(1), scores(3)).passed is False
    assert tried(test, scores(1) - 2 * (np.arange(7) < 6), scores(0)).passed is False  # no gain to be learned
    assert tried(test, scores(2), scores(2)).passed is not True
