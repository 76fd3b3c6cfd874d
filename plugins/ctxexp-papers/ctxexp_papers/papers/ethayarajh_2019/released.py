"""The authors' released figures as evidence: the same tests on them, and their arithmetical consequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ctxexp.maths.geometry import chance_corrected
from ctxexp.report.references import published_curves
from ctxexp.results import Estimates, Key
from ctxexp_papers.claims.evidence import Evidence, Family
from ctxexp_papers.papers.ethayarajh_2019.curves import ADJUSTED, ANISOTROPY, CORRECTED, RAW, VARIANCE
from ctxexp_papers.papers.ethayarajh_2019.protocol import MODELS

RELEASED_VARIANCE = f"{VARIANCE}_released"
NAMES = {"elmo": "ELMo", "bert": "BERT", "gpt2": "GPT-2"}


@dataclass(frozen=True)
class Derivation:
    """Something that follows from released figures: in words, with its numbers by name."""

    id: str
    text: str
    numbers: Mapping[str, float | tuple[float, float]]


def family() -> Family:
    """The released per-layer figures as evidence: points without intervals.

    They are rounded to the three decimals that were released, so that a difference on a margin is on it.
    """
    members = []
    for model in MODELS:
        curves = published_curves(model)
        curves[CORRECTED] = chance_corrected(curves[ADJUSTED], curves[ANISOTROPY])
        rounded = {key: Estimates(*[curve.round(3)] * 3) for key, curve in curves.items()}
        members.append(Evidence(model, rounded, NAMES[model], points=True))
    return Family("points", "the authors' released per-layer figures", members=members)


def least_variance(self_similarity: np.ndarray, n: float = np.inf) -> np.ndarray:
    """The least uncentred share (Definition 3) of n unit vectors of mean cosine s: (1 + (n - 1) s) / n.

    The Rayleigh quotient of the rows' Gram matrix at the vector of ones: its largest eigenvalue is no less. Of vectors
    of unequal length it is |sum x|^2 / (n sum |x|^2), in which each cosine counts by the product of both lengths: a few
    long rows can bring the share below the self-similarity.
    """
    result: np.ndarray = self_similarity + (1 - self_similarity) / n
    return result


def derivations() -> list[Derivation]:
    """Consequences of the released per-layer figures."""
    curves = {model: published_curves(model) for model in MODELS}
    return [_definition(curves), _vacuous(curves), _steps(curves)]


def _definition(curves: Mapping[str, Mapping[Key, np.ndarray]]) -> Derivation:
    even = [m for m in MODELS if m != "gpt2"]  # GPT-2's first positions are far longer than the rest
    bounds = {m: float(np.nanmin(least_variance(curves[m][RAW][1:]))) for m in even}
    ranges = {m: _ends(curves[m][Key(RELEASED_VARIANCE, "raw")][1:]) for m in MODELS}
    text = (
        "Definition 3 as printed can't be below 5%: for vectors of equal length it is at least the raw "
        "self-similarity, "
        + ", ".join(f"{bounds[m]:.2f} in {NAMES[m]}" for m in even)
        + " at the least (GPT-2's lengths differ greatly: there each cosine counts by the product of both lengths, "
        "which weren't released, and no bound is claimed), while "
        + ", ".join(f"{a:.3f} to {b:.3f}" for a, b in ranges.values())
        + " were released. The 5% are those of the released code's estimator."
    )
    return Derivation("definition", text, {f"{m} bound": v for m, v in bounds.items()})


def _vacuous(curves: Mapping[str, Mapping[Key, np.ndarray]]) -> Derivation:
    gpt2 = _ends(curves["gpt2"][Key(RELEASED_VARIANCE, "adjusted")][2:12])
    most = max(float(np.nanmax(curves[m][Key(RELEASED_VARIANCE, "adjusted")][1:])) for m in MODELS)
    base = _ends(curves["gpt2"][Key(RELEASED_VARIANCE, "baseline")][2:12])
    text = (
        f"By the released code's estimator adjusted values are at most {most:.3f}, below the 5%. In GPT-2's layers 2 "
        f"to 11 they are {gpt2[0]:.2f} to {gpt2[1]:.2f}, since the baseline, of 1,000 rows and not of the word's "
        f"number, is {base[0]:.3f} to {base[1]:.3f}: there being below 5% says nothing."
    )
    return Derivation("vacuous", text, {"largest adjusted": most, "gpt2 adjusted": gpt2, "gpt2 baseline": base})


def _steps(curves: Mapping[str, Mapping[Key, np.ndarray]]) -> Derivation:
    """Steps against the trend."""
    rises = {m: np.flatnonzero(np.diff(c[ADJUSTED]) > 0) for m, c in curves.items()}
    parts = [f"{NAMES[m]} {_pairs(rises[m])}" for m in MODELS if len(rises[m])]
    text = f"Steps against the trend. Adjusted self-similarity rises in {'; '.join(parts)}."
    return Derivation("steps", text, {f"{m} self-similarity rises": float(len(rises[m])) for m in MODELS})


def _ends(values: np.ndarray) -> tuple[float, float]:
    return float(np.nanmin(values)), float(np.nanmax(values))


def _pairs(steps: np.ndarray) -> str:
    return "layers " + ", ".join(f"{i} to {i + 1}" for i in steps.tolist())
