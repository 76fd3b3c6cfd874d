"""Shares of words or tasks, with their intervals."""

from __future__ import annotations

import numpy as np

from ctxexp_papers.claims.spans import Z, widening


def wilson(count: float, n: int, *, ways: int = 1) -> tuple[float, float]:
    """Wilson's 95% interval of a share, `count` of `n`; of the most extreme of so many (`ways`), by Bonferroni."""
    z = Z * widening(ways)
    p, middle = count / n, 1 + z**2 / n
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    centre = p + z**2 / (2 * n)
    return max(0.0, float((centre - half) / middle)), min(1.0, float((centre + half) / middle))
