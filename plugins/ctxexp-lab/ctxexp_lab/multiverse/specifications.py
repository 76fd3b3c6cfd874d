"""Every way in which a sweep's runs measure one claim: an effect with its interval, and the choices behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from ctxexp import Results
from ctxexp.report import LabelledResults, full_title
from ctxexp.results import Key

if TYPE_CHECKING:
    import pandas as pd

CHOICES = ("model", "text", "definition", "centring", "norm", "first position", "pieces of a word", "baseline")
BASELINES = {"raw": "none", "adjusted": "as configured", "size_matched_adjusted": "size-matched"}
MEASURES = ("self_similarity", "max_explainable_variance")  # that fall where words are more context-specific
UNTRAINED = "untrained"  # the weights of a twin: the same shape with random weights
SAME = 1e-5  # curves that differ by less are equal but for rounding
MIN_DIFFERING = 3  # choices that must differ between runs for these to be a multiverse

Verdict = Literal["falls", "rises", "open"]


@dataclass(frozen=True, eq=False)
class Specification:
    """The measure in the last layer less that in the first, with a 95% interval on the same resamples.

    `choices` are in the order of CHOICES; `also` are other choices that give the very same numbers, as norms do under
    cosines. `curve` (n_layers,) has the layers that are known, `replicates` (n_layers, r) their resamples (r = 0:
    none), and `source` is the run.
    """

    choices: tuple[str, ...]
    effect: float
    low: float
    high: float
    curve: np.ndarray
    replicates: np.ndarray
    source: Results
    also: tuple[tuple[str, ...], ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Which side of 0 the interval lies on; open where it holds 0, or isn't known."""
        return "falls" if self.high < 0 else "rises" if self.low > 0 else "open"

    def options(self, choice: str) -> list[str]:
        """Those of a choice that give these numbers, sorted."""
        at = CHOICES.index(choice)
        return sorted({choices[at] for choices in (self.choices, *self.also)})


def specifications(runs: Sequence[LabelledResults], *, untrained: bool = False) -> list[Specification]:
    """The specifications of the trained runs, or of their untrained twins instead, distinct in their numbers, the
    lowest effect first.

    Empty unless the runs differ in three choices (beside definitions and baselines, of which each run has several).
    """
    sources = [results for _, results in runs if (results.info.model.weights == UNTRAINED) == untrained]
    choices = [_of_run(results) for results in sources]
    if sum(len(set(values)) > 1 for values in zip(*choices, strict=True)) < MIN_DIFFERING:
        return []
    by_choices: dict[tuple[str, ...], Specification] = {}
    for of, results in zip(choices, sources, strict=True):
        for one in _in_run(of, results):
            by_choices.setdefault(one.choices, one)
    return sorted(_distinct(list(by_choices.values())), key=lambda one: one.effect)


def _distinct(specs: Sequence[Specification]) -> list[Specification]:
    """One for all that give the same numbers of the same model, text and definition."""
    distinct: list[Specification] = []
    for one in specs:
        for i, other in enumerate(distinct):
            if one.choices[:3] == other.choices[:3] and _same(one, other):
                distinct[i] = replace(other, also=(*other.also, one.choices))
                break
        else:
            distinct.append(one)
    return distinct


def _same(one: Specification, other: Specification) -> bool:
    """Whether curves and resamples are equal, but for rounding."""
    if one.curve.shape != other.curve.shape or one.replicates.shape != other.replicates.shape:
        return False
    return np.allclose(one.curve, other.curve, rtol=0, atol=SAME) and np.allclose(
        one.replicates, other.replicates, rtol=0, atol=10 * SAME
    )


def all_paired(specs: Sequence[Specification]) -> bool:
    """Whether all have resamples, and of one text with one seed: the same ones."""
    first = specs[0]
    return all(
        one.replicates.size > 0
        and one.replicates.shape == first.replicates.shape
        and one.source.info.shares_resamples(first.source.info)
        for one in specs
    )


def differing_choices(specs: Sequence[Specification]) -> dict[str, list[str]]:
    """The choices that differ, each with its options, sorted."""
    options = {name: sorted({option for one in specs for option in one.options(name)}) for name in CHOICES}
    return {name: those for name, those in options.items() if len(those) > 1}


def frame(specs: Sequence[Specification]) -> pd.DataFrame:
    """A row a specification: its choices (`a or b` where both give the same), effect, interval and verdict."""
    import pandas as pd

    rows = [
        {**{name: " or ".join(one.options(name)) for name in CHOICES}, "effect": one.effect, "low": one.low,
         "high": one.high, "verdict": one.verdict}
        for one in specs
    ]  # fmt: skip
    return pd.DataFrame(rows)


def variance_share(specs: Sequence[Specification], choice: str) -> float:
    """Share of the effects' variance that lies between a choice's options, in [0, 1]: how much hangs on it alone.

    Each set of choices counts once, also one whose numbers another gives too: else a choice that changes nothing would
    seem to, because it is absent where others differ.
    """
    at = CHOICES.index(choice)
    every = [(one.effect, choices[at]) for one in specs for choices in (one.choices, *one.also)]
    effects, options = np.array([effect for effect, _ in every]), np.array([option for _, option in every])
    total = float(((effects - effects.mean()) ** 2).sum())
    between = sum(
        (options == option).sum() * float(effects[options == option].mean() - effects.mean()) ** 2
        for option in set(options.tolist())
    )
    return between / total if total > 0 else float("nan")


def _of_run(results: Results) -> tuple[str, str, str, str, str, str]:
    """Model, text, centring, norm, first position, pieces of a word: what a whole run has chosen."""
    info = results.info
    name = str(info.transform.arguments.get("name", info.transform.name))
    centred = name == "center" or (name == "unit_norm" and bool(info.transform.arguments.get("centred")))
    other = name if name not in ("none", "center", "unit_norm") else ""
    return (
        info.model.name or info.model.encoder,
        info.corpus.name,
        other or ("centred" if centred else "as it is"),
        "normalized" if name == "unit_norm" else "as it is",
        "measured" if info.control == "none" else info.control,
        str(info.model.details.get("pooling") or "word"),
    )


def _in_run(of: Sequence[str], results: Results) -> list[Specification]:
    model, text, centring, norm, first, pieces = of
    specs = []
    for label, about in results.info.measures.items():
        if about.name not in MEASURES:
            continue
        title = full_title(label, "", [results])
        for statistic, baseline in BASELINES.items():
            key = Key.of(label, statistic)
            if key not in results.by_key:
                continue
            value = results.by_key[key].value
            layers = np.flatnonzero(np.isfinite(value))
            if len(layers) < 2:
                continue
            change = results.difference(results, key, layers=[int(layers[-1])], others=[int(layers[0])])
            is_matched = key.baseline or (statistic == "adjusted" and about.level == BASELINES["size_matched_adjusted"])
            level = BASELINES["size_matched_adjusted"] if is_matched else baseline
            choices = (model, text, title, centring, norm, first, pieces, level)
            replicates = results.replicates.get(key, np.empty((len(value), 0)))[layers].astype(np.float64)
            effect, low, high = (float(part[0]) for part in change)
            specs.append(Specification(choices, effect, low, high, value[layers], replicates, results))
    return specs
