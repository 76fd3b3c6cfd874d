"""Queipo-de-Llano et al. (2025): do massive activations compress a layer, and is entropy over depth a valley?

A row of squared length M beside others of sum R makes the first singular value of the rows at least M + a R, where a is
how much of R lies along that row. So its share of the whole is p >= (c + a) / (c + 1), c = M / R, and the entropy of
all shares at most that of p and of r - 1 equal rests.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.drawn import INSTANCES, draw_instances, drawn_if_possible, theorem, theorem_claim
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Samples, TextSample, beyond_walks, measured, peaks
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, arXiv 2510.06477"
SHAPES = {"8 rows of d = 4": (8, 4), "12 rows of d = 30": (12, 30)}
LEAST_WORDS = 5


def shares(x: np.ndarray) -> np.ndarray:
    """Squared singular values of rows (n, d) as shares of their sum, descending."""
    squares = np.linalg.svd(x, compute_uv=False) ** 2
    return np.asarray(squares / squares.sum())


def entropy_of(p: np.ndarray) -> float:
    """- sum p log p, in nats."""
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def least_share(x: np.ndarray) -> float:
    """(c + a) / (c + 1): what the first row alone makes of the first singular value's share."""
    size, others = float(x[0] @ x[0]), x[1:]
    rest = float((others**2).sum())
    along = float(((others @ x[0]) ** 2).sum() / size / rest)
    return (size / rest + along) / (size / rest + 1)


def most_entropy(p: float, rank: int) -> float:
    """The largest entropy of `rank` shares of which one is at least p >= 1 / rank."""
    return entropy_of(np.array([p, *np.full(rank - 1, (1 - p) / (rank - 1))]))


def instance(n: int, d: int, rng: np.random.Generator) -> Mapping[str, float]:
    """Whether drawn rows, of which the first is up to a thousand times as long as the others, obey both bounds."""
    x = rng.normal(size=(n, d)) @ np.diag(rng.uniform(0.2, 2.0, d)) + rng.normal(size=d)
    x[0] *= 10 ** rng.uniform(0, 3)
    p, least = shares(x), least_share(x)
    rank = min(n, d)
    tolerance = 1e-9
    bound = most_entropy(max(least, 1 / rank), rank)
    return {
        "share": float(p[0] >= least - tolerance),
        "entropy": float(entropy_of(p) <= bound + tolerance),
    }


def drawn(instances: int = INSTANCES) -> Samples:
    """Instances of the theorem."""
    cases = {name: (partial(instance, n, d), (n, d)) for name, (n, d) in SHAPES.items()}
    return draw_instances("queipo_2025", "rows drawn here, one of them massive", cases, instances)


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """Mean over sentences: normalised matrix entropy (0 to 1)."""
    from ctxexp_measures.isotropy.sequence import MatrixEntropy

    measure = MatrixEntropy()
    sentences = sample.sentences(x, least=LEAST_WORDS)
    return {"entropy": float(np.nanmean([float(measure.score(rows)) / np.log(min(rows.shape)) for rows in sentences]))}


def sources(inputs: Inputs) -> list[Source]:
    """Drawn rows, and the offered decoders."""
    title = "sentences of the run's text, as tokenized"
    return [
        *drawn_if_possible(inputs, drawn),
        *measured(inputs, "queipo_2025", statistics, title=title, kinds=("decoder",)),
    ]


def valley(source: Samples) -> list[Check]:
    """Whether entropy is lower in a middle layer than in the first and the last, beyond what walks have."""
    checks = []
    members = source.of("decoder", statistic="entropy")
    for m in members:
        turned = -m.values["entropy"]
        check = peaks(m, turned, ways=len(members))
        if check.is_measured:
            check = beyond_walks(check, turned.mean(axis=0))
        checks.append(check)
    return checks


proven = partial(
    theorem_claim,
    reversal="rows for which it is otherwise",
    evidence="nothing but drawn rows, which `ctxexp claims paper=queipo_2025` makes",
    models=tuple(SHAPES),
    section="abstract",
    quote_source=ABSTRACT,
)
CLAIMS = (
    proven(
        id="one-direction",
        statement="A massive row makes one direction dominate: the first singular value's share has a lower bound.",
        quote="We prove theoretically that massive activations necessarily produce representational compression",
        test="the share is at least (c + a) / (c + 1), for rows of which one is up to a thousand times as long",
        check=partial(theorem, statistic="share"),
    ),
    proven(
        id="entropy-bound",
        statement="It bounds the entropy of the representation from above.",
        quote="establish bounds on the resulting entropy reduction",
        test="matrix entropy is at most that of one share at the bound and of equal rests",
        check=partial(theorem, statistic="entropy"),
    ),
    Claim(
        id="valley",
        section="3",
        statement="Entropy over depth is a valley: lower in the middle than at both ends.",
        quote="when the beginning-of-sequence token develops extreme activation norms in the middle layers, both "
        "compression valleys and attention sinks emerge simultaneously",
        quote_source=ABSTRACT,
        test="entropy in the middle layer chosen on the other samples, below the better of first and last layer: its "
        "interval, and the simultaneous one of any middle layer; and fewer than 5% of walks have as clear a valley",
        null="walks over layers, of which every second one has some valley",
        reason="0 for lower; 5% of walks for a valley that is no accident",
        reversal="decoders whose entropy is highest in the middle or goes from end to end, beyond what walks do; a "
        "valley so uneven that walks have it too stays open",
        evidence="the paper's models of 410M to 120B parameters on GSM8K; model= gives the same test of a decoder",
        check=valley,
        on=(Samples,),
        general="large language models",
        minis=False,
    ),
)


def paper() -> Paper:
    """The paper's claims on entropy; those on attention sinks and on setting activations to 0 aren't tried."""
    return Paper(
        name="queipo_2025",
        title="The claims of Queipo-de-Llano et al. (2025), Attention Sinks and Compression Valleys, tested",
        citation=(
            "Enrique Queipo-de-Llano, Álvaro Arroyo, Federico Barbero, Xiaowen Dong, Michael Bronstein, Yann LeCun and "
            "Ravid Shwartz-Ziv (2025), Attention Sinks and Compression Valleys in LLMs are Two Sides of the Same Coin. "
            "ICLR 2026"
        ),
        url="https://arxiv.org/abs/2510.06477",
        protocol=Protocol("of the theorem: any rows; of models: six decoders of 410M to 120B parameters on GSM8K"),
        claims=CLAIMS,
        sources=sources,
        abstract=("one-direction", "entropy-bound", "valley"),
        rule="Only the abstract and a figure's caption could be checked. The bounds are derived here, and may be "
        "worded otherwise in the paper; its sections are from memory.",
    )
