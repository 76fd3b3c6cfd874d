"""Type-I error and power of the tests over layers against walks, beside the usual test, in worlds of known truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from ctxexp_papers.claims.walks import trend_p
from scipy.stats import spearmanr

N, ALPHA = 13, 0.05


def autoregressive(e: np.ndarray, phi: float) -> np.ndarray:
    """An AR(1) of these innovations (n,), from its stationary spread on."""
    x = e.copy()
    x[0] /= np.sqrt(1 - phi**2)
    for i in range(1, len(e)):
        x[i] += phi * x[i - 1]
    return x


WORLDS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "white noise": lambda rng: rng.normal(size=N),
    "AR(1), .5": lambda rng: autoregressive(rng.normal(size=N), 0.5),
    "AR(1), .8": lambda rng: autoregressive(rng.normal(size=N), 0.8),
    "random walk": lambda rng: rng.normal(size=N).cumsum(),
    "random walk, steps of t(3)": lambda rng: rng.standard_t(3, N).cumsum(),
    "random walk, one step eightfold": lambda rng: (rng.normal(size=N) * np.where(np.arange(N) == 5, 8, 1)).cumsum(),
    "smooth walk: steps an AR(1) of .5": lambda rng: autoregressive(rng.normal(size=N), 0.5).cumsum(),
    "smooth walk: steps an AR(1) of .8": lambda rng: autoregressive(rng.normal(size=N), 0.8).cumsum(),
    "a line, noise of 3% of its rise": lambda rng: np.linspace(0, 1, N) + 0.03 * rng.normal(size=N),
    "a line, noise of 10% of its rise": lambda rng: np.linspace(0, 1, N) + 0.10 * rng.normal(size=N),
    "a line, noise of 20% of its rise": lambda rng: np.linspace(0, 1, N) + 0.20 * rng.normal(size=N),
}


def tests_over_layers(worlds: int) -> list[str]:
    """A row a world: how often each test gives p < .05, of a curve with depth."""
    lines = ["| curves of 13 layers | with depth | usual test |", "|---|---|---|"]
    depth, draws = np.arange(N), np.random.default_rng(0)
    for name, draw in WORLDS.items():
        rng, found = np.random.default_rng(1), []
        for _ in range(worlds):
            curve, _ = draw(rng), draw(rng)  # of each two one, so that curves stay those of the published table
            found.append(np.array([trend_p(curve, draws), spearmanr(curve, depth).pvalue]) < ALPHA)
        lines.append(f"| {name} | " + " | ".join(f"{share:.1%}" for share in np.mean(found, axis=0)) + " |")
    return lines
