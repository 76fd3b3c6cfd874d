"""Type-I error, coverage and width of two spaces' intervals, by simulation of texts whose truth is known.

    python -m benchmarks.two_spaces [worlds=300] [bootstrap=300]

Each world draws words, sentences, and two spaces: an own random vector a word, a noise of each, and (but for type-I
error) a context that both know. Truth is the mean of adjusted values over all worlds, as n is the same in each.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from ctxexp_compare import (
    Cka,
    InformationImbalance,
    Linearity,
    MutualNeighbours,
    NeighbourhoodOverlap,
    ShapeDistance,
    Space,
    TwoSpaces,
    similarities,
)  # fmt: skip

EVERY: tuple[TwoSpaces, ...] = (
    Cka(), MutualNeighbours(), NeighbourhoodOverlap(), InformationImbalance(), ShapeDistance(), Linearity(),
)  # fmt: skip


def world(seed: int, *, shared: float, words: int = 40, n: int = 400, d: int = 16) -> list[Space]:
    """Two spaces of n occurrences of Zipf-distributed words, in sentences of ten with a topic of their own."""
    rng = np.random.default_rng([seed, int(100 * shared)])
    share = 1 / np.arange(2, words + 2)
    number = rng.choice(words, n, p=share / share.sum())
    sentence = np.arange(n) // 10
    context = rng.normal(size=(n, 4)) + rng.normal(size=(n // 10 + 1, 4))[sentence]
    found = []
    for i, name in enumerate("ab"):
        maps = np.random.default_rng(i).normal(size=(4, d)) / 2  # of the model: the same in every world
        table = np.random.default_rng(10 + i).normal(size=(words, d))
        own = rng.normal(size=(n, d))  # of no sentence: two spaces that know sentences share which words stand together
        x = table[number] + 0.7 * own + shared * context @ maps
        found.append(Space.of_arrays(name, x[None], blocks=sentence, words=[f"w{w}" for w in number]))
    return found


def simulate(
    measures: Sequence[TwoSpaces], worlds: int, *, shared: float, bootstrap: int = 300, n: int = 400
) -> dict[str, tuple[float, float, float]]:
    """A measure's mean adjusted value, share of intervals that hold the truth (0 where nothing is shared, else that
    mean), and the intervals' mean width over that of 95% of the worlds' values."""
    drawn: dict[str, list[tuple[float, float, float]]] = {one.name: [] for one in measures}
    for seed in range(worlds):
        found = similarities(world(seed, shared=shared, n=n), measures, bootstrap=bootstrap, permutations=10)
        for one in measures:
            value, low, high = (ends[0, 1] for ends in found.matrices[one.label].adjusted)
            drawn[one.name].append((float(value), float(low), float(high)))
    result = {}
    for name, rows in drawn.items():
        value, low, high = np.array(rows).T
        truth = value.mean() if shared else 0.0
        spread = 2 * 1.959964 * value.std(ddof=1)
        result[name] = (
            float(value.mean()),
            float(((low <= truth) & (truth <= high)).mean()),
            float((high - low).mean() / spread),
        )
    return result


def main() -> None:
    given = dict(word.split("=") for word in sys.argv[1:])
    worlds, bootstrap = int(given.get("worlds", 300)), int(given.get("bootstrap", 300))
    print(f"{worlds} worlds of 400 occurrences\n\n| measure | shared | adjusted | holds the truth | width over right |")
    print("|---|---|---|---|---|")
    for shared in (0.0, 1.0):
        for name, row in simulate(EVERY, worlds, shared=shared, bootstrap=bootstrap).items():
            print(f"| {name} | {shared:g} | {row[0]:.3f} | {row[1]:.3f} | {row[2]:.2f} |")


if __name__ == "__main__":
    main()
