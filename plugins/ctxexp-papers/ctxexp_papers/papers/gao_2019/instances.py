"""Instances of Gao et al.'s theorems, and language models small enough to be trained here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.maths import Stream
from ctxexp_papers.claims.drawn import INSTANCES, draw_instances
from ctxexp_papers.claims.samples import Sampled, Samples

if TYPE_CHECKING:
    import torch

WIDTHS = {"d = 2": 2, "d = 5": 5}
STEPS, PARTS = 3000, 20
BIGRAMS = "tied bigram models"
UNSURE = 0.03  # margins of the hull below which the descent would take too long to tell


def unseen_token(h: np.ndarray, steps: int = STEPS) -> bool | None:
    """Whether gradient descent carries the vector of a token that never occurs off without end, over hidden states
    `h` (n, d): its loss, log(1 + exp(<w, h>)) on average (the other tokens' scores held), has a minimum or none. None
    where the steps don't tell: the minimum is where the gradient vanishes, without one the length grows as log t."""
    w, rate = np.zeros(h.shape[1]), 4.0 / float((h**2).sum(axis=1).mean())
    half = w
    for step in range(steps):
        w = w - rate * (1 / (1 + np.exp(-(h @ w)))) @ h / len(h)
        half = w if step == steps // 2 else half
    gradient = np.linalg.norm((1 / (1 + np.exp(-(h @ w)))) @ h / len(h))
    if gradient < 1e-7:
        return False
    return bool((h @ w < 0).all()) or (None if np.linalg.norm(w) > np.linalg.norm(half) * 1.001 else False)


def instance(d: int, rng: np.random.Generator) -> Mapping[str, float]:
    """Whether drawn hidden states obey: Theorem 1 (the vector of an unseen token runs off if and only if their hull
    misses the origin), and that rows out of a layer norm with a bias miss it."""
    from ctxexp_measures.frequency.hull import hull_contains, hull_contains_origin, negative_direction

    while True:
        h = rng.normal(size=(12 * d, d)) + rng.uniform(0, 4) * np.eye(d)[0]
        inside = hull_contains_origin(h)
        margin = negative_direction(h).margin
        if inside is not None and (inside or margin > UNSURE):
            break
    away = unseen_token(h)
    z = rng.normal(size=(40 * d, d + 1))
    z = (z - z.mean(axis=1, keepdims=True)) / z.std(axis=1, keepdims=True)
    gain, bias = rng.uniform(0.5, 2.0, d + 1), rng.normal(size=d + 1)
    normed = gain * z + bias
    return {
        "theorem": float(away is None or away != inside),
        "normed": float(hull_contains_origin(normed) is not True),
        "without": float(hull_contains(z * gain, np.zeros(d + 1)) is not False),
        "rare": float(rare_token(rng)),
    }


def rare_token(rng: np.random.Generator) -> bool:
    """Whether Theorem 3 holds of drawn quadratics: f is a-strongly convex with its minimum in x, the loss of a token
    that occurs with frequency eps is (1 - eps) f + eps g, where g's Hessian is at least -b; for eps < a / (a + b) its
    minimum y has |x - y|^2 <= 4 eps B / (a - eps (a + b)), with B the largest of |f|, |g| in both minima."""
    d = int(rng.integers(1, 6))
    a, b = rng.uniform(0.5, 3), rng.uniform(0.1, 3)

    def matrix(least: float, most: float) -> np.ndarray:
        q = np.linalg.qr(rng.normal(size=(d, d)))[0]
        return np.asarray((q * rng.uniform(least, most, d)) @ q.T)

    convex, other = matrix(a, 4.0), -matrix(0.0, b)
    x, z = rng.normal(size=(2, d))
    eps = rng.uniform(0, 0.5) * a / (a + b)
    y = np.linalg.solve((1 - eps) * convex + eps * other, (1 - eps) * convex @ x + eps * other @ z)

    def size(at: np.ndarray, hessian: np.ndarray, centre: np.ndarray) -> float:
        return abs(float((at - centre) @ hessian @ (at - centre) / 2))

    most = max(size(at, *of) for at in (x, y) for of in ((convex, x), (other, z)))
    return bool((x - y) @ (x - y) <= 4 * eps * most / (a - eps * (a + b)) + 1e-12)


def trained_cosines(seed: int, *, words: int = 40, d: int = 6, steps: int = 150) -> Mapping[str, float]:
    """Mean cosine of the tied table of a bigram model of Zipf's words, after training without and with the cosine
    regulariser of weight 1, from the same start on the same counts."""
    import torch

    rng = np.random.default_rng([0, Stream.INSTANCES, 3, seed])
    often = 1 / np.arange(1, words + 1)
    chances = often * rng.gamma(0.3, size=(words, words))  # of the next word, by word
    counts = torch.tensor(often[:, None] * chances / chances.sum(axis=1, keepdims=True), dtype=torch.float64)
    counts /= counts.sum()
    starts = [torch.tensor(rng.normal(0, 0.1, size), dtype=torch.float64) for size in ((words, d), (d, d), (d,))]
    values = {}
    for name, weight in (("plain", 0.0), ("regularised", 1.0)):
        table, map_, bias = (start.clone().requires_grad_() for start in starts)
        optimiser = torch.optim.Adam([table, map_, bias], lr=0.05)
        for _ in range(steps):
            optimiser.zero_grad()
            loss = -(counts * torch.log_softmax((table @ map_ + bias) @ table.T, dim=1)).sum()
            (loss + weight * _mean_cosine(table)).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        values[name] = float(_mean_cosine(table.detach()))
    return values


def _mean_cosine(table: torch.Tensor) -> torch.Tensor:
    """Mean cosine of ordered pairs of rows, over N^2 as in the paper."""
    u = table / table.norm(dim=1, keepdim=True)
    result: torch.Tensor = ((u.sum(dim=0) ** 2).sum() - len(u)) / len(u) ** 2
    return result


def toy_models(draws: int = 24) -> Samples:
    """Tied bigram models, trained twice each."""
    rows = [trained_cosines(seed) for seed in range(draws)]
    values = {key: np.array([[row[key]] for row in rows]) for key in rows[0]}
    command = "python -m ctxexp claims paper=gao_2019"
    departures = {BIGRAMS: ["not the paper's Transformer, nor its text"]}
    return Samples("other", "language models trained here", departures, [], command, [Sampled(BIGRAMS, values)])


def drawn(instances: int = INSTANCES) -> Samples:
    """Instances of the theorems."""
    cases = {name: (partial(instance, d), (d,)) for name, d in WIDTHS.items()}
    return draw_instances("gao_2019", "hidden states drawn here", cases, instances)
