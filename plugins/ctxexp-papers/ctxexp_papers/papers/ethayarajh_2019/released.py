"""The authors' released figures as evidence: the same tests on them, and their arithmetical consequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from ctxexp_measures.words.table_1 import published

from ctxexp.maths.geometry import chance_corrected
from ctxexp.report.ethayarajh_2019 import published_curves
from ctxexp.results import Estimates, Key
from ctxexp_papers.claims.evidence import Evidence, Family
from ctxexp_papers.papers.ethayarajh_2019.contexts import ANISOTROPY, INTRA, SELF
from ctxexp_papers.papers.ethayarajh_2019.protocol import MODELS
from ctxexp_papers.papers.ethayarajh_2019.static import BENCHMARKS, MEASURE
from ctxexp_papers.papers.ethayarajh_2019.words import VARIANCE

LENGTHS = (10.7, 14.0)  # words per sentence: at the first, unrelated words score what ELMo's context-free layer 0 does
RELEASED_VARIANCE = f"{VARIANCE}_released"
NAMES = {"elmo": "ELMo", "bert": "BERT", "gpt2": "GPT-2"}


@dataclass(frozen=True)
class Derivation:
    """Something that follows from released figures: in words, with its numbers by name (none: it can't be had)."""

    id: str
    text: str
    numbers: Mapping[str, float | tuple[float, float]]


def family() -> Family:
    """The released per-layer figures and Table 1 as evidence: points without intervals, and no single words.

    They are rounded to the three decimals that were released, so that a difference on a margin is on it.
    The length-matched level of intra-sentence similarity is not released: `length_null` at 10.7 words stands for it.
    """
    members = []
    for model in MODELS:
        curves = published_curves(model)
        level = length_null(curves[ANISOTROPY], LENGTHS[0])
        curves[Key.of(INTRA, "size_matched_adjusted")] = curves[Key(INTRA, "raw")] - level
        for measure in (SELF, INTRA):
            adjusted = curves[Key(measure, "adjusted")]
            curves[Key(measure, "share_of_room")] = chance_corrected(adjusted, curves[ANISOTROPY])
        adjusted = curves[Key.of(INTRA, "size_matched_adjusted")]
        curves[Key.of(INTRA, "size_matched_share_of_room")] = chance_corrected(adjusted, level)
        members.append(_points(model, NAMES[model], curves | _static(NAMES[model])))
    members += [_points(name.lower(), name, _static(name)) for name in ("GloVe", "FastText")]
    return Family("points", "the authors' released per-layer figures, and Table 1", members=members)


def _points(model: str, label: str, curves: Mapping[Key, np.ndarray]) -> Evidence:
    return Evidence(model, {key: Estimates(*[curve.round(3)] * 3) for key, curve in curves.items()}, label, points=True)


def length_null(mean_cosine: np.ndarray, n: float) -> np.ndarray:
    """Intra-sentence similarity of n unrelated words of this mean cosine: sqrt((1 + (n - 1) A) / n), unit vectors."""
    result: np.ndarray = np.sqrt((1 + (n - 1) * mean_cosine) / n)
    return result


def least_variance(self_similarity: np.ndarray, n: float = np.inf) -> np.ndarray:
    """The least uncentred share (Definition 3) of n unit vectors of mean cosine s: (1 + (n - 1) s) / n.

    The Rayleigh quotient of the rows' Gram matrix at the vector of ones: its largest eigenvalue is no less. Of vectors
    of unequal length it is |sum x|^2 / (n sum |x|^2), in which each cosine counts by the product of both lengths: a few
    long rows can bring the share below the self-similarity.
    """
    result: np.ndarray = self_similarity + (1 - self_similarity) / n
    return result


def derivations() -> list[Derivation]:
    """Consequences of the released per-layer figures; the last one lists what doesn't follow."""
    curves = {model: published_curves(model) for model in MODELS}
    results = [_definition(curves), _vacuous(curves)]
    results += [_length(model, curves[model]) for model in MODELS]
    results += [_steps(curves), _neighbours(curves), _missing()]
    return results


def _definition(curves: Mapping[str, Mapping[Key, np.ndarray]]) -> Derivation:
    even = [m for m in MODELS if m != "gpt2"]  # GPT-2's first positions are far longer than the rest
    bounds = {m: float(np.nanmin(least_variance(curves[m][Key(SELF, "raw")][1:]))) for m in even}
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


def _length(model: str, curves: Mapping[Key, np.ndarray]) -> Derivation:
    raw, cosine = curves[Key(INTRA, "raw")], curves[ANISOTROPY]
    excess = np.stack([raw - length_null(cosine, n) for n in LENGTHS])  # (lengths, layers)
    word = {
        "elmo": "rises still",
        "bert": "is flat, so that words of a sentence don't drift apart",
        "gpt2": "is about 0 in layers 0, 1 and 12 and below it between, as a few very long vectors would have it",
    }[model]
    at = np.abs(excess[0]).argmax()
    text = (
        f"Against unrelated words in sentences of {LENGTHS[0]} to {LENGTHS[1]:.0f} words, {NAMES[model]}'s "
        f"intra-sentence similarity {word}: {excess.min():+.2f} to {excess.max():+.2f}, furthest from 0 in layer {at}."
    )
    numbers: dict[str, float | tuple[float, float]] = {f"layer {i}": _ends(excess[:, i]) for i in range(len(raw))}
    return Derivation(f"length, {model}", text, {"all layers": _ends(excess), **numbers})


def _steps(curves: Mapping[str, Mapping[Key, np.ndarray]]) -> Derivation:
    """Steps against a trend, and the extremes that the claims' short words pass over."""
    falls = {m: np.flatnonzero(np.diff(c[ANISOTROPY]) < 0) for m, c in curves.items()}
    rises = {m: np.flatnonzero(np.diff(c[Key(SELF, "adjusted")]) > 0) for m, c in curves.items()}
    parts = [f"{NAMES[m]} {_pairs(falls[m])}" for m in MODELS if len(falls[m])]
    others = [f"{NAMES[m]} {_pairs(rises[m])}" for m in MODELS if len(rises[m])]
    text = (
        f"Steps against the trends. Anisotropy falls in {'; '.join(parts)}. Adjusted self-similarity rises in "
        f"{'; '.join(others)}."
    )
    numbers = {f"{m} anisotropy falls": float(len(falls[m])) for m in MODELS}
    return Derivation("steps", text, numbers | {f"{m} self-similarity rises": float(len(rises[m])) for m in MODELS})


def _neighbours(curves: Mapping[str, Mapping[Key, np.ndarray]]) -> Derivation:
    values = {
        f"{what}, {level}": float(curves[m][Key(SELF, level)][i])
        for level in ("raw", "adjusted")
        for what, m, i in (("elmo 2", "elmo", 2), ("bert last", "bert", -1), ("bert 2", "bert", 2))
    }
    raw, adjusted = ([v for k, v in values.items() if k.endswith(level)] for level in (" raw", " adjusted"))
    text = (
        f"Self-similarity of ELMo's layer 2, BERT's last and BERT's layer 2: raw {_row(raw)}, adjusted "
        f"{_row(adjusted)}. BERT's last is below ELMo's second only when adjusted, and close to it in neither."
    )
    return Derivation("elmo and bert", text, values)


def _missing() -> Derivation:
    text = (
        "Not in the per-layer figures: the rank of the stop words and the share of words below the baseline, which the "
        "released per-word files hold (released=<folder>), and words whose contexts are all duplicates, which a run on "
        "the published weights measures."
    )
    return Derivation("single words", text, {})


def _ends(values: np.ndarray) -> tuple[float, float]:
    return float(np.nanmin(values)), float(np.nanmax(values))


def _row(values: list[float]) -> str:
    return ", ".join(f"{v:.3f}" for v in values)


def _pairs(steps: np.ndarray) -> str:
    return "layers " + ", ".join(f"{i} to {i + 1}" for i in steps.tolist())


def _static(name: str) -> dict[Key, np.ndarray]:
    """Table 1's rows of a model as curves by layer, NaN where the paper has none; of a file, one value."""
    rows = [row for row in published() if row.model == name]
    n_layers = max(row.layer or 0 for row in rows) + 1
    curves = {Key(MEASURE, benchmark): np.full(n_layers, np.nan) for benchmark in BENCHMARKS}
    for row in rows:
        for benchmark in BENCHMARKS:
            curves[Key(MEASURE, benchmark)][row.layer or 0] = row.scores[benchmark]
    return curves
