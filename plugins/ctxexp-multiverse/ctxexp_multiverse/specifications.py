"""Every way in which a sweep's runs measure one claim: an effect with its interval, and the choices behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ctxexp.report.differences import difference
from ctxexp.report.side_by_side import full_title
from ctxexp.report.wording import Run, by_size, one_line
from ctxexp.results import Results
from ctxexp.results.values import LAYER, Key

if TYPE_CHECKING:
    import pandas as pd

CHOICES = ("model", "text", "definition", "centring", "norm", "first position", "unit", "baseline")
BASELINES = {"raw": "none", "adjusted": "as configured", "size_matched_adjusted": "size-matched"}
MEASURES = ("self_similarity", "max_explainable_variance")  # that fall where words are more context-specific
VARIED = 3  # choices that must differ between runs for these to be a multiverse

Verdict = Literal["falls", "rises", "open"]


class Specification(NamedTuple):
    """The measure in the last layer less that in the first, with a 95% interval on the same resamples."""

    choices: tuple[str, ...]  # in the order of CHOICES
    effect: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """Which side of 0 the interval lies on; open where it holds 0, or isn't known."""
        return "falls" if self.high < 0 else "rises" if self.low > 0 else "open"


def specifications(runs: Sequence[Run]) -> list[Specification]:
    """Those of the runs, the lowest effect first; none unless the runs differ in three choices (beside definitions and
    baselines, of which each run has several)."""
    told = [_of_run(results) for _, results in runs]
    if sum(len(set(values)) > 1 for values in zip(*told, strict=True)) < VARIED:
        return []
    found: dict[tuple[str, ...], Specification] = {}
    for of, (_, results) in zip(told, runs, strict=True):
        for one in _in_run(of, results):
            found.setdefault(one.choices, one)
    return sorted(found.values(), key=lambda one: one.effect)


def varied(found: Sequence[Specification]) -> dict[str, list[str]]:
    """The choices that differ, with their options in the order of appearance among the sorted choices."""
    columns = zip(CHOICES, zip(*(one.choices for one in found), strict=True), strict=True)
    return {name: sorted(set(values)) for name, values in columns if len(set(values)) > 1}


def frame(found: Sequence[Specification]) -> pd.DataFrame:
    """A row a specification: its choices, effect, interval and verdict."""
    import pandas as pd

    rows = [
        {**dict(zip(CHOICES, one.choices, strict=True)), "effect": one.effect, "low": one.low, "high": one.high,
         "verdict": one.verdict}
        for one in found
    ]  # fmt: skip
    return pd.DataFrame(rows)


def weight(found: Sequence[Specification], choice: str) -> float:
    """Share of the effects' variance that lies between a choice's options, in [0, 1]: how much hangs on it alone."""
    at = CHOICES.index(choice)
    effects = np.array([one.effect for one in found])
    options = np.array([one.choices[at] for one in found])
    total = float(((effects - effects.mean()) ** 2).sum())
    between = sum(
        (options == option).sum() * float(effects[options == option].mean() - effects.mean()) ** 2
        for option in set(options.tolist())
    )
    return between / total if total > 0 else float("nan")


def _of_run(results: Results) -> tuple[str, str, str, str, str, str]:
    """Model, text, centring, norm, first position, unit: what a whole run has chosen."""
    info = results.info
    name = str(info.transform.arguments.get("name", info.transform.name))
    centred = name == "center" or (name == "unit_norm" and bool(info.transform.arguments.get("centred")))
    other = name if name not in ("none", "center", "unit_norm") else ""
    return (
        one_line(info.model.name or info.model.encoder),
        one_line(info.corpus.name),
        other or ("centred" if centred else "as it is"),
        "unit" if name == "unit_norm" else "as it is",
        "measured" if info.control == "none" else one_line(info.control),
        str(info.model.details.get("pooling") or "word"),
    )


def _in_run(of: Sequence[str], results: Results) -> list[Specification]:
    model, text, centring, norm, first, unit = of
    found = []
    for label, about in results.info.measures.items():
        if about.name not in MEASURES:
            continue
        title = full_title(label, "", [results])
        for statistic, baseline in BASELINES.items():
            key = Key(label, statistic, "", LAYER)
            if key not in results.held:
                continue
            value = results.held[key].value
            known = np.flatnonzero(np.isfinite(value))
            if len(known) < 2:
                continue
            moved = difference(results, results, key, layers=[int(known[-1])], others=[int(known[0])])
            level = BASELINES["size_matched_adjusted"] if by_size(results, key) else baseline
            choices = (model, text, title, centring, norm, first, unit, level)
            found.append(Specification(choices, *(float(part[0]) for part in moved)))
    return found
