"""The arithmetic of a check: how far vectors of the same texts lie apart, which rounding does that, which neighbours
change, and the causes that show in vectors alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

SAME = 5e-5  # of a vector's length: kernels, threads and batches of float32 differ by less, storing in float16 by more
GRADES = {"float16": 1.2e-3, "bfloat16": 2.5e-2, "8bit": 0.1, "4bit": 0.35}  # of a vector's length, at most
UNEVEN = 12.0  # times the median row's error: a row's rounding, at most
NEAREST = 10
RESAMPLES = 1000
MOST_TEXTS = 500  # of which all pairs are looked at


class Explanation(NamedTuple):
    """Vectors (n, dim) that a cause would give in place of the reference's; `detail` says it in words."""

    cause: str
    detail: str
    vectors: np.ndarray


class Share(NamedTuple):
    """A share or a number with its 95% interval; `n` are the texts behind it."""

    value: float
    low: float
    high: float
    n: int


def unit(x: np.ndarray) -> np.ndarray:
    """Rows (n, dim) at length 1, in float64; zeros stay."""
    x = np.asarray(x, np.float64)
    lengths = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.where(lengths > 0, lengths, 1)


def row_errors(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) distance of each row of b from a's, in lengths of a's; of a row of zeros in lengths of b's.

    Example:
        >>> row_errors(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[3.0, 4.5], [0.0, 2.0]])).tolist()
        [0.1, 1.0]
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    lengths = np.linalg.norm(a, axis=-1)
    lengths = np.where(lengths > 0, lengths, np.linalg.norm(b, axis=-1))
    return np.asarray(np.linalg.norm(b - a, axis=-1) / np.where(lengths > 0, lengths, 1))


def root_mean_square(x: np.ndarray) -> float:
    """Of all numbers."""
    return float(np.sqrt(np.mean(np.square(x))))


def direction_error(a: np.ndarray, b: np.ndarray) -> float:
    """How far directions lie apart, root mean square over rows; infinite for rows of other widths."""
    return root_mean_square(row_errors(unit(a), unit(b))) if a.shape == b.shape else np.inf


def is_even(errors: np.ndarray) -> bool:
    """Whether no row (n,) is much further off than the median one, as rounding leaves them."""
    return bool(errors.max() <= UNEVEN * np.median(errors))


def grade(error: float) -> str:
    """The finest type or weights whose rounding moves vectors so far; empty if none does.

    Example:
        >>> grade(0.004), grade(0.6)
        ('bfloat16', '')
    """
    return next((name for name, most in GRADES.items() if error <= most), "")


def from_vectors(a: np.ndarray, b: np.ndarray) -> Iterator[Explanation]:
    """What the reference's vectors a (n, dim) alone can explain of b (n, columns)."""
    n, (dim, columns) = len(a), (a.shape[1], b.shape[1])
    if columns < dim:
        yield Explanation("dimensions cut", f"the first {columns} of {dim}", a[:, :columns])
        yield Explanation("dimensions cut", f"the last {columns} of {dim}", a[:, -columns:])
    if columns > dim:
        return
    order, places = _match(unit(b.T), unit(a.T))
    if places > 1:  # of one text every order of equal numbers is one
        cut = f"{columns} of {dim}, not in their order" if columns < dim else ""
        yield Explanation("dimensions cut" if cut else "dimensions permuted", cut, a[:, order])
    if columns < dim:
        return
    rows, others = _match(unit(b), unit(a))
    if others > 1:
        yield Explanation("rows swapped", f"{others} of {n} are another text's", a[rows])
    some = slice(MOST_TEXTS)
    cosines = root_mean_square(unit(a[some]) @ unit(a[some]).T - unit(b[some]) @ unit(b[some]).T)
    if n > 2 and cosines < 0.05 * direction_error(a, b):
        left, _, right = np.linalg.svd(np.asarray(a, np.float64).T @ b)
        yield Explanation("rotated", "lengths and cosines are what they were", a @ (left @ right))


def _match(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, int]:
    """(n,) the row of y that each row of x is most like, its own where that is as like; and how many are another's."""
    products = x @ y.T
    best = products.argmax(axis=1)
    own = np.arange(len(x))
    is_own = products[own, own] >= products[own, best] - 1e-9
    best[is_own] = own[is_own]
    return best, int((best != own).sum())


def changed_neighbours(
    a: np.ndarray, b: np.ndarray, queries: tuple[np.ndarray, np.ndarray] | None = None, seed: int = 0
) -> Share | None:
    """The share of each text's ten nearest by cosine that others replace, over texts, or over queries among texts.

    Args:
        a: Vectors of the texts by the reference (n, dim).
        b: By the candidate (n, columns).
        queries: Vectors of the queries by both.
        seed: Of the resamples of texts behind the interval.

    Returns:
        The share; of fewer than 31 texts of a third as many neighbours; None of fewer than six.
    """
    n = len(a)
    k = min(NEAREST, n // 3)
    if k < 2:
        return None
    x, y = (unit(a), unit(b)) if queries is None else (unit(queries[0]), unit(queries[1]))
    changed = np.empty(len(x))
    documents = unit(a), unit(b)
    for start in range(0, len(x), MOST_TEXTS):
        part = slice(start, start + MOST_TEXTS)
        of_a, of_b = x[part] @ documents[0].T, y[part] @ documents[1].T
        if queries is None:  # a text is no neighbour of itself
            own = np.arange(len(of_a)), np.arange(start, start + len(of_a))
            of_a[own] = of_b[own] = -np.inf
        nearest = np.argpartition(-of_b, k - 1, axis=1)[:, :k]
        least = -np.partition(-of_a, k - 1, axis=1)[:, k - 1 : k]
        # as near as the last of the ten is no change: equal texts have no order
        changed[part] = (np.take_along_axis(of_a, nearest, axis=1) < least - 1e-6).mean(axis=1)
    rng = np.random.default_rng(seed)
    means = [changed[rng.integers(len(changed), size=len(changed))].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, [0.025, 0.975])
    return Share(float(changed.mean()), float(low), float(high), len(changed))
