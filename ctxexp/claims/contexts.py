"""The claims on anisotropy, self-similarity and intra-sentence similarity (Ethayarajh 2019, Sections 4.1 and 4.2)."""

from __future__ import annotations

from functools import partial

from ctxexp.claims.checks import Check, every_layer, missing, smaller, trend
from ctxexp.claims.evidence import PAPER, Family
from ctxexp.claims.verdict import Claim

ANISOTROPY, SELF, INTRA = "anisotropy/mean_cosine", "self_similarity", "intra_sentence_similarity"
LITERAL, MATCHED = "the paper's baseline", "the length-matched baseline"
LEVELS = {LITERAL: "adjusted", MATCHED: "size_matched_adjusted"}
MAXIMAL = 0.05  # adjusted self-similarity below this is nearly maximal context-specificity (0)
ABOUT = 0.20  # the paper's own line for intra-sentence similarity
BOTH = "bert, elmo"  # whom a comparison of the two is of
CLOSE = 0.05  # two self-similarities nearer than this are close


def each(family: Family, model: str, key: str, test: object, **options: object) -> Check:
    """One of the tests of a curve on the newest run of the model that has it."""
    evidence = family.find(model, key)
    if evidence is None:
        return missing(model, lacking(family, model, key))
    check: Check = test(evidence, key, interval=family.kind != "released", **options)  # type: ignore[operator]
    return check


def lacking(family: Family, model: str, key: str) -> str:
    """Why there is no such curve of the model."""
    if family.kind == "released":
        return f"{key} was not released"
    return f"no {key} in its runs" if family.find(model) else "no run"


def _per_model(family: Family, *, models: tuple[str, ...], key: str, test: object, **options: object) -> list[Check]:
    return [each(family, model, key, test, **options) for model in models]


def _intra(family: Family, *, models: tuple[str, ...], test: object, **options: object) -> list[Check]:
    return [
        each(family, model, f"{INTRA}/{level}", test, **options).under(name)
        for name, level in LEVELS.items()
        for model in models
    ]


def _most_contextual(family: Family) -> list[Check]:
    key = f"{SELF}/adjusted"
    found = []
    for other in ("bert", "elmo"):
        one, two = family.find("gpt2", key), family.find(other, key)
        if one is None or two is None:
            found.append(missing("gpt2", f"needs {key} of gpt2 and {other}"))
            continue
        hidden = list(range(1, len(one.curves[key]))), list(range(1, len(two.curves[key])))
        for layers, words in ((hidden, "mean of the hidden layers"), ((-1, -1), "last layer")):
            check = smaller(one, two, key, layers, interval=family.kind != "released")
            found.append(Check(**{**vars(check), "said": f"{words}: {check.said}"}))
    return found


def _nearly_maximal(family: Family) -> list[Check]:
    key = f"{SELF}/adjusted"
    evidence = family.find("gpt2", key)
    if evidence is None:
        return [missing("gpt2", lacking(family, "gpt2", key))]
    last = len(evidence.curves[key]) - 1
    check = each(family, "gpt2", key, every_layer, within=MAXIMAL, first=last)
    raw = evidence.curve(f"{SELF}/raw")
    beside = f"; raw, the words' vectors have a mean cosine of {raw[last]:.3f} there" if raw is not None else ""
    return [Check(**{**vars(check), "said": f"layer {last}{beside}"})]


def _elmo_and_bert(family: Family, *, one: tuple[str, int], other: tuple[str, int], close: bool = False) -> list[Check]:
    found = []
    for name in ("raw", "adjusted"):
        key = f"{SELF}/{name}"
        a, b = family.find(one[0], key), family.find(other[0], key)
        if a is None or b is None:
            found.append(missing(BOTH, f"needs {key} of each").under(name))
            continue
        check = smaller(a, b, key, (one[1], other[1]), interval=family.kind != "released")
        passed = check.passed
        if close and passed is not None:
            ends = [v for v in (check.effect, check.low, check.high) if v == v]
            passed = max(map(abs, ends)) < CLOSE
        found.append(Check(**{**vars(check), "model": BOTH, "variant": name, "passed": passed}))
    return found


