"""Second moments and principal directions of a layer, in float64 and by chunks, for the closed-form transforms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ctxexp.errors import ConfigError, TransformError
from ctxexp.transforms.center import CHUNK

ROUNDING = float(np.finfo(np.float32).eps) ** 2  # bound on the variance from rounding to float32, over the mean square


def covariance(x: np.ndarray, mean: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """Covariance (d, d) float64 of x, or of the named rows, about `mean`: sums over n rows divided by n (ddof 0)."""
    total = np.zeros((x.shape[1], x.shape[1]))
    n = len(x) if rows is None else len(rows)
    for at in range(0, n, CHUNK):
        chunk = x[at : at + CHUNK] if rows is None else x[rows[at : at + CHUNK]]
        centred = chunk - mean
        total += centred.T @ centred
    return total / n


def principal_directions(cov: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variances (r,) in descending order and principal directions (d, r) of a covariance.

    Only directions that have variance: more than float64 resolves beside the largest, and more than `noise` (d,), each
    column's variance from its storage, makes along them. The entry of largest size in each direction is positive, so
    that the result doesn't depend on the order in which the rows were summed.
    """
    values, vectors = np.linalg.eigh(cov)
    values, vectors = values[::-1], vectors[:, ::-1]
    least = max(float(values[0]), 0.0) * len(cov) * float(np.finfo(np.float64).eps)
    keep = values > np.maximum(least, noise @ vectors**2)
    values, vectors = values[keep], vectors[:, keep]
    largest = np.abs(vectors).argmax(axis=0)
    return values, vectors * np.where(vectors[largest, np.arange(len(values))] < 0, -1.0, 1.0)


def rounding_variance(cov: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Variance (d,) that float32 storage may have made in each column of rows of this mean and covariance."""
    result: np.ndarray = ROUNDING * (np.diag(cov) + mean**2)
    return result


def n_directions(given: int | None, d: int, columns_each: int) -> int:
    """The number of directions to remove from d columns: `given`, else one for every `columns_each` columns (rounded,
    at least 1 where d allows it)."""
    if given is None:
        return min(max(1, int(d / columns_each + 0.5)), d - 1)
    return given


def check_int(name: str, value: int | None, *, least: int) -> None:
    """Raise ConfigError unless `value` is null or an integer of at least `least`."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise ConfigError(f"{name}={value!r}: expected null or a whole number of at least {least}")


def check_fewer_than_columns(name: str, k: int, d: int) -> None:
    """Raise TransformError if removing k directions from d columns leaves nothing."""
    if k >= d > 0 and k > 0:
        raise TransformError(f"{name}={k} of {d} columns would leave nothing; choose {name} below {d}")


def by_chunks(x: np.ndarray, width: int, function: Callable[[np.ndarray], np.ndarray], step: int = CHUNK) -> np.ndarray:
    """`function` of each chunk of rows, (n, width) float32; only `step` rows are widened to float64 at a time."""
    out = np.empty((len(x), width), np.float32)
    for at in range(0, len(x), step):
        out[at : at + step] = function(x[at : at + step])
    return out
