"""What a transform must offer, and a store seen through one: each layer's space is calibrated before any metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol, Self

import numpy as np

from ctxexp.errors import CtxexpError, TransformError
from ctxexp.occurrences import Occurrences

CHUNK_BYTES = 16 << 20  # rows that are transformed at a time


class Transform(Protocol):
    """A calibration of one layer's space; one instance a layer.

    `fit` sees all measured rows of the layer and returns the fitted transform (itself, usually); `apply` maps rows to
    as many rows of the same width. Each row is mapped by itself: `apply` is called with the rows in pieces, and the
    pieces may have any size. Both get float32 and leave it as it is; statistics belong in float64.
    """

    def fit(self, x: np.ndarray) -> Self: ...  # (n, d)
    def apply(self, x: np.ndarray) -> np.ndarray: ...  # (n, d) float32 -> (n, d) float32


class Layers(Protocol):
    """The part of a store that is transformed; see `ctxexp.store.Store`."""

    @property
    def n_layers(self) -> int: ...
    @property
    def dim(self) -> int: ...
    def layer(self, i: int) -> np.ndarray: ...  # (n_rows, dim)


def transformed(
    store: Layers, occurrences: Occurrences, factory: Callable[[], Any], *, name: str = "transform"
) -> Layers:
    """The store with every layer transformed, fitted anew per layer; the store itself if the transform is `none`.

    Raises TransformError, naming transform and layer, if what the factory builds breaks the contract.
    """
    probe = factory()
    for method in ("fit", "apply"):
        if not callable(getattr(probe, method, None)):
            raise TransformError(f"transform {name!r}: {type(probe).__name__} has no {method}(x)")
    if getattr(probe, "identity", False):
        return store
    return Transformed(store, occurrences, factory, name)


class Transformed:
    """Layers of a store after the transform: `layer(i)` is a (n_rows, dim) float32 array, whose rows that are not
    measured hold zeros. One layer and a piece of bounded size are in memory at a time."""

    def __init__(self, store: Layers, occurrences: Occurrences, factory: Callable[[], Any], name: str) -> None:
        self.store, self.factory, self.name = store, factory, name
        self.n_layers, self.dim = store.n_layers, store.dim
        self.rows = np.unique(occurrences.by_sentence.rows)  # each measured row once, ascending
        self.chunk = max(1, CHUNK_BYTES // (4 * self.dim))

    def layer(self, i: int) -> np.ndarray:
        vectors, rows = self.store.layer(i), self.rows
        out = np.zeros((len(vectors), self.dim), np.float32)
        x = out[: len(rows)]  # the measured rows lie in front until they are moved to their places
        for a, b in self._pieces():
            x[a:b] = vectors[rows[a:b]]
        del vectors
        fitted = self._call(i, "fit()", lambda: self.factory().fit(_lent(x)))
        if not callable(getattr(fitted, "apply", None)):
            raise TransformError(
                f"transform {self.name!r}: fit() gave {type(fitted).__name__} at layer {i}; end it with `return self`"
            )
        for a, b in self._pieces():
            x[a:b] = self._checked(i, x[a:b], self._call(i, "apply()", partial(fitted.apply, _lent(x[a:b]))))
        if len(rows) < len(out):
            for a, b in reversed(list(self._pieces())):  # from behind: row k goes to a place at or after k
                moved = x[a:b].copy()
                x[a:b] = 0
                out[rows[a:b]] = moved
        return out

    def _pieces(self) -> Iterator[tuple[int, int]]:
        for a in range(0, len(self.rows), self.chunk):
            yield a, min(a + self.chunk, len(self.rows))

    def _call(self, layer: int, what: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except CtxexpError as error:
            raise TransformError(f"transform {self.name!r}, {what} at layer {layer}: {error}") from error
        except Exception as error:  # a stranger's transform may raise anything
            raise TransformError(
                f"transform {self.name!r} failed in {what} at layer {layer}: {type(error).__name__}: {error}"
            ) from error

    def _checked(self, layer: int, x: np.ndarray, y: Any) -> np.ndarray:
        where = f"transform {self.name!r}, apply() at layer {layer}"
        if not isinstance(y, np.ndarray) or y.shape != x.shape or y.dtype != np.float32:
            got = f"{y.dtype} {y.shape}" if isinstance(y, np.ndarray) else type(y).__name__
            raise TransformError(f"{where}: expected a float32 array of shape {x.shape}, got {got}")
        if not np.isfinite(y).all():
            raise TransformError(f"{where} gave NaN or infinite values; does it divide by a spread of zero?")
        return y


def _lent(x: np.ndarray) -> np.ndarray:
    """A view that can't be written to."""
    view = x.view()
    view.flags.writeable = False
    return view
