"""Rows' influences: against leaving each row out, and against the spread of scores that they foretell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from ctxexp.maths import influence
from ctxexp.maths.geometry import explained_variance, mean_cosine, mean_cosine_to_mean, sharing

CASES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]] = {
    "mean cosine": (mean_cosine, influence.of_mean_cosine),
    "cosine to mean": (mean_cosine_to_mean, influence.of_mean_cosine_to_mean),
    "cosine to mean, unit": (
        partial(mean_cosine_to_mean, unit_norm=True), partial(influence.of_mean_cosine_to_mean, unit_norm=True)
    ),
    **{
        name: (partial(explained_variance, definition=name), partial(influence.of_explained_variance, definition=name))
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
    with sharing(y := x.astype(np.float32)):
        score(y)
        np.testing.assert_allclose(of(y), got, atol=2e-2 * got.std())


@pytest.mark.parametrize("name", CASES)
def test_their_squares_foretell_the_spread_of_scores(name: str) -> None:
    """Groups of fresh rows: the scores' variance is the mean sum of squares, within a third."""
    score, of = CASES[name]
    x = rows(20, w=2000, seed=1)
    assert 0.75 < float((of(x) ** 2).sum(1).mean() / score(x).var()) < 1.35


def test_without_a_first_direction_of_its_own_the_share_seems_less_certain_than_it_is() -> None:
    """On the safe side: what a row does to the direction is taken for what it does to the share."""
    x = rows(20, w=1000, seed=1, first=1.0)
    score, of = CASES["centred"]
    assert 1 < float((of(x) ** 2).sum(1).mean() / score(x).var()) < 4


def test_leaving_out_is_exact_for_few_rows_and_on_average_for_many() -> None:
    few, many = rows(8), rows(24, w=2000, seed=2)
    np.testing.assert_allclose(influence.by_leaving_out(few, mean_cosine), influence.of_mean_cosine(few), atol=1e-9)
    some = influence.by_leaving_out(many, mean_cosine)
    assert ((some != 0).sum(axis=1) == influence.MOST).all()
    assert (some**2).sum() == pytest.approx((influence.of_mean_cosine(many) ** 2).sum(), rel=0.1)


@pytest.mark.parametrize("of", [pair[1] for pair in CASES.values()], ids=list(CASES))
def test_undefined_influences_are_nan(of: Callable[[np.ndarray], np.ndarray]) -> None:
    assert np.isnan(of(rows(1))).all()
    broken = rows(6)
    broken[1, 2] = np.nan
    got = of(broken)
    assert np.isnan(got[1]).all()
    assert np.isfinite(got[[0, 2]]).all()
