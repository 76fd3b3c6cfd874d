"""The claims on anisotropy, self-similarity and intra-sentence similarity (Ethayarajh 2019, Sections 4.1, 4.2, 6)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ctxexp.results.values import Key
from ctxexp_claims.checks import NONE, Bound, Check, accompanied, below, checked, in_layers, trend
from ctxexp_claims.evidence import PAPER, Family
from ctxexp_claims.verdict import Claim

ANISOTROPY, SELF, INTRA = Key("anisotropy", "mean_cosine"), "self_similarity", "intra_sentence_similarity"
ADJUSTED = Key(SELF, "adjusted")
LITERAL, MATCHED = "the paper's baseline", "the length-matched baseline"
LEVELS = {LITERAL: "adjusted", MATCHED: "size_matched_adjusted"}
ABOUT = 0.20  # the paper's own line for intra-sentence similarity
NEARLY_ALL, MOST = 0.9, 0.501  # shares of the layers
POSITIVE = Bound(above=0.0)
BOTH = "bert, elmo"  # whom a comparison of the two is of
RISES = f"the interval of Spearman's rho with the layer is above 0, that of its change along a line above {NONE}"
FALLS = f"the interval of Spearman's rho with the layer is below 0, that of its change along a line below -{NONE}"
RANGE = f"its interval lies within {NONE} of 0"


def each(family: Family, model: str, key: Key, test: Callable[..., Check], **options: Any) -> Check:
    """One of the tests of a curve on the newest run of the model that has it."""
    evidence = family.find(model, key)
    if evidence is None:
        return Check(model, said=lacking(family, model, key))
    return checked(model, partial(test, evidence, key, **options))


def lacking(family: Family, model: str, key: Key | str) -> str:
    """Why there is no such curve of the model."""
    if family.kind == "released":
        return f"{key} was not released"
    return f"no {key} in its runs" if family.find(model) else "no run"


def _per_model(
    family: Family, *, models: tuple[str, ...], key: Key, test: Callable[..., Check], **options: Any
) -> list[Check]:
    return [each(family, model, key, test, **options) for model in models]


def _intra(family: Family, *, models: tuple[str, ...], test: Callable[..., Check], **options: Any) -> list[Check]:
    return [
        each(family, model, Key(INTRA, level), test, **options).under(name)
        for name, level in LEVELS.items()
        for model in models
    ]


def _input_layers(family: Family) -> list[Check]:
    """ELMo's input layer within the margin of 0, the others' above it."""
    bounds = {"elmo": Bound(within=NONE), "bert": Bound(above=NONE), "gpt2": Bound(above=NONE)}
    return [each(family, model, ANISOTROPY, in_layers, only=0, bound=bound) for model, bound in bounds.items()]


def _accompanied(family: Family) -> list[Check]:
    found = []
    for model in PAPER:
        evidence = family.find(model, ANISOTROPY, ADJUSTED)
        if evidence is None:
            found.append(Check(model, said=lacking(family, model, f"{ANISOTROPY} with {ADJUSTED}")))
        else:
            found.append(checked(model, partial(accompanied, evidence, ANISOTROPY, ADJUSTED)))
    return found


def _most_contextual(family: Family) -> list[Check]:
    """GPT-2's last layer and the mean of its hidden layers against the others'."""
    found = []
    for other in ("bert", "elmo"):
        one, two = family.find("gpt2", ADJUSTED), family.find(other, ADJUSTED)
        if one is None or two is None:
            found.append(Check("gpt2", said=f"needs {ADJUSTED} of gpt2 and {other}"))
            continue
        found.append(checked("gpt2", partial(below, one, two, ADJUSTED, (-1, -1), where="last layers")))
        means = one.hidden(ADJUSTED), two.hidden(ADJUSTED)
        found.append(checked("gpt2", partial(below, *means, ADJUSTED, (0, 0), where="means of the hidden layers")))
    return found


def _elmo_and_bert(
    family: Family, *, one: tuple[str, int], other: tuple[str, int], within: float | None = None
) -> list[Check]:
    found = []
    for name in ("raw", "adjusted"):
        key = Key(SELF, name)
        a, b = family.find(one[0], key), family.find(other[0], key)
        if a is None or b is None:
            found.append(Check(BOTH, name, said=f"needs {key} of each"))
            continue
        check = checked(BOTH, partial(below, a, b, key, (one[1], other[1]), within))
        found.append(Check(**{**vars(check), "model": BOTH, "variant": name}))
    return found


CLAIMS = [
    Claim(
        "anisotropic", "4.1", "Representations are anisotropic in every layer but the input layer.",
        f"mean cosine of random occurrences: its interval is above {NONE} in every layer from 1",
        partial(_per_model, models=PAPER, key=ANISOTROPY, test=in_layers, bound=Bound(above=NONE)),
        PAPER,
    ),
    Claim(
        "elmo-input-isotropic", "4.1", "The only isotropic layer is ELMo's input layer.",
        f"mean cosine of random occurrences in layer 0: {RANGE} in ELMo, is above it in BERT and GPT-2",
        _input_layers,
        PAPER,
    ),
    Claim(
        "anisotropy-rises", "4.1", "They are generally more anisotropic in higher layers.",
        f"mean cosine of random occurrences: {RISES}",
        partial(_per_model, models=PAPER, key=ANISOTROPY, test=trend, rises=True),
        PAPER,
    ),
    Claim(
        "hidden-more-anisotropic", "4.1",
        "In all three models nearly all hidden layers are more anisotropic than the input layer.",
        f"mean cosine of random occurrences less the input layer's: its interval is above 0 in {NEARLY_ALL:.0%} of the "
        "hidden layers",
        partial(_per_model, models=PAPER, key=ANISOTROPY, test=in_layers, bound=POSITIVE, over=0, least=NEARLY_ALL),
        PAPER,
    ),
    Claim(
        "same-word-closer", "abstract",
        "A word's vectors in different contexts are more similar to each other than those of different words.",
        "adjusted self-similarity: its interval is above 0 in every layer from 1",
        partial(_per_model, models=PAPER, key=ADJUSTED, test=in_layers, bound=POSITIVE),
        PAPER,
    ),
    Claim(
        "self-similarity-falls", "4.2", "Upper layers are more context-specific: self-similarity falls with depth.",
        f"adjusted self-similarity: {FALLS}",
        partial(_per_model, models=PAPER, key=ADJUSTED, test=trend, rises=False),
        PAPER,
    ),
    Claim(
        "always-more-anisotropic", "6", "More context-specific always goes with more anisotropic.",
        "Spearman's rho of mean cosine and adjusted self-similarity over layers: its interval is below 0, with p < .05 "
        "over the layers; ELMo has too few to decide",
        _accompanied,
        ("bert", "gpt2"),
    ),
    Claim(
        "gpt2-most-contextual", "4.2", "GPT-2's representations are the most context-specific of the three.",
        "adjusted self-similarity below BERT's and ELMo's, as the mean of the hidden layers and in the last layer: the "
        "differences' intervals are below 0",
        _most_contextual,
        ("gpt2",),
    ),
    Claim(
        "gpt2-last-layer", "4.2", "Those of GPT-2's last layer are almost maximally context-specific.",
        f"adjusted self-similarity of the last layer: {RANGE}",
        partial(_per_model, models=("gpt2",), key=ADJUSTED, test=in_layers, only=-1, bound=Bound(within=NONE)),
        ("gpt2",),
    ),
    Claim(
        "elmo-sentence-rises", "4.2",
        "In ELMo, words of one sentence become more similar to each other in upper layers.",
        f"adjusted intra-sentence similarity: {RISES}",
        partial(_intra, models=("elmo",), test=trend, rises=True),
        ("elmo",),
        tuple(LEVELS),
    ),
    Claim(
        "bert-sentence-falls", "4.2",
        "In BERT, words of one sentence become more dissimilar to each other in upper layers.",
        f"adjusted intra-sentence similarity: {FALLS}",
        partial(_intra, models=("bert",), test=trend, rises=False),
        ("bert",),
        tuple(LEVELS),
    ),
    Claim(
        "bert-sentence-above", "4.2",
        "In all layers of BERT words of one sentence are more similar to each other than random words.",
        "adjusted intra-sentence similarity: its interval is above 0 in every layer",
        partial(_intra, models=("bert",), test=in_layers, bound=POSITIVE, first=0),
        ("bert",),
        tuple(LEVELS),
    ),
    Claim(
        "gpt2-sentence-none", "4.2",
        "In most layers of GPT-2 words of one sentence are no more similar to each other than random words.",
        f"adjusted intra-sentence similarity: {RANGE} in more than half of the layers",
        partial(_intra, models=("gpt2",), test=in_layers, bound=Bound(within=NONE), first=0, least=MOST),
        ("gpt2",),
        tuple(LEVELS),
    ),
    Claim(
        "gpt2-sentence-input", "4.2", "In GPT-2 that similarity is highest in the input layer.",
        "adjusted intra-sentence similarity less the input layer's: its interval is below 0 in every other layer",
        partial(_intra, models=("gpt2",), test=in_layers, bound=Bound(below=0.0), first=0, over=0),
        ("gpt2",),
        tuple(LEVELS),
    ),
    Claim(
        "sentence-above-line", "4.2",
        f"In ELMo and BERT the similarity of a sentence's words is above {ABOUT:.2f} in all layers but one.",
        f"adjusted intra-sentence similarity: its interval is above {ABOUT:.2f} in every layer but at most one",
        partial(_intra, models=("elmo", "bert"), test=in_layers, bound=Bound(above=ABOUT), first=0, spared=1),
        ("elmo", "bert"),
        tuple(LEVELS),
    ),
    Claim(
        "bert-last-below-elmo-2", "figure 2",
        "The self-similarity of BERT's last layer is below that of ELMo's second.",
        "self-similarity of BERT's last layer less ELMo's at layer 2: the difference's interval is below 0",
        partial(_elmo_and_bert, one=("bert", -1), other=("elmo", 2)),
        (BOTH,),
        ("raw", "adjusted"),
    ),
    Claim(
        "bert-last-close-to-elmo-2", "figure 2", "The two are very close.",
        f"the same difference: {RANGE}",
        partial(_elmo_and_bert, one=("bert", -1), other=("elmo", 2), within=NONE),
        (BOTH,),
        ("raw", "adjusted"),
    ),
    Claim(
        "elmo-2-below-bert-2", "figure 2", "The self-similarity of ELMo's second layer is below that of BERT's second.",
        "self-similarity of ELMo at layer 2 less BERT's at layer 2: the difference's interval is below 0",
        partial(_elmo_and_bert, one=("elmo", 2), other=("bert", 2)),
        (BOTH,),
        ("raw", "adjusted"),
    ),
]  # fmt: skip
