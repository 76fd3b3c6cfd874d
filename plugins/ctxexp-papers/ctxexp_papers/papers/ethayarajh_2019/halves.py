"""Are upper layers more context-specific than lower ones? Halves of the layers are compared, which needs no trend.

A trend over a dozen layers is hardly ever beyond what smooth walks show. What the paper concludes needs none: that
upper layers, as they are in these models, are more context-specific than lower ones. This is a statement on these two
sets of layers and no law of depth.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ctxexp.results import Estimates, Key
from ctxexp_papers.claims.checks import Check, below, checked
from ctxexp_papers.claims.evidence import Evidence, Family
from ctxexp_papers.papers.ethayarajh_2019.claim import DIFFERENCE, claim
from ctxexp_papers.papers.ethayarajh_2019.contexts import SCALES, lacking
from ctxexp_papers.papers.ethayarajh_2019.protocol import MODELS


def half(evidence: Evidence, key: Key, *, upper: bool) -> Evidence:
    """The mean of a curve over the upper or the lower half of the hidden layers (a middle one belongs to neither), as
    evidence of one layer; its interval is the mean of theirs, as if layers erred together, but for replicates."""
    hidden = len(evidence.by_key[key].value) - 1
    layers = slice(-(hidden // 2), None) if upper else slice(1, 1 + hidden // 2)
    means = {key: Estimates(*(end[layers].mean(keepdims=True) for end in evidence.by_key[key]))}
    replicates = (
        {key: evidence.replicates[key][layers].mean(axis=0, keepdims=True)} if key in evidence.replicates else {}
    )
    return replace(evidence, by_key=means, replicates=replicates)


def _upper_below_lower(family: Family) -> list[Check]:
    checks = []
    for name, key in SCALES.items():
        for model in MODELS:
            evidence = family.find(model, key)
            if evidence is None:
                checks.append(Check(model, name, text=lacking(family, model, key)))
                continue
            upper, lower = half(evidence, key, upper=True), half(evidence, key, upper=False)
            test = partial(below, upper, lower, key, (0, 0), where="upper half and lower half", ways=len(MODELS))
            checks.append(checked(model, test).under(name))
    return checks


CLAIM = claim(
    "upper-more-contextual",
    "abstract",
    "The upper half of each model's hidden layers is more context-specific than the lower half.",
    "mean self-similarity of the upper half of the hidden layers less that of the lower half, adjusted and as a "
    "share of the room above chance: the difference's interval below 0 in each model",
    _upper_below_lower,
    MODELS,
    tuple(SCALES),
    quote="upper layers of contextualizing models produce more context-specific representations",
    shape=DIFFERENCE,
)
