"""The contract of transforms, and a store seen through one: each layer's space is calibrated before any metric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import numpy as np

from ctxexp.errors import TransformError, plugin_call
from ctxexp.maths.spectra import CHUNK
from ctxexp.occurrences import Layers, Occurrences, read_only

if TYPE_CHECKING:
    import pandas as pd

CHUNK_BYTES = 16 << 20  # rows that are transformed at a time

T = TypeVar("T")
Record = Mapping[str, Sequence[object]]
"""The curves that a fit leaves to look at, such as its loss: columns of equal length by name."""


class Transform(ABC):
    """A calibration of one layer's space; one instance per layer.

    `fit` sees all measured rows of the layer and returns the fitted transform (itself, usually); `apply` maps rows to
    as many rows of the same width. Each row is mapped by itself: `apply` is called with the rows in pieces, and the
    pieces may have any size. Both get float32 and leave it as it is; statistics belong in float64.

    One that can't be fitted on the rows at hand refuses them with a TransformError.

    Example:
        >>> class Center(Transform):
        ...     def fit(self, x):
        ...         self.mean = x.mean(axis=0, dtype=np.float64)
        ...         return self
        ...     def apply(self, x):
        ...         return (x - self.mean).astype(np.float32)
        >>> x = np.array([[0.0, 1.0], [2.0, 3.0]], np.float32)
        >>> Center().fit(x).apply(x).tolist()
        [[-1.0, -1.0], [1.0, 1.0]]
    """

    identity: bool = False  # whether it leaves every row as it is: it is then never called
    needs_fit: bool = True  # whether it takes anything from the rows that it is fitted on

    @abstractmethod
    def fit(self, x: np.ndarray) -> Self:
        """Fit the transform on all measured rows of a layer.

        Args:
            x: Rows (n, d) float32, read-only.

        Returns:
            The fitted transform, usually itself.

        Raises:
            TransformError: It can't be fitted on these rows.
        """

    @abstractmethod
    def apply(self, x: np.ndarray) -> np.ndarray:
        """Map rows, each by itself.

        Args:
            x: Rows (n, d) float32, read-only; n may be anything, 0 too.

        Returns:
            New rows (n, width(d)) float32.
        """

    def width(self, dim: int) -> int:
        """The number of columns that `apply` returns; asked before anything is fitted.

        Args:
            dim: The number of columns that it gets.

        Returns:
            1 to `dim`.
        """
        return dim

    def by_chunks(self, x: np.ndarray, function: Callable[[np.ndarray], np.ndarray], step: int = CHUNK) -> np.ndarray:
        """Map rows by a function of float64, only `step` of them at a time: what `apply` may be.

        Args:
            x: Rows (n, d) float32.
            function: The new rows (m, width(d)) of m rows.
            step: How many rows are widened to float64 at a time.

        Returns:
            New rows (n, width(d)) float32.
        """
        out = np.empty((len(x), self.width(x.shape[1])), np.float32)
        for at in range(0, len(x), step):
            out[at : at + step] = function(x[at : at + step])
        return out

    def record(self) -> Record:
        """A record of the fit, such as its loss by step.

        Returns:
            Columns of equal length by name; empty for none.
        """
        return {}


class FitText(Protocol):
    """Text that a transform may be fitted on: its rows, layer by layer."""

    def layer(self, i: int) -> np.ndarray: ...  # (n, dim) float32, measured rows only


def transform_layers(
    store: Layers,
    occurrences: Occurrences,
    calibration: Calibration,
    *,
    text: FitText | None = None,
) -> Layers:
    """The store with every layer transformed, fitted anew per layer; the store itself if the transform is `none`.

    The fit sees the rows of `text`; without it, the store's own measured rows (transductive). Raises TransformError,
    naming transform and layer, if what the factory builds breaks the contract.
    """
    return store if calibration.identity else TransformedLayers(store, occurrences, calibration, text)


class Calibration:
    """A transform as its contract has it: fitted on lent rows, applied in pieces of bounded size, its results checked,
    whatever it raises named as its own."""

    def __init__(self, factory: Callable[[], Transform], name: str = "transform") -> None:
        self.factory, self.name = factory, name
        prototype: object = factory()  # a stranger's may build anything
        if not isinstance(prototype, Transform):
            raise TransformError(f"transform {name!r}: expected a ctxexp.Transform, got {type(prototype).__name__}")
        self.prototype = prototype
        self.identity, self.needs_fit = prototype.identity, prototype.needs_fit and not prototype.identity
        self.records: dict[str, Record] = {}  # of the fits, by where

    def width(self, dim: int) -> int:
        """Columns of what the transform makes of rows of `dim` columns."""
        columns: object = self._call(f"{dim} columns", "width()", lambda: self.prototype.width(dim))
        if not isinstance(columns, int) or isinstance(columns, bool) or not 0 < columns <= dim:
            raise TransformError(
                f"transform {self.name!r}: width({dim}) gave {columns!r}; expected how many columns apply() returns, "
                f"1 to {dim}"
            )
        return columns

    def fit(self, x: np.ndarray, where: str) -> Transform:
        """A new transform, fitted on x (n, d); `where` (`layer 3`) is for messages."""
        fitted: object = self._call(where, "fit()", lambda: self.factory().fit(read_only(x)))
        if not isinstance(fitted, Transform):
            raise TransformError(
                f"transform {self.name!r}: fit() gave {type(fitted).__name__} at {where}; end it with `return self`"
            )
        if columns := self._call(where, "record()", fitted.record):
            self.records[where] = columns
            if len({len(column) for column in columns.values()}) > 1:
                raise TransformError(f"transform {self.name!r}: record() at {where} gave columns of different lengths")
        return fitted

    def apply(self, fitted: Transform, x: np.ndarray, where: str, chunk: int | None = None) -> np.ndarray:
        """Put x (n, d) float32 through the fitted transform, in place, `chunk` rows at a time.

        Returns the view of x that holds the result: all its columns, or the first where the transform returns fewer,
        behind which x is left with zeros (which no length or cosine sees).
        """
        width = self.width(x.shape[1])
        for a, b in chunks(len(x), chunk or chunk_rows(x.shape[1])):
            y = self._call(where, "apply()", partial(fitted.apply, read_only(x[a:b])))
            x[a:b, :width] = self._checked(where, (b - a, width), y)
        x[:, width:] = 0
        return x[:, :width]

    def _call(self, at: str, what: str, call: Callable[[], T]) -> T:
        with plugin_call("transform", self.name, f"failed in {what} at {at}", within=f", {what} at {at}"):
            return call()

    def _checked(self, at: str, shape: tuple[int, int], y: object) -> np.ndarray:
        where = f"transform {self.name!r}, apply() at {at}"
        if not isinstance(y, np.ndarray) or y.shape != shape or y.dtype != np.float32:
            got = f"{y.dtype} {y.shape}" if isinstance(y, np.ndarray) else type(y).__name__
            raise TransformError(f"{where}: expected a float32 array of shape {shape}, got {got}")
        if not np.isfinite(y).all():
            raise TransformError(f"{where} gave NaN or infinite values; does it divide by a spread of zero?")
        return y


def fit_table(recorded: Mapping[str, Mapping[str, Record]]) -> pd.DataFrame | None:
    """A table of the records of a run's fits, or None if there are none.

    Its first columns are `over` (words or sentences) and `at` (`layer 3`, or a mix).
    """
    columns: dict[str, list[object]] = {}
    done = 0
    for over, records in recorded.items():
        for at, record in records.items():
            n = len(next(iter(record.values()), ()))
            added = {"over": [over] * n, "at": [at] * n, **record}
            for name in {**columns, **added}:
                columns.setdefault(name, [None] * done).extend(added.get(name, [None] * n))
            done += n
    if not done:
        return None
    import pandas as pd

    return pd.DataFrame(columns)


class TransformedLayers:
    """Layers of a store after the transform: `layer(i)` is a (n_rows, dim) float32 array, whose rows that are not
    measured hold zeros. One layer and a piece of bounded size are in memory at a time."""

    def __init__(
        self,
        store: Layers,
        occurrences: Occurrences,
        calibration: Calibration,
        text: FitText | None = None,
    ) -> None:
        self.store, self.calibration, self.text = store, calibration, text
        self.n_layers, self.layer_numbers = store.n_layers, store.layer_numbers
        self.dim = self.calibration.width(store.dim)
        self.rows = occurrences.rows
        of_text = np.isin(self.rows, occurrences.by_sentence.rows)  # all, but in a bounded corpus
        self.of_text = None if of_text.all() else of_text
        self.chunk = chunk_rows(store.dim)

    def layer(self, i: int) -> np.ndarray:
        where = f"layer {i}"
        fitted = None if self.text is None else self.calibration.fit(self.text.layer(i), where)
        vectors, rows = self.store.layer(i), self.rows
        out = np.zeros((len(vectors), self.store.dim), np.float32)
        x = out[: len(rows)]  # the measured rows lie in front until they are moved to their places
        for a, b in chunks(len(rows), self.chunk):
            x[a:b] = vectors[rows[a:b]]
        del vectors
        if fitted is None:
            fitted = self.calibration.fit(x if self.of_text is None else x[self.of_text], where)
        self.calibration.apply(fitted, x, where, self.chunk)
        if len(rows) < len(out):
            for a, b in reversed(list(chunks(len(rows), self.chunk))):  # from behind: row k goes to k or after
                block = x[a:b].copy()
                x[a:b] = 0
                out[rows[a:b]] = block
        return np.ascontiguousarray(out[:, : self.dim])


class MeasuredRows:
    """The measured rows of a store, each once: what a transform is fitted on where that is another text."""

    def __init__(self, store: Layers, occurrences: Occurrences) -> None:
        self.store, self.rows = store, np.unique(occurrences.by_sentence.rows)

    def layer(self, i: int) -> np.ndarray:
        return np.asarray(self.store.layer(i)[self.rows], np.float32)  # (n, dim)


def chunk_rows(dim: int) -> int:
    """How many float32 rows are transformed at a time."""
    return max(1, CHUNK_BYTES // (4 * dim))


def chunks(n: int, chunk: int) -> Iterator[tuple[int, int]]:
    """Bounds (a, b) of n rows in pieces of at most `chunk`."""
    for a in range(0, n, chunk):
        yield a, min(a + chunk, n)
