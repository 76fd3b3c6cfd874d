"""Transforms: each layer's space is calibrated before any metric. The contract, a store seen through one, and those
that ship."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeVar

import numpy as np
from annotated_types import Ge, Le

from ctxexp.errors import TransformError, plugin_call
from ctxexp.maths.spectra import CHUNK, covariance, directions_of, mean, rounding_variance
from ctxexp.occurrences import Layers, Occurrences, read_only

if TYPE_CHECKING:
    import pandas as pd

CHUNK_BYTES = 16 << 20  # rows that are transformed at a time

T = TypeVar("T")
FitRecord = Mapping[str, Sequence[object]]
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

    def record(self) -> FitRecord:
        """A record of the fit, such as its loss by step.

        Returns:
            Columns of equal length by name; empty for none.
        """
        return {}


def transform_layers(
    store: Layers, occurrences: Occurrences, calibration: Calibration, *, text: MeasuredRows | None = None
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
        self.records: dict[str, FitRecord] = {}  # of the fits, by where

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

    def apply(self, fitted: Transform, x: np.ndarray, where: str) -> np.ndarray:
        """Put x (n, d) float32 through the fitted transform, in place, a few rows at a time.

        Returns the view of x that holds the result: all its columns, or the first where the transform returns fewer,
        behind which x is left with zeros (which no length or cosine sees).
        """
        width = self.width(x.shape[1])
        for a, b in chunks(len(x), chunk_rows(x.shape[1])):
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


def fit_table(recorded: Mapping[str, Mapping[str, FitRecord]]) -> pd.DataFrame | None:
    """A table of the records of a run's fits, or None if there are none.

    Its first columns are `over` (words or sentences) and `at` (`layer 3`, or a mix).
    """
    parts = [
        {"over": over, "at": at, **record}
        for over, records in recorded.items()
        for at, record in records.items()
        if any(map(len, record.values()))
    ]
    if not parts:
        return None
    import pandas as pd

    return pd.concat(map(pd.DataFrame, parts), ignore_index=True)


class TransformedLayers:
    """Layers of a store after the transform: `layer(i)` is a (n_rows, dim) float32 array, whose rows that are not
    measured hold zeros. One layer and a piece of bounded size are in memory at a time."""

    def __init__(
        self, store: Layers, occurrences: Occurrences, calibration: Calibration, text: MeasuredRows | None = None
    ) -> None:
        self.store, self.calibration, self.text = store, calibration, text
        self.n_layers, self.layer_numbers = store.n_layers, store.layer_numbers
        self.dim = self.calibration.width(store.dim)
        self.rows = occurrences.rows
        of_text = np.isin(self.rows, occurrences.by_sentence.rows)  # all, but in a bounded corpus
        self.of_text = None if of_text.all() else of_text

    def layer(self, i: int) -> np.ndarray:
        where = f"layer {i}"
        fitted = None if self.text is None else self.calibration.fit(self.text.layer(i), where)
        vectors, rows = self.store.layer(i), self.rows
        out = np.zeros((len(vectors), self.store.dim), np.float32)
        x = out[: len(rows)]  # the measured rows lie in front until they are moved to their places
        chunk = chunk_rows(self.store.dim)
        for a, b in chunks(len(rows), chunk):
            x[a:b] = vectors[rows[a:b]]
        del vectors
        if fitted is None:
            fitted = self.calibration.fit(x if self.of_text is None else x[self.of_text], where)
        self.calibration.apply(fitted, x, where)
        if len(rows) < len(out):
            for a, b in reversed(list(chunks(len(rows), chunk))):  # from behind: row k goes to k or after
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


MAX_CONDITION = 1e6  # ratio of variances above which one pass leaves more than the last digits wrong


class Nothing(Transform):
    """The vectors as they are; costs nothing, since measuring then reads the store itself."""

    identity = True

    def fit(self, x: np.ndarray) -> Self:
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return x


class Center(Transform):
    """The layer's mean over all measured occurrences is subtracted: what remains has mean 0 in every column.

    Removes the common direction that makes unrelated words similar (Mu and Viswanath 2018, step 1 of 2).
    """

    def fit(self, x: np.ndarray) -> Self:
        self.mean = mean(x)
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return (x - self.mean).astype(np.float32)


class Standardize(Transform):
    """Columns at mean 0 and variance 1 over all measured occurrences; a column without variance becomes 0.

    Takes away the few columns of extreme variance that otherwise decide every cosine (Timkey and van Schijndel 2021).
    """

    def fit(self, x: np.ndarray) -> Self:
        self.mean = mean(x)
        squares = np.zeros(x.shape[1])
        for at in range(0, len(x), CHUNK):
            squares += ((x[at : at + CHUNK] - self.mean) ** 2).sum(axis=0)
        spread = np.sqrt(squares / len(x))
        self.factor = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return ((x - self.mean) * self.factor).astype(np.float32)


class UnitNorm(Transform):
    """Rows divided by their length; a row of zeros stays. `centred`: about the mean of the rows that it is fitted on.

    For measures that long rows rule: intra-sentence similarity, shares of variance, CKA, distances. One row of a
    massive activation (Sun et al. 2024) makes nearly all of a mean or a variance; at norm 1 it counts as any other.

    centred: about the layer's mean first
    """

    def __init__(self, *, centred: bool = False) -> None:
        self.centred = self.needs_fit = centred

    def fit(self, x: np.ndarray) -> Self:
        self._mean = mean(x) if self.centred else np.zeros(x.shape[1])
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return self.by_chunks(x, self._normalized)

    def _normalized(self, x: np.ndarray) -> np.ndarray:
        y = x - self._mean
        norm = np.linalg.norm(y, axis=1, keepdims=True)
        return np.divide(y, norm, out=np.zeros_like(y), where=norm > 0)


class AllButTheTop(Transform):
    """The mean is subtracted, then each row's components along the top k principal directions of the layer.

    Mu and Viswanath 2018, Algorithm 1: `x - mean - sum_{i<=k} (u_i . (x - mean)) u_i`. `k` is the number of directions
    REMOVED (that of `whitening` is the number kept): `d / 100` rounded, their rule of thumb (8 of 768 columns), and at
    least 1, unless it is given; `k=0` is `center`. The result has d columns. BERT-flow's table calls this NATSV
    (nulling away the top singular vectors), and SN + NATSV (SN: standard normalization) with `standardize=True`: every
    column is first brought to variance 1. Directions without variance in the fitted rows are not removed.

    Raises TransformError for a k that removes all d directions.

    k: directions to remove; null: d / 100 rounded, at least 1; 0 is center
    standardize: every column at variance 1 first (SN + NATSV)
    """

    def __init__(self, k: Annotated[int, Ge(0)] | None = None, *, standardize: bool = False) -> None:
        self.k, self.standardize = k, standardize

    def fit(self, x: np.ndarray) -> Self:
        d = x.shape[1]
        k = min(max(1, int(d / 100 + 0.5)), d - 1) if self.k is None else self.k
        if k >= d > 0 and k > 0:
            raise TransformError(f"k={k} of {d} columns would leave nothing; choose k below {d}")
        self.mean, self.factor = mean(x), np.ones(d)
        cov = covariance(x, self.mean)
        noise = rounding_variance(cov, self.mean)
        if self.standardize:
            spread = np.sqrt(np.diag(cov))
            self.factor = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
            cov, noise = self.factor[:, None] * cov * self.factor, noise * self.factor**2
        self.variances, directions = directions_of(cov, noise)  # (r,), (d, r)
        self.directions = directions[:, :k]  # (d, k)
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return self.by_chunks(x, self._apply_chunk)

    def _apply_chunk(self, x: np.ndarray) -> np.ndarray:
        y: np.ndarray = (x - self.mean) * self.factor
        y -= (y @ self.directions) @ self.directions.T
        return y


class Whitening(Transform):
    """`(x - mean) U S^(-1/2)` with `U S U^T` the covariance of the fitted rows: their covariance becomes the identity
    (without `k` and `shrinkage`).

    Su et al. 2021 (Whitening Sentence Representations), equations 2-5; the covariance divides by n, as printed (their
    code divides by n - 1: a common factor, which no cosine sees). `k` is the number of strongest directions KEPT (that
    of `all_but_the_top` is the number removed), all if null.

    - `kind="pca"` gives k columns, the components from the strongest direction to the weakest; `kind="zca"` rotates
      them back, `(x - mean) U S^(-1/2) U^T`: d columns, the whitened space nearest to the original. The cosines of the
      two are the same.
    - `shrinkage` s in [0, 1] moves the covariance towards the identity of the same mean variance,
      `(1 - s) C + s (tr C / d) I` (Ledoit and Wolf 2004, their target): weak directions are blown up less. The
      result's covariance is then `S / S'` with S' the shrunk variances, no longer the identity; at 1 only the mean is
      removed and all columns are scaled by one factor.
    - Directions without variance (a constant column, a column that copies another) cannot be brought to variance 1:
      without shrinkage they become 0 in `zca` and come last in `pca`, as columns of zeros.

    n distinct rows span at most n - 1 directions, and whitening n <= d of them would only put them at equal distances:
    without shrinkage, rows of which no more than d are distinct are refused (TransformError), as is k > d.

    k: strongest directions to keep; null: all
    kind: pca: components, strongest first; zca: turned back to the columns that were
    """

    def __init__(
        self,
        k: Annotated[int, Ge(1)] | None = None,
        *,
        shrinkage: Annotated[float, Ge(0), Le(1)] = 0.0,
        kind: Literal["pca", "zca"] = "pca",
    ) -> None:
        self.k, self.shrinkage, self.kind = k, float(shrinkage), kind

    def width(self, dim: int) -> int:
        """Columns of the result: k for `pca`, `dim` for `zca` and where k is null."""
        return dim if self.k is None or self.kind == "zca" else min(self.k, dim)

    def fit(self, x: np.ndarray) -> Self:
        d = x.shape[1]
        if self.k is not None and self.k > d:
            raise TransformError(f"k={self.k} of {d} columns; choose k up to {d}, or null for all")
        if not self.shrinkage and (n := count_distinct(x, d)) <= d:
            raise TransformError(
                f"{len(x)} rows, {n} of them distinct, don't determine the covariance of {d} columns; fit on more than "
                f"{d} distinct rows, set shrinkage above 0 (0.1, say), or take a transform without a covariance inverse"
            )
        self.mean = mean(x)
        cov = covariance(x, self.mean)
        noise = rounding_variance(cov, self.mean)
        if self.shrinkage:
            cov = (1 - self.shrinkage) * cov + self.shrinkage * np.trace(cov) / d * np.eye(d)
            noise = np.zeros(d)
        variances, directions = directions_of(cov, noise)
        self.variances, directions = variances[: self.k], directions[:, : self.k]  # (r,), (d, r)
        matrix = directions / np.sqrt(self.variances)  # (d, r)
        if not self.shrinkage and len(self.variances) and self.variances[0] > MAX_CONDITION * self.variances[-1]:
            matrix = matrix @ _second_pass(x, self.mean, matrix)
        columns = self.width(d)
        if self.kind == "zca":
            matrix = matrix @ directions.T
        self.matrix = np.zeros((d, columns))  # (d, width)
        self.matrix[:, : matrix.shape[1]] = matrix
        return self

    def apply(self, x: np.ndarray) -> np.ndarray:
        return self.by_chunks(x, lambda chunk: (chunk - self.mean) @ self.matrix)


def _second_pass(x: np.ndarray, mean: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The symmetric (r, r) that takes the covariance of the whitened rows from nearly the identity to the identity.

    Weak directions are known from the covariance only up to rounding of the strong ones; after whitening all have the
    same scale.
    """
    total = np.zeros((matrix.shape[1], matrix.shape[1]))
    for at in range(0, len(x), CHUNK):
        y = (x[at : at + CHUNK] - mean) @ matrix
        total += y.T @ y
    values, vectors = np.linalg.eigh(total / len(x))
    return (vectors / np.sqrt(values)) @ vectors.T


def count_distinct(x: np.ndarray, limit: int) -> int:
    """The number of distinct rows of x; counting stops above `limit`."""
    rows: set[bytes] = set()
    for row in x:
        rows.add(row.tobytes())
        if len(rows) > limit:
            break
    return len(rows)
