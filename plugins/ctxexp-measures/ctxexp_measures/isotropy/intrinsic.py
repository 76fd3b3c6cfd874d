"""Intrinsic dimension of the occurrences, of the manifold on which they lie: by nearest neighbours, and by scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, get_args

import numpy as np
from annotated_types import Ge

from ctxexp_measures.isotropy.sample import Redraws, SampleMetric
from ctxexp_measures.isotropy.spectrum import DIMENSIONS

BLOCK = 512  # rows whose distances to all others are in memory at a time
DISCARD = 0.1  # share of the ratios, the largest, that is left out as in the TwoNN paper: they are the noisiest


class IntrinsicDimension(SampleMetric):
    """Intrinsic dimension of random occurrences by nearest neighbours, in dimensions: TwoNN and maximum likelihood.

    `raw`: TwoNN (Facco, d'Errico, Rodriguez & Laio 2017), from the ratio of the second to the first neighbour's
    distance. `mle`: Levina & Bickel (2004) from `k` neighbours, the inverse estimates averaged over points as MacKay &
    Ghahramani (2005) correct it. Both take distances: squared distances, which some nearest-neighbour libraries return
    and some released code uses, would halve the dimension. Equal vectors say nothing of a manifold: of rows that
    float32 can't tell apart only the first is kept, and `duplicates` counts the others. Both estimates fall short in
    high dimensions (a 50-dimensional Gaussian of 1,000 rows gives about 32, a 768-dimensional one 150).
    """

    name: ClassVar[str] = "intrinsic_dimension"
    title = "Intrinsic dimension"
    reading = DIMENSIONS
    statistics: ClassVar[tuple[str, ...]] = ("raw", "mle", "duplicates")
    invariances = frozenset({"rotation", "scale", "shift", "permutation"})

    def __init__(self, *, k: Annotated[int, Ge(2)] = 20, redraws: Redraws = 0) -> None:
        super().__init__(redraws=redraws)
        self.k = k
        self.definition = f"TwoNN of random occurrences (Facco et al. 2017); mle from {k} neighbours (Levina & Bickel)"

    def values(self, x: np.ndarray) -> dict[str, float]:
        """raw (TwoNN), NaN of fewer than three distinct rows; mle, NaN of fewer than k + 1; duplicates; n distinct
        rows."""
        rows = x[is_distinct(x)]
        statistics = {"n": float(len(rows)), "duplicates": float(len(x) - len(rows))}
        if len(rows) > 2:
            distances = neighbour_distances(rows, min(self.k, len(rows) - 1))
            statistics["raw"] = two_nn(distances)
            if distances.shape[1] == self.k:
                statistics["mle"] = mle(distances)
        return statistics


def neighbour_distances(x: np.ndarray, k: int) -> np.ndarray:
    """Euclidean distances (not squared) of each row of `x` (n, d) to its k nearest others, ascending: (n, k)."""
    result = np.empty((len(x), k))
    for at, squares in _squared_distances(x):
        rows = np.arange(len(squares))
        squares[rows, at + rows] = np.inf  # not itself
        result[at : at + len(squares)] = np.sort(np.partition(squares, k - 1, axis=1)[:, :k], axis=1)
    return np.sqrt(result)


def two_nn(distances: np.ndarray) -> float:
    """TwoNN from neighbours' distances (n, >= 2): the slope through the origin of -log(1 - F) on log(r2 / r1)."""
    log_ratio = np.sort(np.log(distances[:, 1] / distances[:, 0]))
    n = len(log_ratio)
    part = slice(0, int(np.floor(n * (1 - DISCARD))))
    y = -np.log1p(-np.arange(1, n + 1)[part] / n)
    along = log_ratio[part]
    total = float(along @ along)
    return float(along @ y) / total if total > 0 else float("nan")


def mle(distances: np.ndarray) -> float:
    """Maximum likelihood from neighbours' distances (n, k), ascending: the inverse of the mean inverse estimate."""
    inverse = np.log(distances[:, -1:] / distances[:, :-1]).mean(axis=1)  # 1 / m_k(x_i): k - 1 terms
    total = float(inverse.mean())
    return 1.0 / total if total > 0 else float("nan")


def is_distinct(x: np.ndarray) -> np.ndarray:
    """Mask (n,) of the rows of `x` (n, d) that lie further than float32's rounding from every row before them."""
    keep = np.ones(len(x), dtype=bool)
    tolerance = (2 * np.finfo(np.float32).eps) ** 2 * (x**2).sum(axis=1)  # (n,), squared distances
    for at, squares in _squared_distances(x):
        for i in np.nonzero((squares <= tolerance[at : at + len(squares), None]).sum(axis=1) > 1)[0]:
            keep[at + i] = not ((squares[i, : at + i] <= tolerance[at + i]) & keep[: at + i]).any()
    return keep


def _squared_distances(x: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, squared distances (rows, n)) of blocks of rows to all rows; 0 where rounding would give less."""
    y = x - x.mean(axis=0)  # distances stay, cancellation goes
    sizes = (y**2).sum(axis=1)
    for at in range(0, len(y), BLOCK):
        block = y[at : at + BLOCK]
        yield at, np.maximum(sizes[at : at + len(block), None] + sizes - 2 * block @ y.T, 0)


Scale = Literal[1, 2, 4, 8, 16, 32, 64]  # n1; n2 is twice as many, as in the paper
SCALES: tuple[Scale, ...] = get_args(Scale)
STEPS = 100  # halvings of the bracket at the most: more than a double has bits


class Gride(SampleMetric):
    """Intrinsic dimension of random occurrences at several scales, in dimensions (Denti, Doimo, Laio & Mira 2022).

    Scale n1 is the ratio of the distance of neighbour 2 n1 to that of neighbour n1, and the dimension under which all
    rows' ratios are likeliest. `scale_1`, `scale_2` to `scale_64` are those dimensions and `raw` that of `n1`; `radius`
    is the mean distance of neighbour 2 n1, the length at which `raw` holds. Scale 1 is TwoNN by maximum likelihood and
    knows the nearest neighbours alone: noise in all dimensions, however small, is a high dimension there, and leaves
    the larger scales to the manifold. Where neighbouring scales agree the dimension is one of the data; where they go
    on falling or rising it is one of the scale. Equal rows are left out and counted, as by `intrinsic_dimension`. Falls
    short in high dimensions: the ratios of 1,000 rows of a 50-dimensional Gaussian give about 23 at scale 16.
    """

    name: ClassVar[str] = "gride"
    title = "Intrinsic dimension by scale"
    reading = DIMENSIONS
    statistics: ClassVar[tuple[str, ...]] = ("raw", *(f"scale_{n1}" for n1 in SCALES), "radius", "duplicates")
    invariances = frozenset({"rotation", "shift", "permutation"})

    def __init__(self, *, n1: Scale = 16, redraws: Redraws = 0) -> None:
        super().__init__(redraws=redraws)
        self.n1 = n1
        self.definition = (
            f"GRIDE of random occurrences (Denti et al. 2022): raw from the distances of neighbours {n1} and {2 * n1}"
        )

    def values(self, x: np.ndarray) -> dict[str, float]:
        """scale_1 to scale_64, NaN of fewer than 2 n1 + 1 distinct rows; raw, that of n1; radius; duplicates; n
        distinct rows."""
        rows = x[is_distinct(x)]
        statistics = {"n": float(len(rows)), "duplicates": float(len(x) - len(rows))}
        scales = [n1 for n1 in SCALES if 2 * n1 < len(rows)]
        if scales:
            distances = neighbour_distances(rows, 2 * scales[-1])
            statistics |= {f"scale_{n1}": gride(distances, n1) for n1 in scales}
        if self.n1 in scales:
            statistics |= {
                "raw": statistics[f"scale_{self.n1}"],
                "radius": float(distances[:, 2 * self.n1 - 1].mean()),
            }
        return statistics


def gride(distances: np.ndarray, n1: int) -> float:
    """Dimension d under which the ratios mu of the distances of neighbours 2 n1 and n1 are likeliest.

    The density of mu is d (mu^d - 1)^(n1 - 1) / (B(n1, n1) mu^(d (2 n1 - 1) + 1)) (Denti et al. 2022, with n2 = 2 n1);
    mu^-d is then distributed as Beta(n1, n1). The score falls with d and its zero lies between n / (n1 S) and n / S, S
    being the sum of log mu, so that halving this bracket finds the one maximum.

    Args:
        distances: of n rows to their neighbours (n, >= 2 n1), ascending, positive, not squared.
        n1: the nearer neighbour, 1 or more; 1 is TwoNN by maximum likelihood, n / S.

    Returns:
        The dimension, above 0; NaN where all ratios are 1.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).uniform(size=(1000, 2))
        >>> distances = neighbour_distances(x, 16)
        >>> 1.8 < gride(distances, 8) < 2.2
        True
    """
    log_mu = np.log(distances[:, 2 * n1 - 1] / distances[:, n1 - 1])
    n, total = len(log_mu), float(log_mu.sum())
    if not total > 0:
        return float("nan")
    low, high = n / (n1 * total), n / total
    for _ in range(STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if _score(middle, log_mu, n1) > 0 else (low, middle)
    return (low + high) / 2


def _score(d: float, log_mu: np.ndarray, n1: int) -> float:
    """d times the derivative of the log-likelihood at d: n + (n1 - 1) sum y / (e^y - 1) - n1 sum y, y = d log mu."""
    y = d * log_mu
    ratio = np.divide(y * np.exp(-y), -np.expm1(-y), out=np.ones_like(y), where=y > 0)  # 1 at y = 0; no overflow
    return float(len(y) + (n1 - 1) * ratio.sum() - n1 * y.sum())
