"""The claims on curves by layer (Ethayarajh 2019, abstract and Sections 4.1 to 4.3).

A trend over a dozen layers is hardly ever beyond what smooth walks show. That upper layers are more context-specific
than lower ones needs none: it is a statement on two sets of layers and no law of depth, so that halves are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from ctxexp.results import Estimates, Key
from ctxexp_papers.claims.checks import NONE, Bound, Check, below, checked, in_layers, trend
from ctxexp_papers.claims.evidence import Evidence, Family
from ctxexp_papers.claims.paper import Claim
from ctxexp_papers.papers.ethayarajh_2019.protocol import MODELS

ANISOTROPY, SELF, VARIANCE = Key("anisotropy", "mean_cosine"), "self_similarity", "max_explainable_variance"
RAW, ADJUSTED, CORRECTED = (Key(SELF, statistic) for statistic in ("raw", "adjusted", "share_of_room"))
SCALES = {"adjusted": ADJUSTED, "chance-corrected": CORRECTED}
"""Corrected: as a share of the room above chance, which can be compared with a margin, or between layers of other mean
cosines, since no adjusted value exceeds 1 - A."""
MANY_LAYERED = ("bert", "gpt2")  # ELMo's three layers decide no trend: every second walk rises throughout
READINGS = {
    f"{definition}, {baseline}": Key.of(measure, level)
    for definition, measure in (
        ("the released code", f"{VARIANCE}_released"),
        ("the uncentred share (Definition 3)", VARIANCE),
        ("the centred share", f"{VARIANCE}_centred"),
    )
    for baseline, level in (("sampled baseline", "adjusted"), ("size-matched baseline", "size_matched_adjusted"))
}
LINE = 0.05  # of variance


def each(family: Family, model: str, key: Key, test: Callable[..., Check], **options: Any) -> Check:
    """One of the tests of a curve on the newest run of the model that has it."""
    evidence = family.find(model, key)
    if evidence is None:
        return Check(model, text=lacking(family, model, key))
    return checked(model, partial(test, evidence, key, **options))


def lacking(family: Family, model: str, key: Key) -> str:
    """Why there is no such curve of the model."""
    if family.kind == "points":
        return f"{key} was not released"
    return f"no {key} in its runs" if family.find(model) else "no run"


def _within(family: Family, key: Key, bound: Bound) -> list[Check]:
    return [each(family, model, key, in_layers, bound=bound, ways=len(MODELS)) for model in MODELS]


def _falls(family: Family) -> list[Check]:
    """A trend by reading in all models, of which those of many layers decide."""
    return [
        each(family, model, key, trend, rises=False, ways=len(MANY_LAYERED)).under(name)
        for name, key in SCALES.items()
        for model in MODELS
    ]


def _explained(family: Family) -> list[Check]:
    return [
        check.under(reading) for reading, key in READINGS.items() for check in _within(family, key, Bound(below=LINE))
    ]


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


claim = partial(
    Claim,
    on=(Family,),
    models=MODELS,
    evidence="runs of the paper's weights on its text (python -m ctxexp -m experiment=ethayarajh_2019 "
    "weights=published model=bert,gpt2,elmo)",
    quote_source="the abstract, arXiv 1909.00512",
)
bound = partial(
    claim,
    null="a layer on the bound: of so many layers and models one would break or meet it by chance, so that intervals "
    "are widened for all that may",
    reason=f"0 where the paper says above or below; {NONE} where it says anisotropic or none, since untrained networks "
    "too exceed 0",
    reversal="a layer whose whole interval is on the other side, in any of the models",
)
CLAIMS = (
    bound(
        id="anisotropic",
        section="4.1",
        statement="Representations are anisotropic in every layer but the input layer.",
        quote="the contextualized representations of all words are not isotropic in any layer of the contextualizing "
        "model",
        test=f"mean cosine of random occurrences: its interval is above {NONE} in every layer from 1",
        check=partial(_within, key=ANISOTROPY, bound=Bound(above=NONE)),
    ),
    bound(
        id="same-word-closer",
        section="abstract",
        statement="A word's vectors in different contexts are more similar to each other than those of different "
        "words.",
        quote="representations of the same word in different contexts still have a greater cosine similarity than "
        "those of two different words",
        test="adjusted self-similarity: its interval is above 0 in every layer from 1",
        check=partial(_within, key=ADJUSTED, bound=Bound(above=0.0)),
    ),
    claim(
        id="self-similarity-falls",
        section="4.2",
        statement="Upper layers are more context-specific: self-similarity falls with depth.",
        quote="this self-similarity is much lower in upper layers",
        test="adjusted self-similarity, and as a share of its room, 1 - A: the interval of Spearman's rho with the "
        f"layer is below 0, beyond 95% of walks, that of its change along a line below -{NONE}; ELMo has too few "
        "layers to decide",
        null="walks of the curve's own steps, each up or down, and smooth walks: 5% go with depth as far",
        reason=f"a change of {NONE} at the least: less is none by the margin of equivalence",
        reversal="a run whose curve goes the other way, or no further than walks do",
        check=_falls,
        models=MANY_LAYERED,
        variants=tuple(SCALES),
    ),
    claim(
        id="upper-more-contextual",
        section="abstract",
        statement="The upper half of each model's hidden layers is more context-specific than the lower half.",
        quote="upper layers of contextualizing models produce more context-specific representations",
        test="mean self-similarity of the upper half of the hidden layers less that of the lower half, adjusted and as "
        "a share of the room above chance: the difference's interval below 0 in each model",
        null="the difference is 0, by its interval on the same resamples where runs share them",
        reason=f"0 for below and above; {NONE} for close",
        reversal="a difference's interval on the other side, in any of the readings",
        check=_upper_below_lower,
        variants=tuple(SCALES),
    ),
    bound(
        id="variance-below-5",
        section="4.3",
        statement="On average less than 5% of the variance in a word's representations can be explained by a static "
        "embedding.",
        quote="In all layers of ELMo, BERT, and GPT-2, on average, less than 5% of the variance in a word's "
        "contextualized representations can be explained by a static embedding for that word",
        test=f"adjusted maximum explainable variance: its interval is below {LINE} in every layer from 1, by "
        "definition and baseline",
        check=_explained,
        variants=tuple(READINGS),
    ),
)
