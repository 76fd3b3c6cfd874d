"""Queipo-de-Llano et al. (2025): massive activations make the compression valley. A theorem, and decoders."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import (
    NEEDED,
    Sampled,
    Samples,
    TextSample,
    always,
    drawn_if_possible,
    in_layers,
    measured,
    middle,
)  # fmt: skip
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, arXiv 2510.06477"
WHOLE, LATER, UNIT = "as tokenized", "without first words", "at norm 1"
CONTROLS = (LATER, UNIT)
CASES = {"n = 12, d = 32": (12, 32), "n = 100, d = 32": (100, 32)}
INSTANCES, SENTENCES = 100, 400


def instance(n: int, d: int, rng: np.random.Generator) -> Mapping[str, float]:
    """Whether one long row bounds a drawn matrix's first singular value from below and its entropy from above.

    With M the long row's squared length, R that of the others together and a their mean squared cosine to it weighted
    by squared length: s_1^2 >= M + a R, and with p = (M + a R) / (M + R) and r the rank the entropy is at most
    -p log p - (1 - p) log(1 - p) + (1 - p) log(r - 1), where p is at least 1 / r.
    """
    from ctxexp_isotropy.sequence import MatrixEntropy

    x = rng.normal(size=(n, d)) + rng.uniform(0, 2) * rng.normal(size=d)
    x[0] *= np.exp(rng.uniform(0, 8))
    lengths = (x**2).sum(axis=1)
    cosines = (x[1:] @ x[0]) ** 2 / (lengths[1:] * lengths[0])
    first, others = lengths[0], lengths[1:].sum()
    along = float(cosines @ lengths[1:])
    p, rank = min((first + along) / (first + others), 1.0), min(n, d)
    parts = np.array([p, 1 - p])
    bound = -float(np.sum(parts * np.log(np.maximum(parts, 1e-300)))) + (1 - p) * np.log(rank - 1)
    largest = np.linalg.norm(x, 2) ** 2
    entropy = float(MatrixEntropy().score(x))
    return {
        "singular value": float(largest >= (first + along) * (1 - 1e-12)),
        "entropy": float(p < 1 / rank or entropy <= bound + 1e-9),
    }


def drawn(instances: int = INSTANCES) -> Samples:
    """Instances of the theorem."""
    members = []
    for number, (name, (n, d)) in enumerate(CASES.items()):
        rng = np.random.default_rng([0, number])
        rows = [instance(n, d, rng) for _ in range(instances)]
        members.append(Sampled(name, {key: np.array([[row[key]] for row in rows]) for key in rows[0]}))
    command = "python -m ctxexp claims paper=queipo_2025"
    return Samples("protocol", "matrices with one long row, drawn here", command=command, members=members)


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """Matrix entropy of the sample's sentences over the log of their length, 0 to 1: of all words, of all but the
    first, and of all at norm 1."""
    from ctxexp_isotropy.sequence import MatrixEntropy

    measure = MatrixEntropy()
    unit = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.finfo(np.float64).tiny)

    def mean(parts: list[np.ndarray]) -> float:
        return float(np.nanmean([measure.score(p) / np.log(min(p.shape)) for p in parts]))

    whole = sample.sentences(x, least=4)
    return {WHOLE: mean(whole), LATER: mean([p[1:] for p in whole]), UNIT: mean(sample.sentences(unit, least=4))}


def depth(values: np.ndarray, at: int) -> np.ndarray:
    """(samples,) how far entropy in a layer lies below the lower of the first and the last."""
    return np.minimum(values[:, 0], values[:, -1]) - values[:, at]


def valley(source: Samples) -> list[Check]:
    """Whether the middle layer has less entropy than either end."""
    members = source.of("decoder", statistic=WHOLE)
    return [
        in_layers(
            Sampled(m.model, {}), depth(m.values[WHOLE], middle(m))[:, None], Bound(above=NONE), ways=len(members)
        )
        for m in members
    ]


def made_by_it(source: Samples) -> list[Check]:
    """Whether the valley is less deep without the first words, and at norm 1."""
    checks = []
    members = source.of("decoder", statistic=WHOLE)
    for name in CONTROLS:
        for m in members:
            at = middle(m)
            less = (depth(m.values[WHOLE], at) - depth(m.values[name], at))[:, None]
            checks.append(in_layers(Sampled(m.model, {}), less, Bound(above=NONE), ways=len(members)).under(name))
    return checks


def all_of_it(source: Samples) -> list[Check]:
    """Whether nothing is left of the valley without them."""
    checks = []
    members = source.of("decoder", statistic=WHOLE)
    for name in CONTROLS:
        for m in members:
            left = depth(m.values[name], middle(m))[:, None]
            checks.append(in_layers(Sampled(m.model, {}), left, Bound(below=NONE), ways=len(members)).under(name))
    return checks


def sources(inputs: Inputs) -> list[Source]:
    """Drawn matrices, and sentences of the offered decoders."""
    kept = {"kinds": ("decoder",), "sentences": SENTENCES, "twins": False}
    return [
        *drawn_if_possible(drawn),
        *measured(
            inputs, "queipo_2025", statistics, title="words by their first pieces, as tokenized",
            options=("model.pooling=first",), **kept,  # type: ignore[arg-type]
        ),
    ]  # fmt: skip


def theorem(source: Samples, statistic: str) -> list[Check]:
    return [always(m, statistic) for m in source.of(statistic=statistic)]


claim = partial(Claim, on=(Samples,), quote_source=ABSTRACT)
proven = partial(
    claim,
    section="3",
    quote="We prove theoretically that massive activations necessarily produce representational compression and "
    "establish bounds on the resulting entropy reduction.",
    null="a theorem has none: one drawn matrix against it refutes it",
    reason=f"all of {INSTANCES} drawn matrices: a share of 5% that breaks it would be seen",
    reversal="a matrix that breaks the bound",
    evidence="nothing but drawn matrices, which `ctxexp claims paper=queipo_2025` makes",
    models=tuple(CASES),
)
found = partial(
    claim,
    null="a depth on the margin, in the middle layer, which is fixed beforehand",
    reason=f"{NONE} of the greatest entropy that a sentence of its length can have",
    evidence=f"decoders of 410M to 120B parameters on GSM8K; model=smollm2 gives the same tests ({NEEDED})",
)
CLAIMS = (
    proven(
        id="one-row-rules",
        statement="One long row bounds the first singular value from below.",
        test="s_1^2 of a drawn matrix is at least M + a R (`instance`)",
        check=partial(theorem, statistic="singular value"),
    ),
    proven(
        id="entropy-bounded",
        statement="It bounds the matrix entropy from above.",
        test="the entropy of a drawn matrix is at most the bound (`instance`; derived here: the paper's own form could "
        "not be checked)",
        check=partial(theorem, statistic="entropy"),
    ),
    found(
        id="valley",
        section="4",
        statement="In the middle layer sentences have less entropy than in the first and the last.",
        quote="",
        quote_source="",
        test="the lower of the entropies at both ends less that in the middle layer, each over the log of the "
        "sentence's length: its interval over samples of sentences above .05",
        reversal="decoders without a valley",
        check=valley,
    ),
    found(
        id="massive-makes-it",
        section="4",
        statement="The first word's massive activations make it.",
        quote="when the beginning-of-sequence token develops extreme activation norms in the middle layers, both "
        "compression valleys and attention sinks emerge simultaneously",
        test="the valley's depth less that without first words, and less that of vectors at norm 1: intervals "
        "above .05",
        reversal="a valley as deep without the first word",
        check=made_by_it,
        variants=CONTROLS,
    ),
    found(
        id="nothing-else",
        section="4",
        statement="Without them there is no valley.",
        quote="",
        quote_source="",
        test="the depth that is left without first words, and at norm 1: intervals below .05",
        reversal="a valley that is left",
        check=all_of_it,
        variants=CONTROLS,
    ),
)


def paper() -> Paper:
    """The paper's claims; those on attention sinks aren't tried."""
    return Paper(
        name="queipo_2025",
        title="The claims of Queipo-de-Llano et al. (2025), Attention Sinks and Compression Valleys, tested",
        citation=(
            "Enrique Queipo-de-Llano, Álvaro Arroyo, Federico Barbero, Xiaowen Dong, Michael Bronstein, Yann LeCun "
            "and Ravid Shwartz-Ziv (2025), Attention Sinks and Compression Valleys in LLMs are Two Sides of the Same "
            "Coin. ICLR 2026"
        ),
        url="https://arxiv.org/abs/2510.06477",
        protocol=Protocol("of the theorem: any matrix with a long row; of models: six decoders on GSM8K"),
        claims=CLAIMS,
        sources=sources,
        abstract=("entropy-bounded", "massive-makes-it"),
    )