CLAIMS = [
    Claim(
        "anisotropic",
        "Representations are anisotropic in every layer but the input layer.",
        "mean cosine of random occurrences: its interval is above 0 in every layer from 1",
        partial(_per_model, models=PAPER, key=ANISOTROPY, test=every_layer, above=0.0),
        PAPER,
    ),
    Claim(
        "anisotropy-rises",
        "They are generally more anisotropic in higher layers.",
        "Spearman's rho of layer and mean cosine of random occurrences: its interval is above 0",
        partial(_per_model, models=PAPER, key=ANISOTROPY, test=trend, rises=True),
        PAPER,
    ),
    Claim(
        "same-word-closer",
        "A word's vectors in different contexts are more similar to each other than those of different words.",
        "adjusted self-similarity: its interval is above 0 in every layer from 1",
        partial(_per_model, models=PAPER, key=f"{SELF}/adjusted", test=every_layer, above=0.0),
        PAPER,
    ),
    Claim(
        "self-similarity-falls",
        "Upper layers are more context-specific: self-similarity falls with depth.",
        "Spearman's rho of layer and adjusted self-similarity: its interval is below 0",
        partial(_per_model, models=PAPER, key=f"{SELF}/adjusted", test=trend, rises=False),
        PAPER,
    ),
    Claim(
        "gpt2-most-contextual",
        "GPT-2's representations are the most context-specific of the three.",
        "adjusted self-similarity below BERT's and ELMo's, as the mean of the hidden layers and in the last layer: the "
        "differences' intervals are below 0",
        _most_contextual,
        ("gpt2",),
    ),
    Claim(
        "gpt2-last-layer",
        "Those of GPT-2's last layer are almost maximally context-specific.",
        f"adjusted self-similarity of the last layer: its interval lies within {MAXIMAL} of 0",
        _nearly_maximal,
        ("gpt2",),
    ),
    Claim(
        "elmo-sentence-rises",
        "In ELMo, words of one sentence become more similar to each other in upper layers.",
        "Spearman's rho of layer and adjusted intra-sentence similarity: its interval is above 0",
        partial(_intra, models=("elmo",), test=trend, rises=True),
        ("elmo",),
        tuple(LEVELS),
    ),
    Claim(
        "bert-sentence-falls",
        "In BERT, words of one sentence become more dissimilar to each other in upper layers.",
        "Spearman's rho of layer and adjusted intra-sentence similarity: its interval is below 0",
        partial(_intra, models=("bert",), test=trend, rises=False),
        ("bert",),
        tuple(LEVELS),
    ),
    Claim(
        "gpt2-sentence-none",
        "In GPT-2, words of one sentence are no more similar to each other than random words.",
        f"adjusted intra-sentence similarity: its interval lies within {ABOUT:.2f} of 0 in every layer",
        partial(_intra, models=("gpt2",), test=every_layer, within=ABOUT, first=0),
        ("gpt2",),
        tuple(LEVELS),
    ),
    Claim(
        "sentence-above-line",
        f"In ELMo and BERT words of one sentence share more than chance: above {ABOUT:.2f} in all layers but one.",
        f"adjusted intra-sentence similarity: its interval is above {ABOUT:.2f} in every layer but at most one",
        partial(_intra, models=("elmo", "bert"), test=every_layer, above=ABOUT, first=0, spared=1),
        ("elmo", "bert"),
        tuple(LEVELS),
    ),
    Claim(
        "bert-last-below-elmo-2",
        "The self-similarity of BERT's last layer is below that of ELMo's second.",
        "self-similarity of BERT's last layer less ELMo's at layer 2: the difference's interval is below 0",
        partial(_elmo_and_bert, one=("bert", -1), other=("elmo", 2)),
        (BOTH,),
        ("raw", "adjusted"),
    ),
    Claim(
        "bert-last-close-to-elmo-2",
        "The two are very close.",
        f"the same difference: its interval lies within {CLOSE} of 0",
        partial(_elmo_and_bert, one=("bert", -1), other=("elmo", 2), close=True),
        (BOTH,),
        ("raw", "adjusted"),
    ),
    Claim(
        "elmo-2-below-bert-2",
        "The self-similarity of ELMo's second layer is below that of BERT's second.",
        "self-similarity of ELMo at layer 2 less BERT's at layer 2: the difference's interval is below 0",
        partial(_elmo_and_bert, one=("elmo", 2), other=("bert", 2)),
        (BOTH,),
        ("raw", "adjusted"),
    ),
]
