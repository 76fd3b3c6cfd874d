"""Planted values of models in samples of a text: a truth by statistic and layer, and noise of each sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from ctxexp_papers.claims.checks import NONE
from ctxexp_papers.claims.samples import SAMPLES, Sampled, Samples

from benchmarks.claims.worlds import World

NOISE = 0.02
Truth = Mapping[str | tuple[str, ...], Sequence[float] | np.ndarray | float]
"""By statistic, the truth by layer, or of every layer; statistics of one entry have the very same values."""
LAYERS = 5


def draw(
    truth: Truth,
    rng: np.random.Generator,
    *,
    models: Sequence[str],
    twin: Truth | None = None,
    noise: float = NOISE,
    samples: int = SAMPLES,
    layers: int = LAYERS,
) -> Samples:
    """A source of these models with the same truth: a sample's layers err together and each on its own."""

    def values(of: Truth) -> dict[str, np.ndarray]:
        result = {}
        for names, curve in of.items():
            level = np.broadcast_to(np.asarray(curve, np.float64), (layers,))
            own = rng.normal(0, noise, (samples, 1)) + rng.normal(0, noise / 2, (samples, layers))
            result |= dict.fromkeys((names,) if isinstance(names, str) else names, level + own)
        return result

    numbers = tuple(range(layers))
    members = [Sampled(model, values(truth), numbers, values(twin) if twin else {}) for model in models]
    return Samples("protocol", "", members=members)


def world(
    null: Truth,
    true: Truth | None = None,
    false: Truth | None = None,
    *,
    models: Sequence[str] = ("gpt2", "smollm2"),
    twin: Truth | None = None,
    false_twin: Truth | None = None,
    true_twin: Truth | None = None,
    **choices: int | float,
) -> World:
    """Worlds of one truth for all models; `twin` is that of the untrained twins, under the truth's null if no other."""
    make = partial(draw, models=models, **choices)  # type: ignore[arg-type]
    return World(
        null=partial(make, null, twin=twin),
        true=None if true is None else partial(make, true, twin=true_twin or twin),
        false=None if false is None else partial(make, false, twin=false_twin or twin),
    )


def optimum(names: Sequence[str], variants: Sequence[str], models: Sequence[str]) -> World:
    """Worlds of a model at its optimum: the share that a formula explains, and what it does beyond its rivals; on the
    line, all of it, half of it."""

    def truth(share: float, beyond: float) -> Truth:
        return {f"{name}, {v}": share if name == names[0] else beyond for v in variants for name in names}

    null, true, false = truth(1 - NONE, NONE), truth(1.0, 0.5), truth(0.5, 0.3)
    return world(null, true, false, models=models, layers=1, samples=12, noise=0.01)


def instances(statistic: str, models: Sequence[str]) -> World:
    """Worlds of a theorem: too few instances to say anything; many that obey it; many of which one doesn't."""

    def source(n: int, broken: bool, rng: np.random.Generator) -> Samples:
        held = np.ones((n, 1))
        held[rng.integers(n), 0] = 0.0 if broken else 1.0
        return Samples("protocol", "", members=[Sampled(model, {statistic: held}) for model in models])

    return World(null=partial(source, 30, False), true=partial(source, 60, False), false=partial(source, 60, True))
