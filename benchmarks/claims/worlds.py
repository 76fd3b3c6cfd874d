"""Worlds of known truth, planted by a claim's kind of test, and how often its test decides there, rightly or wrongly.

`null`: the truth lies on the claim's bound in all models, or there is no effect, so that any verdict is a false one.
`true`, `false`: the claim holds, and fails, by an effect of the size that papers speak of.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from ctxexp_papers.claims.evidence import Member, Source
from ctxexp_papers.claims.kinds import Test, key_of, sides_of
from ctxexp_papers.claims.paper import Claim
from ctxexp_papers.claims.statistics import LayerCurve
from ctxexp_papers.claims.verdict import judge

Truth = Literal["null", "true", "false"]
LAYERS, SAMPLES, WORDS = 13, 20, 3500
FAMILIES = tuple("a" * 10 + "b" * 9 + "c" * 6 + "d" * 4 + "e" * 3)  # of the 32 tasks whose scores are released
ALIKE = 0.5  # share of a task's noise over layers that is its family's
MODELS = {"decoder": ("smollm2", "gpt2 weights=published"), "encoder": ("minilm", "bert weights=published")}


def source(claim: Claim, truth: Truth, rng: np.random.Generator) -> Source:
    """Evidence of this truth on all the models that the claim is decided on."""
    return Source("protocol", "", [member(claim, model, truth, rng) for model in models_of(claim)])


def models_of(claim: Claim) -> list[str]:
    """The models that a claim is of: those it names, else two of each kind that it is of."""
    named = [model for model in claim.models if " of the " not in model]
    kinds = claim.test.get("of", ("decoder",))
    return named or [model for kind in kinds for model in MODELS.get(kind, (kind,))]


def member(claim: Claim, model: str, truth: Truth, rng: np.random.Generator) -> Member:
    """A model whose curves have this truth under every reading; readings of the same test share it and its noise."""
    curves: dict[str, LayerCurve] = {}
    words: dict[str, pd.DataFrame] = {}
    drawn = None
    for changes in claim.readings.values():
        test = claim.test | changes
        if test["kind"] == "correlation":
            words[test["metric"]] = words_of(truth, rng)
            continue
        drawn = drawn or [np.asarray(values) for values in values_of(test, truth, rng)]
        families = FAMILIES if has_tasks(test) else ()
        for side, values in zip(sides_of(test), drawn, strict=False):
            curves[key_of(side)] = LayerCurve.of_samples(values, families=families)
    return Member(model, curves, words)


def values_of(test: Test, truth: Truth, rng: np.random.Generator) -> list[np.ndarray]:
    """(samples, layers) of each measurement of a test."""
    if has_tasks(test):
        return tasks(test, truth, rng)
    if test["kind"] == "trend":
        up = np.linspace(0.1, 0.8, LAYERS)
        up = up if test.get("rises") else up[::-1]
        walk = 0.5 + 0.05 * rng.normal(size=LAYERS).cumsum()
        return [noisy({"null": walk, "true": up, "false": up[::-1]}[truth], rng, 0.01)]
    if test["kind"] == "ends":
        return [noisy(hump(test, truth, rng), rng, 0.01)]
    level = level_of(test, truth)
    if test["kind"] == "layers":
        return [noisy(np.full(LAYERS, level), rng, 0.02 if abs(level) < 1 else 0.1)]
    both = noisy(np.full(LAYERS, 0.5), rng, 0.02)
    if all(side.get("layers", "all") == test.get("layers", "all") for side in sides_of(test)):
        return [both + noisy(np.full(LAYERS, level), rng, 0.02), both]
    one = test["one"].get("layers", "all")  # of one measurement's layers
    at = {"first": [0], "upper half": range(LAYERS // 2 + 1, LAYERS)}[one]
    curve = np.zeros(LAYERS)
    curve[list(at)] = level
    return [both + noisy(curve, rng, 0.02)] * 2


def has_tasks(test: Test) -> bool:
    """Whether a test is on scores of tasks."""
    return test["kind"] in ("ends", "share") and not test.get("walks") and "below" not in test


def level_of(test: Test, truth: Truth) -> float:
    """A value on a test's bound, on its right side, on its wrong one."""
    if "within" in test:
        bound = float(test["within"])
        return {"null": bound, "true": 0.0, "false": 4 * bound}[truth]
    bound, sign = (float(test["below"]), -1) if "below" in test else (float(test.get("above", 0.0)), 1)
    return bound + {"null": 0.0, "true": 0.3, "false": -0.3}[truth] * sign * max(1.0, abs(bound) / 4)


