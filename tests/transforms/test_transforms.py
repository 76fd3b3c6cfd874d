"""Calibrations of the space: their laws, and measuring through them against spaces that are calibrated by hand."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ctxexp import Corpus, CtxexpError, Occurrences
from ctxexp.errors import TransformError
from tests.measuring_helpers import MemoryStore, calibrated, curves, random_space, row_index_of
from tests.shipped import (
    Center,
    Standardize,
)


def by_hand(space: MemoryStore, occurrences: Occurrences, *, scale: bool) -> MemoryStore:
    """The same transform with plain float64 loops over columns."""
    rows = sorted(set(occurrences.by_sentence.rows.tolist()))
    layers = space.layers.astype(np.float64)
    for layer in layers:
        for column in range(space.dim):
            values = [layer[row, column] for row in rows]
            mean = sum(values) / len(values)
            spread = (sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5 if scale else 1.0
            layer[:, column] = (layer[:, column] - mean) / spread
    return MemoryStore(layers.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("factory", "scale"), [(Center, False), (Standardize, True)])
def test_measuring_through_a_transform_is_measuring_a_calibrated_store(
    factory: Callable[[], Any], scale: bool, dtype: type
) -> None:
    space, occurrences = random_space(dtype)
    got = curves(calibrated(space, occurrences, factory), occurrences)
    expected = curves(by_hand(space, occurrences, scale=scale), occurrences)
    plain = curves(MemoryStore(space.layers.astype(np.float32)), occurrences)
    assert got.by_name.keys() == expected.by_name.keys()
    for key, curve in expected.by_name.items():
        np.testing.assert_allclose(got.by_name[key], curve, atol=2e-5, err_msg=key)
    assert np.abs(got.by_name["anisotropy/mean_cosine"] - plain.by_name["anisotropy/mean_cosine"]).min() > 0.3


def test_standardize_has_variance_1_and_columns_without_variance_stay_0() -> None:
    x = np.random.default_rng(2).normal(size=(9000, 5)).astype(np.float32) * [1e-3, 1, 50, 1, 1] + 7
    x = x.astype(np.float32)
    x[:, 3] = 0.1  # no sum of tenths is exact: a spread by rounding would blow this column up
    y = Standardize().fit(x).apply(x)
    assert y.dtype == np.float32
    assert np.array_equal(y[:, 3], np.zeros(9000))
    others = y[:, [0, 1, 2, 4]].astype(np.float64)
    np.testing.assert_allclose(others.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(others.var(axis=0), 1, atol=1e-5)
    np.testing.assert_allclose(Standardize().fit(y).apply(y), y, atol=1e-5)


def test_rows_keep_their_places_whatever_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    space, occurrences = random_space()
    whole = calibrated(space, occurrences, Center)
    measured = np.unique(occurrences.by_sentence.rows)
    rest = np.setdiff1d(np.arange(len(space.layer(0))), measured)
    assert len(rest)
    pieces = calibrated(space, occurrences, Center)
    for chunk in (1, 7, 1000):
        monkeypatch.setattr("ctxexp.transforms.CHUNK_BYTES", 4 * space.dim * chunk)
        for i in range(3):
            x = pieces.layer(i)
            np.testing.assert_array_equal(x, whole.layer(i))
            kept = space.layer(i)[measured].astype(np.float64)
            np.testing.assert_allclose(x[measured], kept - kept.mean(axis=0), atol=1e-6)
            assert not x[rest].any()


def test_one_layer_and_a_piece_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = np.random.default_rng(0).normal(size=(1, 60_000, 64)).astype(np.float32)
    corpus = Corpus.of("c", [[f"w{i + a}" if i % 2 else "." for i in range(100)] for a in range(0, 60_000, 100)])
    occurrences = Occurrences.of(row_index_of(corpus), corpus, keep=str.isalnum)
    assert len(occurrences.by_sentence.rows) == 30_000
    store = calibrated(MemoryStore(layers), occurrences, Standardize)
    monkeypatch.setattr("ctxexp.transforms.CHUNK_BYTES", 4 * 64 * 1000)
    tracemalloc.start()
    try:
        store.layer(0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.4 * layers.nbytes


def faulty(**members: Any) -> type[Center]:
    return type("Faulty", (Center,), members)


def _raise(self: object, x: np.ndarray) -> None:
    raise ValueError("boom")


def _refuse(self: object, x: np.ndarray) -> None:
    raise CtxexpError("no")


def _in_place(self: Center, x: np.ndarray) -> np.ndarray:
    x -= 1
    return x


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (dict, r"transform 'mine': expected a ctxexp.Transform, got dict"),
        (faulty(fit=_raise), r"transform 'mine' failed in fit\(\) at layer 0: ValueError: boom"),
        (faulty(apply=_refuse), r"transform 'mine', apply\(\) at layer 0: no"),
        (faulty(apply=lambda self, x: x - self.mean), r"expected a float32 array of shape \(\d+, 6\), got float64"),
        (faulty(apply=lambda self, x: x * np.float32(np.nan)), r"gave NaN or infinite values; does it divide by"),
        (faulty(width=3), r"failed in width\(\) at 6 columns: TypeError: 'int' object is not callable"),
        (faulty(apply=_in_place), r"failed in apply\(\) at layer 0: ValueError: .*read-only"),
    ],
)
def test_messages(factory: Callable[[], Any], message: str) -> None:
    space, occurrences = random_space()
    with pytest.raises(TransformError, match=message):
        calibrated(space, occurrences, factory, name="mine").layer(0)
