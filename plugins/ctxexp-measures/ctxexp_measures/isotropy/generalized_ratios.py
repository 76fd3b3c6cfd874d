"""Intrinsic dimension by scale: the generalized ratios estimator (GRIDE)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ctxexp import Reading
from ctxexp.errors import MetricError
from ctxexp_measures.isotropy.intrinsic import is_distinct, neighbour_distances
from ctxexp_measures.isotropy.sample import SampleMetric

SCALES = (1, 2, 4, 8, 16, 32, 64)  # n1; n2 is twice as many, as in the paper
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
    reading = Reading(
        unit="dimensions",
        subject="word vectors",
        lower="spread over fewer dimensions",
        higher="spread over more dimensions",
    )
    statistics: ClassVar[tuple[str, ...]] = ("raw", *(f"scale_{n1}" for n1 in SCALES), "radius", "duplicates")
    invariances = frozenset({"rotation", "shift", "permutation"})

    def __init__(self, *, n1: int = 16, redraws: int = 0) -> None:
        super().__init__(redraws=redraws)
        if n1 not in SCALES:
            raise MetricError(f"gride n1={n1}: expected one of {', '.join(map(str, SCALES))}")
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

    Raises:
        MetricError: n1 below 1, or fewer than 2 n1 neighbours.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).uniform(size=(1000, 2))
        >>> distances = neighbour_distances(x, 16)
        >>> 1.8 < gride(distances, 8) < 2.2
        True
    """
    if n1 < 1 or distances.shape[1] < 2 * n1:
        raise MetricError(f"gride n1={n1}: expected 1 or more, and 2 n1 neighbours (there are {distances.shape[1]})")
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