def hump(test: Test, truth: Truth, rng: np.random.Generator) -> np.ndarray:
    """Over layers, null: a walk, true: a bell (for a `valley` an inverted one), false: the opposite of true; with
    `below`, null: a bell of that height, true: flat, false: a high bell."""
    bell = np.sin(np.linspace(0, np.pi, LAYERS))
    if "below" in test:
        return bell * {"null": float(test["below"]), "true": 0.0, "false": 0.5}[truth]
    sign = -1 if test.get("valley") else 1
    steps = rng.normal(size=LAYERS)
    for i in range(1, LAYERS):
        steps[i] += 0.8 * steps[i - 1] * (truth == "null")
    return sign * {"null": 0.05 * steps.cumsum(), "true": 0.4 * bell, "false": -0.4 * bell}[truth]


def tasks(test: Test, truth: Truth, rng: np.random.Generator) -> list[np.ndarray]:
    """Scores of 32 tasks in points: a task's level, a walk over layers, half its own and half its family's, and the
    truth of the layers."""
    number = np.unique(FAMILIES, return_inverse=True)[1]
    n = len(number)
    middle, last = LAYERS // 2, LAYERS - 1
    peak, flat, ended = np.zeros(LAYERS), np.zeros(LAYERS), np.zeros(LAYERS)
    peak[middle], ended[last if test.get("rivals") == "last" or "candidates" in test else 0] = 12.0, 12.0

    def drawn(shape: np.ndarray, noise: float = 2.0, alike: float = ALIKE) -> np.ndarray:
        own, family = (
            rng.normal(0, noise, (size, LAYERS)) + rng.normal(0, noise / 3, (size, LAYERS)).cumsum(axis=1)
            for size in (n, number.max() + 1)
        )
        noises = np.sqrt(1 - alike) * own + np.sqrt(alike) * family[number]
        return np.asarray(rng.uniform(20, 80, (n, 1)) + noises + shape)

    if test["kind"] == "share":  # on the line the last layer wins one task in five, by far
        clear = drawn(peak * 2, 0.5, alike=0)  # five families whose tasks are one could never show it
        loses = (rng.random(n) < 0.2)[:, None] * (np.arange(LAYERS) == last)
        return [{"null": clear + 40 * loses, "true": clear, "false": drawn(flat)}[truth]]
    if "beyond" in test:
        ends = np.zeros(LAYERS)
        ends[last] = 12.0
        own, control = {"null": (peak, peak), "true": (peak, ends), "false": (flat, peak)}[truth]
        return [drawn(own), drawn(control)]
    equal = flat if rng.random() < 0.5 else np.where(np.isin(np.arange(LAYERS), [0, middle, last]), 0.0, -12.0)
    return [drawn({"null": equal, "true": peak, "false": ended}[truth])]


def words_of(truth: Truth, rng: np.random.Generator) -> pd.DataFrame:
    """Words whose self-similarity falls with how varied their contexts are, or with their senses, or with neither; both
    go with frequency, and so does self-similarity."""
    frequency, own_senses, own_variety, noise = rng.normal(size=(4, WORDS))
    senses, variety = frequency + own_senses, frequency + own_variety
    value = noise - frequency - (truth == "false") * own_senses - (truth == "true") * own_variety
    columns = {"value": value, "senses": np.floor(np.exp(senses / 2)), "variety": variety}
    return pd.DataFrame(columns | {"frequency": np.ceil(5 * np.exp(frequency))})


def noisy(truth: np.ndarray, rng: np.random.Generator, noise: float) -> np.ndarray:
    """(samples, layers) about a truth: a sample's layers err together, and each on its own."""
    return truth + rng.normal(0, noise, (SAMPLES, 1)) + rng.normal(0, noise / 2, (SAMPLES, len(truth)))


def decision_rates(claim: Claim, truth: Truth, n: int, *, seed: int = 2) -> dict[str, float]:
    """The shares of n drawn worlds in which the claim holds (under any reading), and in which it fails."""
    rng = np.random.default_rng(seed)
    found: list[Any] = [judge(claim, source(claim, truth, rng)) for _ in range(n)]
    return {
        "holds": sum(f.ruling == "holds" or bool(f.holding) for f in found) / n,
        "fails": sum(f.ruling == "fails" for f in found) / n,
    }
