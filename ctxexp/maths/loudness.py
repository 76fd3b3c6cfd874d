"""Rows at one scale: about their mean, with loud directions scaled down, at norm 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ctxexp.maths.spectra import directions_of, rounding_variance

CUT = 0.05  # of the variance that a direction may hold
CACHED = 512  # rows at a time, which a processor's cache holds
DEAD = 1e-4  # of the median deviation of dimensions, below which one is constant


@dataclass(frozen=True)
class LayerScale:
    """The scale of a layer: its rows' mean, and the directions of their variance."""

    mean: np.ndarray  # (d,)
    variances: np.ndarray  # (r,) descending
    directions: np.ndarray  # (d, r)

    @classmethod
    def of(cls, x: np.ndarray) -> LayerScale:
        """That of the rows of x (n, d)."""
        centre = _any_centre(x)
        return cls._of(centre, *_moments(x, centre))

    @classmethod
    def of_some(cls, x: np.ndarray, which: np.ndarray) -> tuple[LayerScale, LayerScale]:
        """That of the rows of x (n, d), and that of those which `which` (n,) bool names, in one pass."""
        centre = _any_centre(x)
        n, total, squares = _moments(x, centre)
        m, rest, others = _moments(x[~which], centre)
        return cls._of(centre, n, total, squares), cls._of(centre, n - m, total - rest, squares - others)

    @classmethod
    def _of(cls, centre: np.ndarray, n: float, total: np.ndarray, squares: np.ndarray) -> LayerScale:
        """From sums about a centre (d,): of so many rows, (d,), of their products (d, d)."""
        shift = total / max(n, 1.0)
        cov, about = squares / max(n, 1.0) - np.outer(shift, shift), centre + shift
        return cls(about, *directions_of(cov, rounding_variance(cov, about)))

    @property
    def loudest(self) -> float:
        """The share of the variance that one direction holds, in [0, 1]; NaN where nothing varies."""
        return float(self.variances[0] / self.variances.sum()) if len(self.variances) else float("nan")

    def normalized(self, x: np.ndarray, cut: float = CUT) -> np.ndarray:
        """The rows of x (n, d) about the mean, at norm 1, float32; directions that hold more than `cut` of the variance
        are scaled down until each holds that share of what is left; at 0 those that hold more than `CUT` are left out.
        NaN for a row without a direction."""
        factors = cut_factors(self.variances, cut or CUT) * (cut > 0)
        if len(factors) == 1 < len(self.variances):
            factors = np.append(factors, 1.0)  # a product with two columns is quicker than with one
        v = np.ascontiguousarray(self.directions[:, : len(factors)], np.float32)
        removed, mean = (v * (1 - factors).astype(np.float32)).T, self.mean.astype(np.float32)
        result = np.empty(x.shape, np.float32)
        for at in range(0, len(x), CACHED):
            y = x[at : at + CACHED] - mean
            if len(factors):
                y -= (y @ v) @ removed
            unit_rows(y, out=result[at : at + CACHED])
        return result


def _any_centre(x: np.ndarray) -> np.ndarray:
    """(d,) about where the rows lie: sums of differences to it are exact enough."""
    return x[:CACHED].mean(axis=0, dtype=np.float64)


def _moments(x: np.ndarray, centre: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """How many rows there are, the sum of their differences to the centre (d,), that of their products (d, d)."""
    c = centre.astype(x.dtype)
    total, squares = np.zeros(len(c)), np.zeros((len(c), len(c)))
    for at in range(0, len(x), CACHED):
        y = x[at : at + CACHED] - c
        total += y.sum(axis=0, dtype=np.float64)
        squares += y.T @ y
    return float(len(x)), total, squares


def cut_factors(variances: np.ndarray, cut: float) -> np.ndarray:
    """The factors (k,) of the first k directions, of these variances in descending order (r,), after which none holds
    more than `cut` of the variance. Where there are too few directions for that, all come to hold the same.

    Example:
        >>> cut_factors(np.array([8.0] + [0.25] * 36), 0.1).round(3).tolist()
        [0.354]
    """
    if len(variances) * cut <= 1:
        return np.sqrt(variances[-1:] / variances)
    rest, k = variances.sum(), 0
    while variances[k] * (1 - cut * k) > cut * rest:
        rest, k = rest - variances[k], k + 1
    return np.sqrt(cut * rest / (1 - cut * k) / variances[:k])


def scaled_by_dimension(x: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The rows of x (n, d) about their mean, each dimension at standard deviation 1 within places, at norm 1, float32;
    dimensions that hardly vary are 0."""
    from scipy.sparse import csr_array

    y = x - _any_centre(x).astype(np.float32)
    _, of_row, counts = np.unique(place, return_inverse=True, return_counts=True)
    means = csr_array((1 / counts[of_row], (of_row, np.arange(len(y))))) @ y  # (places, d)
    shift = counts @ means / len(y)
    means -= shift
    parts = [y[at : at + CACHED] for at in range(0, len(y), CACHED)]
    squares = np.zeros(y.shape[1])
    for part in parts:
        part -= shift.astype(np.float32)
        squares += np.einsum("ij,ij->j", part, part)
    deviation = np.sqrt(np.maximum((squares - counts @ np.square(means)) / len(y), 0))
    varies = deviation > DEAD * np.median(deviation)
    factors = np.where(varies, 1 / np.where(varies, deviation, 1), 0).astype(np.float32)
    for part in parts:
        part *= factors
        unit_rows(part, out=part)
    return y


def unit_rows(y: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The rows of y at norm 1; NaN for one of zeros."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.divide(y, np.sqrt(np.vecdot(y, y))[:, None], out=out)
