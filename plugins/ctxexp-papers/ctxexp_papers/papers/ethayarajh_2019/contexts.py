"""The claims on anisotropy, self-similarity and intra-sentence similarity (Ethayarajh 2019, Sections 4.1, 4.2, 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ctxexp.results import Key
from ctxexp_papers.claims.checks import NONE, Bound, Check, accompanied, below, checked, in_layers, trend
from ctxexp_papers.claims.evidence import Family
from ctxexp_papers.papers.ethayarajh_2019.claim import ASSOCIATION, BOUND, DIFFERENCE, TREND, claim
from ctxexp_papers.papers.ethayarajh_2019.protocol import MODELS

ANISOTROPY, SELF, INTRA = Key("anisotropy", "mean_cosine"), "self_similarity", "intra_sentence_similarity"
RAW, ADJUSTED, CORRECTED = (Key(SELF, statistic) for statistic in ("raw", "adjusted", "share_of_room"))
LITERAL, LENGTH_MATCHED = "the paper's baseline", "the length-matched baseline"
LEVELS = {LITERAL: "adjusted", LENGTH_MATCHED: "size_matched_adjusted"}
ROOM = {LITERAL: "share_of_room", LENGTH_MATCHED: "size_matched_share_of_room"}
"""By baseline, as a share of the room above chance: what can be compared with a margin, or between layers of other
mean cosines, since no adjusted value exceeds 1 - A."""
CHANCE_CORRECTED = "chance-corrected"
BOTH_SCALES = LEVELS | {f"{name}, {CHANCE_CORRECTED}": statistic for name, statistic in ROOM.items()}
SCALES = {"adjusted": ADJUSTED, CHANCE_CORRECTED: CORRECTED}
MANY_LAYERED = ("bert", "gpt2")  # ELMo's three layers decide no trend: every second walk rises throughout
ABOUT = 0.20  # the paper's own line for intra-sentence similarity
NEARLY_ALL, MOST = 0.9, 0.501  # shares of the layers
POSITIVE = Bound(above=0.0)
BOTH = "bert, elmo"  # whom a comparison of the two is of
WALKS = "beyond 95% of walks"
RISES = (
    f"the interval of Spearman's rho with the layer is above 0, {WALKS}, that of its change along a line above {NONE}"
)
FALLS = (
    f"the interval of Spearman's rho with the layer is below 0, {WALKS}, that of its change along a line below -{NONE}"
)
RANGE = f"its interval lies within {NONE} of 0"
SHARE = f"its interval lies within {NONE:.0%} of the room above the baseline, 1 - A,"


def each(family: Family, model: str, key: Key, test: Callable[..., Check], **options: Any) -> Check:
    """One of the tests of a curve on the newest run of the model that has it."""
    evidence = family.find(model, key)
    if evidence is None:
        return Check(model, text=lacking(family, model, key))
    return checked(model, partial(test, evidence, key, **options))


def lacking(family: Family, model: str, key: Key | str) -> str:
    """Why there is no such curve of the model."""
    if family.kind == "points":
        return f"{key} was not released"
    return f"no {key} in its runs" if family.find(model) else "no run"


def _per_model(
    family: Family, *, models: tuple[str, ...], key: Key, test: Callable[..., Check], **options: Any
) -> list[Check]:
    return [each(family, model, key, test, ways=len(models), **options) for model in models]


def _trends(family: Family, *, keys: Mapping[str, Key], rises: bool) -> list[Check]:
    """A trend by reading in all models, of which those of many layers decide."""
    return [
        each(family, model, key, trend, rises=rises, ways=len(MANY_LAYERED)).under(name)
        for name, key in keys.items()
        for model in MODELS
    ]


def _intra(
    family: Family,
    *,
    models: tuple[str, ...],
    test: Callable[..., Check],
    levels: Mapping[str, str] = LEVELS,
    **options: Any,
) -> list[Check]:
    return [
        each(family, model, Key.of(INTRA, level), test, ways=len(models), **options).under(name)
        for name, level in levels.items()
        for model in models
    ]


def _input_layers(family: Family) -> list[Check]:
    """ELMo's input layer within the margin of 0, the others' above it."""
    bounds = {"elmo": Bound(within=NONE), "bert": Bound(above=NONE), "gpt2": Bound(above=NONE)}
    return [each(family, model, ANISOTROPY, in_layers, only=0, bound=bound, ways=3) for model, bound in bounds.items()]


def _accompanied(family: Family) -> list[Check]:
    """Mean cosine against *raw* self-similarity: adjusted and corrected ones hold the mean cosine as a subtrahend, and
    would go against it if both were independent."""
    checks = []
    for model in MODELS:
        evidence = family.find(model, ANISOTROPY, RAW)
        if evidence is None:
            checks.append(Check(model, text=lacking(family, model, f"{ANISOTROPY} with {RAW}")))
        else:
            test = partial(accompanied, evidence, ANISOTROPY, RAW, guard=CORRECTED, ways=len(MANY_LAYERED))
            checks.append(checked(model, test))
    return checks


def _most_contextual(family: Family) -> list[Check]:
    """GPT-2's last layer and the mean of its hidden layers against the others', on both scales."""
    checks = []
    for name, key in SCALES.items():
        for other in ("bert", "elmo"):
            one, two = family.find("gpt2", key), family.find(other, key)
            if one is None or two is None:
                checks.append(Check("gpt2", name, text=f"needs {key} of gpt2 and {other}"))
                continue
            last = partial(below, one, two, key, (-1, -1), where="last layers", ways=4)
            checks.append(checked("gpt2", last).under(name))
            means = one.hidden(key), two.hidden(key)
            mean = partial(below, *means, key, (0, 0), where="means of the hidden layers", ways=4)
            checks.append(checked("gpt2", mean).under(name))
    return checks


def _last_layer(family: Family) -> list[Check]:
    """Almost maximally context-specific: of the room above chance a word's vectors use almost nothing, and they differ
    at all. Where all words are alike they don't, whatever the room says."""
    own = each(family, "gpt2", CORRECTED, in_layers, only=-1, bound=Bound(within=NONE), ways=2)
    alike = each(family, "gpt2", RAW, in_layers, only=-1, bound=Bound(below=1 - NONE), ways=2)
    return [own, replace(alike, text=f"{alike.text}: raw" if alike.is_measured else alike.text)]


