"""Each measure against its naive double loop, LAPACK's first directions, invariances, bounds; the corrected cosine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg

from ctxexp.maths import mean_cosine
from ctxexp.maths.geometry import (
    PreparedRows,
    explained_variance,
    mean_cosine_to_mean,
    prepare,
    takes_prepared,
)
from ctxexp.maths.spectra import Spread
from tests import naive

DEFINITIONS = ("uncentred", "centred", "released")
SIZES = (2, 3, 7, 16, 17, 39, 41, 100, 128, 129, 300, 700)


def word(n: int, d: int = 64, *, seed: int = 0, spread: float = 0.5) -> np.ndarray:
    """Float32 rows as models give them: a common direction, a word direction, correlated noise, uneven scales."""
    rng = np.random.default_rng(seed)
    mean = 3 * np.eye(d)[0] + rng.normal(size=d)
    noise = rng.normal(size=(n, d)) / np.sqrt(1 + np.arange(d) / 4) @ np.linalg.qr(rng.normal(size=(d, d)))[0]
    return ((mean + spread * noise) * rng.uniform(0.5, 2, (n, 1))).astype(np.float32)


@pytest.mark.parametrize("n", [2, 3, 20, 60, 300])
@pytest.mark.parametrize(("dtype", "within"), [(np.float32, 1e-6), (np.float64, 1e-12)])
def test_cosine_measures_equal_the_double_loop(n: int, dtype: type, within: float) -> None:
    x = word(n).astype(dtype)
    assert mean_cosine(x) == pytest.approx(naive.mean_cosine(x), abs=within)
    assert mean_cosine_to_mean(x) == pytest.approx(naive.cosine_to_mean(x), abs=within)
    unit = x / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    assert mean_cosine_to_mean(x, unit_norm=True) == pytest.approx(naive.cosine_to_mean(unit), abs=within)


@pytest.mark.parametrize("d", [8, 64, 384])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("dtype", "within"), [(np.float32, 1e-6), (np.float64, 1e-12)])
def test_explained_variance_equals_the_decomposition(n: int, d: int, dtype: type, within: float) -> None:
    x = word(n, d, seed=n).astype(dtype)
    for definition in DEFINITIONS:
        got = explained_variance(x, definition=definition)  # type: ignore[arg-type]
        assert got == pytest.approx(naive.explained(x, definition), abs=within), definition


@pytest.mark.parametrize("n", [60, 300])
def test_a_group_beyond_the_iteration_is_solved_with_others(n: int) -> None:
    flat = np.random.default_rng(1).normal(size=(n, 256)).astype(np.float32)
    x = np.stack([word(n, 256), flat, word(n, 256, seed=1), flat[::-1]])
    for definition in DEFINITIONS:
        got, alone = explained_variance(x, definition=definition), [naive.explained(g, definition) for g in x]  # type: ignore[arg-type]
        known = slice(None, None, 2) if definition == "released" else slice(None)  # noise has no first direction
        np.testing.assert_allclose(got[known], alone[known], atol=1e-6)


@pytest.mark.parametrize("n", [6, 60, 200])
def test_released_equals_scikit_learn(n: int) -> None:
    decomposition = pytest.importorskip("sklearn.decomposition", reason="scikit-learn is not installed")
    x = word(n, 50, seed=3).astype(np.float64)
    svd = decomposition.TruncatedSVD(n_components=1, algorithm="arpack").fit(x)
    assert explained_variance(x, definition="released") == pytest.approx(svd.explained_variance_ratio_[0], abs=1e-9)


@pytest.mark.parametrize("n", [5, 30, 200])
def test_spread_far_below_the_mean_survives_float32(n: int) -> None:
    """Rows are centred before any product: a spread of 1e-3 of the norm is still measured to 1e-4."""
    x = (word(n, spread=1.0, seed=5) * 1e-3 + 10 * np.ones(64)).astype(np.float32)
    for definition in ("centred", "released"):
        got = explained_variance(x, definition=definition)  # type: ignore[arg-type]
        assert got == pytest.approx(naive.explained(x, definition), abs=1e-4), definition


@pytest.mark.parametrize("n", [4, 30, 200])
def test_a_group_has_the_same_result_in_any_block(n: int) -> None:
    x = np.stack([word(n, seed=s) for s in range(7)])
    for f in (
        mean_cosine,
        mean_cosine_to_mean,
        *(lambda g, d=d: explained_variance(g, definition=d) for d in DEFINITIONS),
    ):
        alone = np.array([f(group[None])[0] for group in x])
        np.testing.assert_allclose(f(x), alone, rtol=0, atol=2e-7)
        np.testing.assert_array_equal(f(x.reshape(7, 1, n, 64))[:, 0], f(x))
        rows = PreparedRows(x)
        for _ in range(2):
            np.testing.assert_array_equal(f(rows), f(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 3, 20, 150, 1000])
def test_identical_rows_are_wholly_alike_and_have_no_spread(n: int, dtype: type) -> None:
    x = np.tile(word(1, 384)[0], (n, 1)).astype(dtype)
    assert mean_cosine(x) == pytest.approx(1, abs=1e-6)
    assert mean_cosine(x) <= 1
    assert mean_cosine_to_mean(x) == pytest.approx(1, abs=1e-6)
    assert explained_variance(x) == pytest.approx(1, abs=1e-6)
    assert np.isnan(explained_variance(x, definition="centred"))
    assert np.isnan(explained_variance(x, definition="released"))


@pytest.mark.parametrize("n", [3, 30, 200])
def test_a_spread_within_the_rows_precision_is_none(n: int) -> None:
    x = (1 + word(1, 64) * 0.1 + np.random.default_rng(n).choice([-1, 1], (n, 64)) * 2.0**-10).astype(np.float32)
    for definition in ("centred", "released"):
        plain = explained_variance(x, definition=definition)  # type: ignore[arg-type]
        assert np.isfinite(plain)
        coarse, fine = PreparedRows(x, 2.0**-10), PreparedRows(x, 2.0**-14)
        assert np.isnan(explained_variance(coarse, definition=definition))  # type: ignore[arg-type]
        assert explained_variance(fine, definition=definition) == plain  # type: ignore[arg-type]
    uncentred = explained_variance(PreparedRows(x, 2.0**-10))
    assert uncentred == pytest.approx(naive.explained(x, "uncentred"), abs=1e-6)


@pytest.mark.parametrize("n", [2, 10, 30, 100, 200])
def test_undefined_is_nan_and_stays_in_its_group(n: int) -> None:
    x = np.stack([word(n, seed=s) for s in range(5)])
    x[1, 0] = 0  # a row without direction
    x[2, 1, 3] = np.nan
    x[3, 1, 3] = np.inf
    x[4] = 0
    good = [True, False, False, False, False]
    with np.errstate(over="ignore"):
        long = np.stack([x[0], x[0] * np.float32(1e25)])  # squares overflow
    for definition in DEFINITIONS:
        got = explained_variance(long, definition=definition)  # type: ignore[arg-type]
        np.testing.assert_array_equal(np.isfinite(got), [True, False])
    for f in (mean_cosine, mean_cosine_to_mean):
        np.testing.assert_array_equal(np.isfinite(f(x)), good)
        np.testing.assert_allclose(f(x)[0], f(x[0]), atol=2e-7)
    for definition in DEFINITIONS:  # a zero row is a row like any other for a share of variance
        got = explained_variance(x, definition=definition)  # type: ignore[arg-type]
        np.testing.assert_array_equal(np.isfinite(got), [True, True, False, False, False])
        np.testing.assert_allclose(got[1], naive.explained(x[1], definition), atol=1e-6)


@pytest.mark.parametrize("n", [40, 200])
@pytest.mark.parametrize("ratio", [0.9, 1.1])
def test_a_leading_direction_across_the_mean_is_found(n: int, ratio: float) -> None:
    """The search starts near the mean row, which here is an eigenvector, but the second one or the first."""
    x = np.zeros((n, 32), np.float32)
    x[:, 0] = 1
    x[:, 1] = np.where(np.arange(n) % 2, 1, -1) * ratio
    x[:, 2] = np.where(np.arange(n) // 2 % 2, 1, -1) * 0.3
    for definition in DEFINITIONS:
        got = explained_variance(x, definition=definition)  # type: ignore[arg-type]
        assert got == pytest.approx(naive.explained(x, definition), abs=1e-6), definition


def test_a_mean_of_zero_has_no_direction() -> None:
    x = word(4)
    assert np.isnan(mean_cosine_to_mean(np.concatenate([x, -x])))
    centred = np.concatenate([x, -x]).astype(np.float64)
    assert explained_variance(centred) == pytest.approx(explained_variance(centred, definition="centred"), abs=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1e4])
def test_whether_a_mean_vanishes_is_relative_to_the_rows(scale: float) -> None:
    x = word(30) * np.float32(scale)
    assert mean_cosine_to_mean(x) == pytest.approx(naive.cosine_to_mean(x), abs=1e-6)
    assert np.isnan(mean_cosine_to_mean(np.concatenate([x, -x[::-1].sum(0, keepdims=True)])))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_never_leave_their_bounds(dtype: type) -> None:
    """Rows on one line score 1 or -1, which rounding goes past now and then."""
    rng = np.random.default_rng(0)
    lengths = rng.uniform(0.1, 9, (500, 2, 1))
    x = (rng.normal(size=(500, 1, 24)) * lengths).astype(dtype)
    apart = x * np.array([[1], [-1]], dtype)
    scores = [mean_cosine(x), -mean_cosine(apart), mean_cosine_to_mean(x), *(explained_variance(y) for y in (x, apart))]
    for score in scores:
        np.testing.assert_allclose(score, 1, atol=1e-6)
        assert score.max() <= 1


def test_one_row_has_no_score() -> None:
    for definition in DEFINITIONS:
        assert np.isnan(explained_variance(word(1), definition=definition))  # type: ignore[arg-type]
        for shape in ((3, 1, 5), (3, 4, 0)):  # nor have rows without columns
            none = explained_variance(np.ones(shape), definition=definition)  # type: ignore[arg-type]
            assert none.shape == (3,)
            assert np.isnan(none).all()
    assert explained_variance(np.arange(4.0)[:, None]) == 1
    assert np.isnan(mean_cosine(word(1)))
    assert np.isnan(mean_cosine_to_mean(word(1)))


@pytest.mark.parametrize("n", [8, 6])  # all rows, and a slice
def test_rows_carry_their_precision_to_unmarked_functions(n: int) -> None:
    """A plugin's metric that knows nothing of precisions counts rounding no more as spread than the paper's does."""

    def own(rows: np.ndarray) -> np.ndarray:
        return explained_variance(rows[..., :n, :], definition="centred")

    half = np.float64(np.finfo(np.float16).eps)
    x = np.repeat(word(1), 8, axis=0)[None]
    x += np.float32(half / 8) * np.random.default_rng(0).normal(size=x.shape).astype(np.float32)
    rows = PreparedRows(x, float(half))
    assert np.isnan(rows.apply(takes_prepared(lambda y: explained_variance(y, definition="centred"))))
    assert np.isnan(rows.apply(own))
    assert not np.isnan(PreparedRows(x).apply(own))
    assert type(prepare(rows.apply(lambda y: y)).x) is np.ndarray


EPS = float(np.finfo(np.float32).eps)


def block(n: int, d: int) -> np.ndarray:
    """(3, n, d) float32 rows off the origin: groups of a leading direction, of hardly any, and of few directions."""
    rng = np.random.default_rng(n)
    x = rng.normal(size=(3, n, d))
    x[0] *= 1 + 20 * np.eye(d)[1]
    x[2, :, 3:] = 0
    return (x + 4 * np.eye(d)[0]).astype(np.float32)


def spread_of(x: np.ndarray) -> Any:
    return Spread(x, x.sum(axis=1, dtype=np.float64), EPS)


SHAPES = [(16, 24), (17, 24), (60, 16), (128, 200), (129, 200), (300, 128), (700, 129)]


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_first_directions_equal_lapacks(n: int, d: int) -> None:
    x = block(n, d)
    spread = spread_of(x)
    for i, rows in enumerate(x.astype(np.float64)):
        about_mean = rows - rows.mean(axis=0)
        for got, reference in ((spread.centred_direction, about_mean), (spread.raw_direction, rows)):
            u, s, v = np.linalg.svd(reference, full_matrices=False)
            assert got.value[i] == pytest.approx(s[0] ** 2, rel=1e-6)
            assert got.variance[i] == pytest.approx(np.square(about_mean @ v[0]).sum(), rel=1e-3)
            assert abs(u[:, 0] @ got.projections[i]) == pytest.approx(s[0], rel=1e-3)


def planted(n: int, d: int, first: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n, d) float32 rows, two of whose directions stand out, the first (d,) of them as given."""
    basis = np.linalg.qr(np.column_stack([first, rng.standard_normal((d, d - 1))]))[0].T
    left = np.linalg.qr(rng.standard_normal((n, d)))[0]
    return (left * np.r_[1, 0.99, rng.uniform(0, 0.1, d - 2)] @ basis).astype(np.float32)


def test_no_start_hides_the_first_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start that the iteration took becomes one that the next group's first direction has no share of."""
    starts, solve = [], scipy.sparse.linalg.eigsh
    monkeypatch.setattr(scipy.sparse.linalg, "eigsh", lambda *args, **kw: starts.append(kw["v0"]) or solve(*args, **kw))
    rng = np.random.default_rng(0)
    x = planted(300, 140, rng.standard_normal(140), rng)
    for _ in range(4):
        share = explained_variance(x[None])[0]
        s = np.linalg.svd(x.astype(np.float64), compute_uv=False)
        assert share == pytest.approx(s[0] ** 2 / (s**2).sum(), rel=1e-6)
        start = starts[-1] / np.linalg.norm(starts[-1])
        first = rng.standard_normal(140)
        x = planted(300, 140, first - start * (first @ start), rng)
    assert len(starts) == 4
