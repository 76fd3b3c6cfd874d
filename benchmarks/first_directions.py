"""Shares of variance of drawn groups against LAPACK's in float64: `python benchmarks/first_directions.py [GROUPS]`.

Sizes, spectra and means are drawn; one group in twenty is planted: its first direction is across the start that the
iteration took for the same group before, or across its mean. Prints the groups of each kind, the largest relative
error, and how many are beyond 1e-6.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from unittest import mock

import numpy as np
import scipy.sparse.linalg

from ctxexp.maths.geometry import explained_variance


def rows(n: int, d: int, first: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """(n, d) float32 rows of a drawn spectrum about a drawn mean, their first direction (d,) where it is given."""
    k = min(n, d)
    axes = np.sort(rng.uniform(0, 1, k) ** rng.choice([0.1, 1, 4]))[::-1].copy()
    if first is not None:
        axes[0] = axes[1] * rng.choice([1.0001, 1.01, 2])
    columns = rng.standard_normal((d, k))
    if first is not None:
        columns[:, 0] = first
    left, right = np.linalg.qr(rng.standard_normal((n, k)))[0], np.linalg.qr(columns)[0]
    mean = (
        rng.choice([0, 0.1, 3]) * rng.standard_normal(d) * np.linalg.norm(axes) / np.sqrt(n * d) if first is None else 0
    )
    return (left * axes @ right.T + mean).astype(np.float32)


def errors(x: np.ndarray) -> list[float]:
    """Relative errors of the uncentred and the centred share of one group."""
    result = []
    for definition, y in (("uncentred", x), ("centred", x - x.mean(axis=0, dtype=np.float64))):
        y = y.astype(np.float64)
        moment = y @ y.T if len(y) < y.shape[1] else y.T @ y
        exact = np.linalg.eigvalsh(moment)[-1] / np.trace(moment)
        result.append(abs(float(explained_variance(x[None], definition=definition)[0]) / exact - 1))  # type: ignore[arg-type]
    return result


def main(groups: int) -> None:
    rng, solve = np.random.default_rng(0), scipy.sparse.linalg.eigsh
    starts: list[np.ndarray] = []

    def watched(*args: object, **options: object) -> object:
        starts.append(options["v0"])  # type: ignore[arg-type]
        return solve(*args, **options)

    by_kind: dict[str, list[float]] = defaultdict(list)
    with mock.patch.object(scipy.sparse.linalg, "eigsh", watched):
        for i in range(groups):
            n, d = (int(2 ** rng.uniform(1, 8.5)) for _ in range(2)) if i % 20 else rng.integers(129, 200, 2).tolist()
            x = rows(n, max(d, 2), None, rng)
            by_kind["drawn, large" if min(x.shape) > 128 else "drawn, small"] += errors(x)
            if i % 20 == 0:
                across = starts[-1] if i % 40 else x.mean(axis=0)
                first = rng.standard_normal(d)
                x = rows(n, d, first - across * (first @ across) / (across @ across), rng)
                by_kind["planted"] += errors(x)
    for kind, of in by_kind.items():
        beyond = sum(e > 1e-6 for e in of)
        print(f"{kind}: {len(of):,} shares, largest relative error {max(of):.1e}, beyond 1e-6: {beyond}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