def _elmo_and_bert(
    family: Family, *, one: tuple[str, int], other: tuple[str, int], within: float | None = None
) -> list[Check]:
    checks = []
    for name, key in {"raw": RAW, **SCALES}.items():
        a, b = family.find(one[0], key), family.find(other[0], key)
        if a is None or b is None:
            checks.append(Check(BOTH, name, text=f"needs {key} of each"))
            continue
        check = checked(BOTH, partial(below, a, b, key, (one[1], other[1]), within))
        checks.append(Check(**{**vars(check), "model": BOTH, "variant": name}))
    return checks


CLAIMS = [
    claim(
        "anisotropic", "4.1", "Representations are anisotropic in every layer but the input layer.",
        f"mean cosine of random occurrences: its interval is above {NONE} in every layer from 1",
        partial(_per_model, models=MODELS, key=ANISOTROPY, test=in_layers, bound=Bound(above=NONE)),
        MODELS,
        quote="the contextualized representations of all words are not isotropic in any layer of the contextualizing "
        "model",
        shape=BOUND,
    ),
    claim(
        "elmo-input-isotropic", "4.1", "The only isotropic layer is ELMo's input layer.",
        f"mean cosine of random occurrences in layer 0: {RANGE} in ELMo, is above it in BERT and GPT-2",
        _input_layers,
        MODELS,
        shape=BOUND,
    ),
    claim(
        "anisotropy-rises", "4.1", "They are generally more anisotropic in higher layers.",
        f"mean cosine of random occurrences: {RISES}; ELMo has too few layers to decide",
        partial(_trends, keys={"": ANISOTROPY}, rises=True),
        MANY_LAYERED,
        shape=TREND,
    ),
    claim(
        "hidden-more-anisotropic", "4.1",
        "In all three models nearly all hidden layers are more anisotropic than the input layer.",
        f"mean cosine of random occurrences less the input layer's: its interval is above 0 in {NEARLY_ALL:.0%} of the "
        "hidden layers",
        partial(_per_model, models=MODELS, key=ANISOTROPY, test=in_layers, bound=POSITIVE, over=0, least=NEARLY_ALL),
        MODELS,
        shape=BOUND,
    ),
    claim(
        "same-word-closer", "abstract",
        "A word's vectors in different contexts are more similar to each other than those of different words.",
        "adjusted self-similarity: its interval is above 0 in every layer from 1",
        partial(_per_model, models=MODELS, key=ADJUSTED, test=in_layers, bound=POSITIVE),
        MODELS,
        quote="representations of the same word in different contexts still have a greater cosine similarity than "
        "those of two different words",
        shape=BOUND,
    ),
    claim(
        "self-similarity-falls", "4.2", "Upper layers are more context-specific: self-similarity falls with depth.",
        f"adjusted self-similarity, and as a share of its room, 1 - A: {FALLS}; ELMo has too few layers to decide",
        partial(_trends, keys=SCALES, rises=False),
        MANY_LAYERED,
        tuple(SCALES),
        quote="this self-similarity is much lower in upper layers",
        shape=TREND,
    ),
    claim(
        "always-more-anisotropic", "6", "More context-specific always goes with more anisotropic.",
        f"Spearman's rho of mean cosine and raw self-similarity over layers: its interval is below 0, {WALKS}; fails "
        "only where chance-corrected self-similarity rises with it too; ELMo has too few layers to decide",
        _accompanied,
        MANY_LAYERED,
        shape=ASSOCIATION,
    ),
    claim(
        "gpt2-most-contextual", "4.2", "GPT-2's representations are the most context-specific of the three.",
        "adjusted self-similarity, and as a share of its room, below BERT's and ELMo's, as mean of the hidden layers "
        "and in the last layer: the differences' intervals are below 0",
        _most_contextual,
        ("gpt2",),
        tuple(SCALES),
        shape=DIFFERENCE,
    ),
    claim(
        "gpt2-last-layer", "4.2", "Those of GPT-2's last layer are almost maximally context-specific.",
        f"chance-corrected self-similarity of the last layer: {RANGE}; raw: its interval is below {1 - NONE}, so that "
        "a word's vectors differ at all",
        _last_layer,
        ("gpt2",),
        shape=BOUND,
    ),
    claim(
        "elmo-sentence-rises", "4.2",
        "In ELMo, words of one sentence become more similar to each other in upper layers.",
        f"adjusted intra-sentence similarity, and as a share of its room: {RISES}; three layers can't decide it",
        partial(_intra, models=("elmo",), test=trend, levels=BOTH_SCALES, rises=True),
        ("elmo",),
        tuple(BOTH_SCALES),
        shape=TREND,
    ),
    claim(
        "bert-sentence-falls", "4.2",
        "In BERT, words of one sentence become more dissimilar to each other in upper layers.",
        f"adjusted intra-sentence similarity, and as a share of its room: {FALLS}",
        partial(_intra, models=("bert",), test=trend, levels=BOTH_SCALES, rises=False),
        ("bert",),
        tuple(BOTH_SCALES),
        shape=TREND,
    ),
    claim(
        "bert-sentence-above", "4.2",
        "In all layers of BERT words of one sentence are more similar to each other than random words.",
        "adjusted intra-sentence similarity: its interval is above 0 in every layer",
        partial(_intra, models=("bert",), test=in_layers, bound=POSITIVE, first=0),
        ("bert",),
        tuple(LEVELS),
        shape=BOUND,
    ),
    claim(
        "gpt2-sentence-none", "4.2",
        "In most layers of GPT-2 words of one sentence are no more similar to each other than random words.",
        f"adjusted intra-sentence similarity: {SHARE} of 0 in more than half of the layers",
        partial(_intra, models=("gpt2",), test=in_layers, levels=ROOM, bound=Bound(within=NONE), first=0, least=MOST),
        ("gpt2",),
        tuple(LEVELS),
        shape=BOUND,
    ),
    claim(
        "gpt2-sentence-input", "4.2", "In GPT-2 that similarity is highest in the input layer.",
        "adjusted intra-sentence similarity, and as a share of its room, less the input layer's: its interval below 0 "
        "in every other layer",
        partial(_intra, models=("gpt2",), test=in_layers, levels=BOTH_SCALES, bound=Bound(below=0.0), first=0, over=0),
        ("gpt2",),
        tuple(BOTH_SCALES),
        shape=BOUND,
    ),
    claim(
        "sentence-above-line", "4.2",
        f"In ELMo and BERT the similarity of a sentence's words is above {ABOUT:.2f} in all layers but one.",
        f"adjusted intra-sentence similarity: its interval is above {ABOUT:.2f} in every layer but at most one",
        partial(_intra, models=("elmo", "bert"), test=in_layers, bound=Bound(above=ABOUT), first=0, spared=1),
        ("elmo", "bert"),
        tuple(LEVELS),
        shape=BOUND,
    ),
    claim(
        "bert-last-below-elmo-2", "figure 2",
        "The self-similarity of BERT's last layer is below that of ELMo's second.",
        "self-similarity of BERT's last layer less ELMo's at layer 2: the difference's interval is below 0",
        partial(_elmo_and_bert, one=("bert", -1), other=("elmo", 2)),
        (BOTH,),
        ("raw", *SCALES),
        shape=DIFFERENCE,
    ),
    claim(
        "bert-last-close-to-elmo-2", "figure 2", "The two are very close.",
        f"the same difference: {RANGE}",
        partial(_elmo_and_bert, one=("bert", -1), other=("elmo", 2), within=NONE),
        (BOTH,),
        ("raw", *SCALES),
        shape=DIFFERENCE,
    ),
    claim(
        "elmo-2-below-bert-2", "figure 2", "The self-similarity of ELMo's second layer is below that of BERT's second.",
        "self-similarity of ELMo at layer 2 less BERT's at layer 2: the difference's interval is below 0",
        partial(_elmo_and_bert, one=("elmo", 2), other=("bert", 2)),
        (BOTH,),
        ("raw", *SCALES),
        shape=DIFFERENCE,
    ),
]  # fmt: skip
