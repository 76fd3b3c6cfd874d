"""Closed-form transforms: against their definitions, on spaces with a known answer, and turned; rows of norm 1."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from ctxexp.errors import TransformError
from ctxexp.testing import check
from ctxexp.transforms import Calibration
from tests.clouds import check_memory, check_no_rows_and_views, cloud, cosines, mapped, rotation
from tests.measuring_helpers import MemoryStore, calibrated, curves, random_space
from tests.shipped import AllButTheTop, Center, UnitNorm, Whitening

CLOSED = {
    "all_but_the_top": AllButTheTop,
    "all_but_the_top-sn": partial(AllButTheTop, 2, standardize=True),
    "whitening": Whitening,
    "whitening-zca": partial(Whitening, kind="zca"),
    "whitening-top": partial(Whitening, 5),
    "whitening-shrunk": partial(Whitening, shrinkage=0.3),
}


def cov(x: np.ndarray) -> np.ndarray:
    return np.cov(x.astype(np.float64).T, bias=True)


@pytest.mark.parametrize("factory", CLOSED.values(), ids=CLOSED)
def test_the_contract(factory: Callable[[], Any]) -> None:
    assert not check("transform", factory).failures


# All but the top.


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("k", [0, 1, 4])
def test_all_but_the_top_is_a_truncated_svd(k: int, standardize: bool) -> None:
    x = cloud(2 * 4096 + 100)
    wide = x.astype(np.float64) - x.mean(axis=0, dtype=np.float64)
    if standardize:
        wide /= wide.std(axis=0)
    u, s, vt = np.linalg.svd(wide, full_matrices=False)
    expected = (u[:, k:] * s[k:]) @ vt[k:]
    np.testing.assert_allclose(mapped(lambda: AllButTheTop(k, standardize=standardize), x), expected, atol=2e-5)


@pytest.mark.parametrize(("d", "k"), [(1, 0), (2, 1), (150, 2), (768, 8)])
def test_the_number_of_directions_follows_the_width(d: int, k: int) -> None:
    x = np.random.default_rng(d).normal(size=(40, d)).astype(np.float32)
    assert AllButTheTop().fit(x).directions.shape == (d, k)


def test_directions_that_the_fit_did_not_see_are_left_alone() -> None:
    x = np.zeros((50, 6), np.float32)
    x[:, 0] = np.arange(50)
    fitted = AllButTheTop(3).fit(x)
    assert fitted.directions.shape == (6, 1)
    unseen = np.arange(6, dtype=np.float32)[None]
    np.testing.assert_allclose(fitted.apply(unseen), [[0, 1, 2, 3, 4, 5]], atol=1e-6)


# Whitening.


@pytest.mark.parametrize("kind", ["pca", "zca"])
@pytest.mark.parametrize("steepness", [1.0, 1e9])
def test_whitened_rows_have_the_identity_as_covariance(kind: Any, steepness: float) -> None:
    rng = np.random.default_rng(3)
    d = 32
    spread = np.geomspace(1, steepness**-0.5, d)
    x = (rng.normal(size=(5000, d)) * spread @ rotation(d, 4) + 0.3 * rng.normal(size=d)).astype(np.float32)
    fitted = Whitening(kind=kind).fit(x)
    in_float64 = (x.astype(np.float64) - fitted.mean) @ fitted.matrix
    assert np.abs(np.cov(in_float64.T, bias=True) - np.eye(d)).max() < 1e-9
    y = fitted.apply(x)
    # Rounding an entry to float32 moves it by up to 2^-24 of itself; a covariance of columns of variance 1 is then
    # wrong by at most 2 * 2^-24 * mean |y_i y_j| <= 2^-23, and by the squares of that.
    assert np.abs(cov(y) - np.eye(d)).max() < 1.2e-7 + 1e-9
    assert np.abs(y.mean(axis=0, dtype=np.float64)).max() < 1e-6


def test_whitening_is_sklearns_up_to_sign_and_the_divisor() -> None:
    from sklearn.decomposition import PCA

    x = cloud()
    for k in (None, 4):
        theirs = PCA(k, whiten=True, svd_solver="full").fit_transform(x.astype(np.float64))
        theirs *= np.sqrt(len(x) / (len(x) - 1))  # theirs divides by n - 1
        ours = mapped(partial(Whitening, k), x)
        assert ours.shape == theirs.shape
        signs = np.sign((ours * theirs).sum(axis=0))
        np.testing.assert_allclose(ours * signs, theirs, atol=2e-5)


def test_the_strongest_directions_are_kept() -> None:
    x = cloud()
    some, all_ = Whitening(4), Whitening()
    np.testing.assert_array_equal(mapped(lambda: some, x), mapped(lambda: all_, x)[:, :4])
    assert (some.width(12), all_.width(12), Whitening(4, kind="zca").width(12)) == (4, 12, 12)
    back = mapped(partial(Whitening, 4, kind="zca"), x)
    assert np.linalg.matrix_rank(back.astype(np.float64), tol=1e-3) == 4
    np.testing.assert_allclose(cosines(back), cosines(mapped(partial(Whitening, 4), x)), atol=1e-5)


@pytest.mark.parametrize("shrinkage", [0.01, 0.5, 1.0])
def test_shrinkage_moves_the_covariance_towards_the_identity(shrinkage: float) -> None:
    x = cloud()
    values, vectors = np.linalg.eigh(cov(x))
    after = (1 - shrinkage) * values + shrinkage * values.mean()
    expected = (vectors / np.sqrt(after)) @ vectors.T
    fitted = Whitening(shrinkage=shrinkage, kind="zca").fit(x)
    np.testing.assert_allclose(fitted.matrix, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(np.trace(cov(fitted.apply(x)) @ np.diag([1.0] * 12)), (values / after).sum(), rtol=1e-5)
    if shrinkage == 1:
        np.testing.assert_allclose(cosines(fitted.apply(x)), cosines(mapped(Center, x)), atol=1e-5)


def test_fewer_rows_than_columns_need_shrinkage() -> None:
    x = cloud(12)
    with pytest.raises(TransformError, match=r"12 rows, 12 of them distinct, don't determine the covariance of 12 col"):
        Whitening().fit(x)
    repeated = np.tile(cloud(5), (100, 1))
    with pytest.raises(TransformError, match=r"500 rows, 5 of them distinct, .* set shrinkage above 0"):
        Whitening(3).fit(repeated)
    assert np.isfinite(mapped(partial(Whitening, shrinkage=0.1), x)).all()
    assert np.isfinite(mapped(Whitening, cloud(13))).all()


def test_directions_without_variance_become_0() -> None:
    x = cloud()
    whole = mapped(Whitening, x)
    copied = np.concatenate([x, x[:, :1], np.full((len(x), 1), 0.1, np.float32)], axis=1)
    pca, zca = mapped(Whitening, copied), mapped(partial(Whitening, kind="zca"), copied)
    assert pca.shape == zca.shape == copied.shape
    assert not pca[:, 12:].any()
    assert np.abs(cov(pca)[:12, :12] - np.eye(12)).max() < 1e-6
    for y in (pca, zca):
        np.testing.assert_allclose(cosines(y), cosines(whole), atol=1e-5)
    np.testing.assert_allclose(zca[:, 13], 0, atol=1e-6)


def test_the_direction_a_layer_norm_removes_is_none() -> None:
    """Its rows are constant along 1 / gain but for rounding, which whitening would blow up to variance 1."""
    rng = np.random.default_rng(3)
    n, d = 500, 16
    gain, bias = rng.uniform(0.5, 2, d), rng.normal(size=d)
    x = rng.normal(size=(n, d)) * np.geomspace(1, 0.03, d)
    x = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True) * gain + bias
    whitened = Whitening().fit(x.astype(np.float32))
    assert len(whitened.variances) == d - 1
    y = whitened.apply(x.astype(np.float32)).astype(np.float64)
    np.testing.assert_allclose(np.cov(y.T, bias=True), np.diag([1.0] * (d - 1) + [0.0]), atol=1e-6)


# Through the measuring.


def test_a_layer_of_fewer_columns_is_measured_as_such() -> None:
    space, occurrences = random_space()
    measured = np.unique(occurrences.by_sentence.rows)
    store = calibrated(space, occurrences, partial(Whitening, 3), name="whitening")
    assert (store.dim, space.dim) == (3, 6)
    for i in range(space.n_layers):
        layer = store.layer(i)
        assert layer.shape == (len(space.layer(i)), 3)
        np.testing.assert_array_equal(layer[measured], mapped(partial(Whitening, 3), space.layer(i)[measured]))
        assert not np.delete(layer, measured, axis=0).any()
    results = curves(store, occurrences)
    by_hand = np.stack([store.layer(i) for i in range(space.n_layers)])
    for key, curve in curves(MemoryStore(by_hand), occurrences).by_name.items():
        np.testing.assert_array_equal(results.by_name[key], curve, err_msg=key)
    assert np.abs(results.by_name["anisotropy/mean_cosine"]).max() < 0.1


def test_callers_who_keep_the_width_see_zeros_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxexp.transforms.CHUNK_BYTES", 4 * 12 * 100)  # a hundred rows
    x = cloud()
    calibration = Calibration(partial(Whitening, 5), "whitening")
    y = x.copy()
    view = calibration.apply(calibration.fit(x, "layer 0"), y, "layer 0")
    assert np.shares_memory(view, y)
    assert view.shape == (600, 5)
    assert not y[:, 5:].any()
    np.testing.assert_allclose(view, mapped(partial(Whitening, 5), x), atol=1e-6)


def test_an_impossible_width_is_refused() -> None:
    space, occurrences = random_space()
    odd = type("Odd", (Center,), {"width": lambda self, dim: 7})
    with pytest.raises(TransformError, match=r"'odd': width\(6\) gave .*; expected how many columns .* 1 to 6"):
        calibrated(space, occurrences, odd, name="odd")


# Edges and messages.


def test_few_rows_are_widened_at_a_time() -> None:
    check_memory(Whitening)


def test_apply_takes_no_rows_and_strided_views() -> None:
    for name, factory in CLOSED.items():
        check_no_rows_and_views(factory, name)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (partial(AllButTheTop, 12), r"k=12 of 12 columns would leave nothing; choose k below 12"),
        (partial(Whitening, 13), r"k=13 of 12 columns; choose k up to 12, or null for all"),
    ],
)
def test_what_the_rows_do_not_allow_is_refused(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(TransformError, match=message):
        build().fit(cloud(20))


@pytest.mark.parametrize("centred", [False, True])
def test_rows_have_norm_1_by_hand(centred: bool) -> None:
    check("transform", lambda: UnitNorm(centred=centred))
    x = np.random.default_rng(0).normal(size=(9000, 4)).astype(np.float32) + 2
    x[3] *= 1e4
    y = UnitNorm(centred=centred).fit(x).apply(x)
    expected = x.astype(np.float64) - (x.mean(0, dtype=np.float64) if centred else 0)
    np.testing.assert_allclose(y, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert not UnitNorm().fit(x).apply(np.zeros((2, 4), np.float32)).any()
    assert UnitNorm(centred=centred).needs_fit == centred  # nothing to fit on another text otherwise
