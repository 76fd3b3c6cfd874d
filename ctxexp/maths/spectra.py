"""Leading eigenvalues of groups' second moments: LAPACK where small, else Lanczos with a proven bound.

No library takes many small matrices at once and stops at the first eigenvalue: this is 2 to 13 times a full solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ctxexp.maths.lanczos import Leading, lanczos

COARSER = 4  # rounding errors of the rows' own precision, in its epsilon, that are no spread: a few steps, each once
FLOAT32 = 16  # likewise in the epsilon of the arithmetic here and in the models: sums of many terms
ROWS = 256  # float32 partial sums run over at most so many rows
SMALL = 16  # up to so many rows or columns LAPACK's eigenvectors beat an iteration
VALUES = 40  # likewise for eigenvalues alone
GRAM = 128  # up to so many rows the (n, n) Gram matrix beats passes over the rows
# Steps of Lanczos iteration after which it is looked whether it is done: few where it starts near the answer.
CHECKS = (3, 4, 5, 6, 8, 11, 15, 20, 28)  # about the origin, from near the mean row
CHECKS_CENTRED = (8, 12, 16, 21, 26, 32)  # about the mean, on the Gram matrix
CHECKS_LARGE = (9, 12, 15, 19, 24, 32, 44, 60, 80)  # about the mean, by passes over the rows


class FirstDirection(NamedTuple):
    """First principal direction v of each group of rows: its eigenvalue and the projections of the rows on it."""

    value: np.ndarray  # (w,) largest eigenvalue of the second moment: the sum of the squared projections
    projections: np.ndarray  # (w, n) v.x_i, or v.c_i of centred rows
    variance: np.ndarray | None = None  # (w,) sum of (v.c_i)^2 about the mean row, of an uncentred direction


class Spread:
    """Second moments of each group about the origin and about its mean, ready for their leading directions.

    Rows are centred BEFORE any product: from products of raw rows, float32 would lose the spread of words whose
    vectors hardly differ. With c_i = x_i - m, the raw second moment is C'C + n m m', the raw Gram matrix CC' + b1' +
    1b' + |m|^2 11' with b = C m, so both problems are solved from the same centred rows. Three ways, by size: LAPACK
    on the smaller of C'C and CC'; Lanczos on CC'; for large groups Lanczos on C'C, which reads the rows as they lie
    and copies none.
    """

    def __init__(self, x: np.ndarray, row_sum: np.ndarray, eps: float) -> None:
        """`x` is (w, n, d), `row_sum` (w, d) float64; `eps` the epsilon of what the rows were computed or stored in."""
        self.x = x
        self.w, self.n, self.d = x.shape
        self.m = (row_sum / self.n).astype(x.dtype)  # (w, d)
        self.mm = np.square(self.m, dtype=np.float64).sum(1)  # (w,) |m|^2
        self.least = min(self.n, self.d)
        self.exact = x.dtype == np.float64 or self.least <= SMALL
        self.dual = self.n <= (self.d if self.exact else GRAM)
        self.c: np.ndarray | None = None  # (w, n, d), only where small
        self.gram, self.b = np.empty(0), np.empty(0)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.dual:
                self.c = x - self.m[:, None]
                self.gram = np.matmul(self.c, self.c.transpose(0, 2, 1))  # (w, n, n)
                self.b = np.matmul(self.c, self.m[..., None])[..., 0]  # (w, n)
                self.centred = np.trace(self.gram, axis1=1, axis2=2, dtype=np.float64)
            else:
                parts = self._chunks(np.arange(self.w))
                self.centred = np.sum([np.vecdot(c, c).sum(1, dtype=np.float64) for c in parts], axis=0)
        self.total = self.centred + self.n * self.mm
        self.ok = np.isfinite(self.total) & (self.total > 0)
        noise = max(FLOAT32 * np.finfo(x.dtype).eps, COARSER * eps) ** 2  # rows that differ by rounding have no spread
        self.centred = np.where(self.ok & (self.centred > noise * self.total), self.centred, np.nan)
        self.total = np.where(self.ok, self.total, np.nan)
        if not self.ok.all():
            self.m[~self.ok], self.mm[~self.ok] = 0, 0
            if self.dual:
                self.gram[~self.ok], self.b[~self.ok] = 0, 0

    def solve_centred(self) -> FirstDirection:
        """The first direction v of the centred rows: largest eigenvalue of C'C, and C v; NaN where not defined."""
        if self.exact or (self.dual and self.n <= VALUES):
            return FirstDirection(*self._exact_centred(np.arange(self.w)))
        if self.dual:
            gram = self.gram
            top = lanczos(lambda v: np.matmul(gram, v[..., None])[..., 0], self._noise(), checks=CHECKS_CENTRED)
            value, converged, projections = top.value, top.converged, top.vector * np.sqrt(top.value)[:, None]
        else:
            top = self._large(self._pass, checks=CHECKS_LARGE)
            value, converged, projections = top.value, top.converged, self._project(top.vector, centred=True)
        if not converged.all():
            rest = np.flatnonzero(~converged)
            value[rest], projections[rest] = self._exact_centred(rest)
        return FirstDirection(value, projections)

    def solve_uncentred(self, *, with_variance: bool = False) -> FirstDirection:
        """The first direction v of the rows: largest eigenvalue of X'X, and X v; NaN where not defined.

        `with_variance`: |C v|^2 too, which takes more steps, since a vector settles later than its value.
        """
        if self.exact:
            value, spread, projections = self._exact_uncentred(np.arange(self.w))
            return FirstDirection(value, projections, spread if with_variance else None)
        if self.dual:
            top = lanczos(self._raw_gram, 1 + 0.2 * self._noise(), checks=CHECKS, vectors=with_variance)
            # X v = sigma u, so C v = sigma (u - mean(u)).
            u = top.vector - top.vector.mean(1, keepdims=True)
            value, spread, converged = top.value, top.value * np.vecdot(u, u), top.converged
            projections = top.vector * np.sqrt(value)[:, None]
        else:

            def raw(i: int, v: np.ndarray) -> np.ndarray:
                m: np.ndarray = self.m[i]
                result: np.ndarray = self._pass(i, v) + m * (m.dtype.type(self.n) * np.vecdot(m, v))
                return result

            top = self._large(raw, checks=CHECKS, mean=True, vectors=with_variance)
            value, converged, spread = top.value, top.converged, np.zeros(self.w)
            projections = self._project(top.vector, centred=False)
            for i in np.flatnonzero(converged & self.ok).tolist() if with_variance else ():
                v = top.vector[i].astype(self.x.dtype)
                spread[i] = np.vecdot(self._pass(i, v), v)
        if not converged.all():
            rest = np.flatnonzero(~converged)
            value[rest], spread[rest], projections[rest] = self._exact_uncentred(rest)
        return FirstDirection(value, projections, spread if with_variance else None)

    def squares(self) -> np.ndarray:
        """|c_i|^2 of each group's rows about their mean: (w, n) float64."""
        if self.dual:
            return np.diagonal(self.gram, axis1=1, axis2=2).astype(np.float64)
        parts = [np.vecdot(c, c) for c in self._chunks(np.arange(self.w))]
        return np.concatenate(parts, axis=1).astype(np.float64)

    def _project(self, v: np.ndarray, *, centred: bool) -> np.ndarray:
        """C v or X v of one vector for each group (w, d): (w, n) float64."""
        v = v.astype(self.x.dtype)
        y = np.matmul(self.x, v[..., None])[..., 0].astype(np.float64)
        result: np.ndarray = y - np.vecdot(self.m, v)[:, None] if centred else y
        return result

    def _raw_gram(self, v: np.ndarray) -> np.ndarray:
        ones = v.sum(-1)
        z: np.ndarray = np.matmul(self.gram, v[..., None])[..., 0] + self.b * ones[:, None]
        z += (np.vecdot(self.b, v) + self.mm.astype(v.dtype) * ones)[:, None]
        return z

    def _large(
        self,
        apply: Callable[[int, np.ndarray], np.ndarray],
        *,
        checks: tuple[int, ...],
        mean: bool = False,
        vectors: bool = False,
    ) -> Leading:
        """Lanczos group by group; `mean` starts near the mean row."""
        start = _generic(self.d, self.x.dtype)
        out = Leading(np.full(self.w, np.nan), np.zeros((self.w, self.d)), ~self.ok)
        for i in np.flatnonzero(self.ok).tolist():
            first = start
            if mean and self.mm[i] > 0:
                first = self.m[i] + start * self.m.dtype.type(0.2 * np.sqrt(self.mm[i] / self.d))
            top = lanczos(lambda v, i=i: apply(i, v[0])[None], first[None], checks=checks, vectors=vectors)  # type: ignore[misc]
            out.value[i], out.vector[i], out.converged[i] = top.value[0], top.vector[0], top.converged[0]
        return out

    def _pass(self, i: int, v: np.ndarray) -> np.ndarray:
        """C'C v for group i, from the rows as they lie: C v = X v - 1 (m.v), C'y = X'y - m (1.y)."""
        x, m = self.x[i], self.m[i]
        shift = m.dot(v)
        if self.n <= 2 * ROWS:
            y = x.dot(v) - shift
            result: np.ndarray = y.dot(x) - m * y.sum()
            return result
        z: np.ndarray = np.zeros(self.d)
        ones = np.float64(0)
        for at in range(0, self.n, 2 * ROWS):
            part = x[at : at + 2 * ROWS]
            y = part.dot(v) - shift
            z += y.dot(part)
            ones += y.sum()
        result = (z - m * ones).astype(v.dtype)
        return result

    def _exact_centred(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moment, b = self._moment(which)
        values, vectors = np.linalg.eigh(moment)
        top = vectors[..., -1]
        if b is not None:
            return values[:, -1], top * np.sqrt(np.maximum(values[:, -1], 0))[:, None]
        return values[:, -1], np.matmul(self.x[which] - self.m[which, None], top[..., None])[..., 0]

    def _exact_uncentred(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        moment, b = self._moment(which)
        if b is not None:
            moment = moment + b[:, :, None] + b[:, None, :] + self.mm[which, None, None]
            values, vectors = np.linalg.eigh(moment)
            u = vectors[..., -1] - vectors[..., -1].mean(-1, keepdims=True)
            return values[:, -1], values[:, -1] * np.vecdot(u, u), vectors[..., -1] * np.sqrt(values[:, -1:])
        m = self.m[which].astype(np.float64)
        values, vectors = np.linalg.eigh(moment + self.n * m[:, :, None] * m[:, None, :])
        v = vectors[..., -1]
        along = np.vecdot(v, np.matmul(moment, v[..., None])[..., 0])
        return values[:, -1], along, np.matmul(self.x[which], v[..., None])[..., 0]

    def _moment(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The smaller of CC' (with b = C m) and C'C (with None), float64, for the groups `which`."""
        if self.dual:
            return self.gram[which].astype(np.float64), self.b[which].astype(np.float64)
        if self.n <= self.d:
            c = self.x[which] - self.m[which, None]
            gram = np.matmul(c, c.transpose(0, 2, 1)).astype(np.float64)
            return gram, np.matmul(c, self.m[which][..., None])[..., 0].astype(np.float64)
        total = np.zeros((len(which), self.d, self.d))
        for c in self._chunks(which):
            total += np.matmul(c.transpose(0, 2, 1), c)
        total[~self.ok[which]] = 0
        return total, None

    def _chunks(self, which: np.ndarray) -> Iterator[np.ndarray]:
        """Centred rows of the groups, ROWS at a time: (len(which), <= ROWS, d)."""
        whole = len(which) == self.w
        for at in range(0, self.n, ROWS):
            part = self.x[:, at : at + ROWS]
            yield (part if whole else part[which]) - self.m[which, None]

    def _noise(self) -> np.ndarray:
        return np.broadcast_to(_generic(self.n, self.x.dtype), (self.w, self.n))


@lru_cache(256)
def _generic(size: int, dtype: np.dtype[np.floating]) -> np.ndarray:
    """A fixed start with a share of every direction, the same for every group of this size."""
    start: np.ndarray = np.random.default_rng(size).standard_normal((size,)).astype(dtype)
    start.flags.writeable = False
    return start
