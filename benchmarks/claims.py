"""How often tests over layers, and the claims of ctxexp-papers, decide in worlds where there is nothing to decide.

`python -m benchmarks.claims [worlds=400] [out=docs/measures/claims.md]` prints two tables: type-I error and power of
the tests against walks beside the usual one, and the share of verdicts of each claim whose truth lies on its bound.
With out= they are written between the page's marks. A share of 5% of 400 worlds has a standard error of 1.1%.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from ctxexp_papers.claims.evidence import Evidence, Family
from ctxexp_papers.claims.paper import CLAIMS, judge
from ctxexp_papers.claims.walks import association_p, trend_p
from scipy.stats import spearmanr

from ctxexp.results.values import Estimates, Key
from docs.numbers.marked import write_marked

N, LEVEL, SE = 13, 0.05, 0.01
LAYERS = {"elmo": 3, "bert": 13, "gpt2": 13}
Curves = dict[str, np.ndarray]  # by "measure/statistic"


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
    """A row a world: how often each test gives p < .05, of one curve with depth and of two curves."""
    lines = ["| curves of 13 layers | with depth | usual test | two curves | usual test |", "|---|---|---|---|---|"]
    depth, draws = np.arange(N), np.random.default_rng(0)
    for name, draw in WORLDS.items():
        rng, found = np.random.default_rng(1), []
        for _ in range(worlds):
            a, b = draw(rng), draw(rng)
            p = trend_p(a, draws), spearmanr(a, depth).pvalue, association_p(a, b, draws), spearmanr(a, b).pvalue
            found.append(np.array(p) < LEVEL)
        lines.append(f"| {name} | " + " | ".join(f"{share:.1%}" for share in np.mean(found, axis=0)) + " |")
    return lines


SIMILARITIES = [f"self_similarity/{s}" for s in ("raw", "adjusted", "corrected")]
SENTENCES = [f"intra_sentence_similarity/{p}{s}" for p in ("", "size_matched_") for s in ("adjusted", "corrected")]
VARIANCES = [
    f"max_explainable_variance{d}/{s}"
    for d in ("", "_centred", "_released")
    for s in ("raw", "adjusted", "size_matched_adjusted")
]


def walk(n: int, rng: np.random.Generator) -> np.ndarray:
    return 0.5 + 0.05 * rng.normal(size=n).cumsum()


def at(value: float | Mapping[str, float], names: list[str]) -> Callable[[str, int, np.random.Generator], Curves]:
    """Curves whose truth is one value (by model) in every layer: on the bound."""
    return lambda model, n, rng: dict.fromkeys(names, np.full(n, value if isinstance(value, float) else value[model]))


def one_walk(names: list[str]) -> Callable[[str, int, np.random.Generator], Curves]:
    return lambda model, n, rng: dict.fromkeys(names, walk(n, rng))


def independent(model: str, n: int, rng: np.random.Generator) -> Curves:
    """Mean cosine and raw self-similarity as walks that know nothing of each other."""
    a, raw = walk(n, rng), walk(n, rng)
    corrected = (raw - a) / (1 - a)
    return {"anisotropy/mean_cosine": a} | dict(zip(SIMILARITIES, (raw, raw - a, corrected), strict=True))


MEAN = ["anisotropy/mean_cosine"]
ON_THE_BOUND: dict[str, Callable[[str, int, np.random.Generator], Curves]] = {
    "anisotropic": at(0.05, MEAN),
    "elmo-input-isotropic": at(0.05, MEAN),
    "anisotropy-rises": one_walk(MEAN),
    "hidden-more-anisotropic": at(0.3, MEAN),
    "same-word-closer": at(0.0, SIMILARITIES),
    "self-similarity-falls": one_walk(SIMILARITIES),
    "always-more-anisotropic": independent,
    "gpt2-most-contextual": at(0.3, SIMILARITIES),
    "gpt2-last-layer": at(0.05, SIMILARITIES),
    "elmo-sentence-rises": one_walk(SENTENCES),
    "bert-sentence-falls": one_walk(SENTENCES),
    "bert-sentence-above": at(0.0, SENTENCES),
    "gpt2-sentence-none": at(0.05, SENTENCES),
    "gpt2-sentence-input": at(0.1, SENTENCES),
    "sentence-above-line": at(0.2, SENTENCES),
    "bert-last-below-elmo-2": at(0.3, SIMILARITIES),
    "bert-last-close-to-elmo-2": at({"bert": 0.35, "elmo": 0.30, "gpt2": 0.3}, SIMILARITIES),
    "elmo-2-below-bert-2": at(0.3, SIMILARITIES),
    "variance-below-5": at(0.05, VARIANCES),
    "variance-raw": at({"bert": 0.05, "elmo": 0.05, "gpt2": 0.35}, VARIANCES),
}
"""By claim: curves whose truth lies on its bound in all layers and models, the same under all readings, where a verdict
of either kind is a false one."""


def verdicts(claim_id: str, worlds: int) -> float:
    """The share of worlds in which the claim gets a verdict. Estimates err by SE, independently by layer."""
    claim = next(claim for claim in CLAIMS if claim.id == claim_id)
    rng, found = np.random.default_rng(2), 0
    for _ in range(worlds):
        members = []
        for model, n in LAYERS.items():
            held = {}
            noise: dict[int, np.ndarray] = {}
            for name, truth in ON_THE_BOUND[claim_id](model, n, rng).items():
                error = noise.setdefault(id(truth), SE * rng.normal(size=n))  # one curve under all readings
                value = truth + error
                held[Key.of(*name.split("/"))] = Estimates(value, value - 1.96 * SE, value + 1.96 * SE)
            members.append(Evidence(model, held))
        found += judge(claim, Family("published", "", members=members)).outcome not in ("open", "none")
    return found / worlds


def claims_on_their_bound(worlds: int) -> list[str]:
    """A row a claim: the share of verdicts."""
    rows = [f"| `{claim}` | {verdicts(claim, worlds):.1%} |" for claim in ON_THE_BOUND]
    return ["| claim, its truth on the bound everywhere | verdicts |", "|---|---|", *rows]


def main(args: list[str]) -> None:
    given = dict(arg.split("=", 1) for arg in args)
    worlds = int(given.get("worlds", 400))
    for name, table in (("nulls", tests_over_layers(worlds)), ("claims", claims_on_their_bound(worlds))):
        print("\n".join([*table, ""]), flush=True)
        if "out" in given:
            write_marked(Path(given["out"]), name, "\n".join(table))


if __name__ == "__main__":
    main(sys.argv[1:])
