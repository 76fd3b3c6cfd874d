"""Godey, de la Clergerie & Sagot (2024): is anisotropy inherent to self-attention?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Sampled, Samples, TextSample, in_layers, measured
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, arXiv 2401.12143"


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """The mean cosine of random words, and of all but first words."""
    from ctxexp.maths import mean_cosine

    return {"cosine": float(mean_cosine(x)), "later": float(mean_cosine(x[~sample.is_first]))}


def sources(inputs: Inputs) -> list[Source]:
    """The offered Transformers."""
    return [*measured(inputs, "godey_2024", statistics, title="the run's text", kinds=("decoder", "encoder"))]


def inherent(source: Samples) -> list[Check]:
    """Whether every hidden layer of every Transformer is anisotropic."""
    members = source.of("decoder", "encoder", statistic="cosine")
    checks = []
    for name, statistic in READINGS.items():
        for m in members:
            hidden = Sampled(m.model, {}, m.layers[1:])
            check = in_layers(hidden, m.values[statistic][:, 1:], Bound(above=NONE), ways=len(members))
            checks.append(check.under(name))
    return checks


READINGS = {"all words": "cosine", "without first words": "later"}
CLAIMS = (
    Claim(
        id="inherent",
        section="3",
        statement="Every hidden layer of every Transformer is anisotropic.",
        quote="Our observations suggest that anisotropy is actually inherent to Transformers-based models.",
        quote_source=ABSTRACT,
        test="the mean cosine of random words: its interval over samples of sentences above .05 in every hidden layer",
        reversal="a trained Transformer with an isotropic layer",
        check=inherent,
        variants=tuple(READINGS),
        contradicts=("machina_2024/isotropic-exists",),
        on=(Samples,),
        general="Transformers",
        null="a mean cosine on the margin",
        evidence="the paper's models; model= gives the same tests of a Transformer",
        reason=f"{NONE}, the margin of equivalence for cosines: anything above 0 would be met by a mean of rounding",
    ),
)


def paper() -> Paper:
    """The paper's claim on text; those on other modalities and on characters need its models."""
    return Paper(
        name="godey_2024",
        title="The claims of Godey et al. (2024), Anisotropy Is Inherent to Self-Attention, tested",
        citation=(
            "Nathan Godey, Éric de la Clergerie and Benoît Sagot (2024), Anisotropy Is Inherent to Self-Attention in "
            "Transformers. EACL (2024.eacl-long.3)"
        ),
        url="https://arxiv.org/abs/2401.12143",
        protocol=Protocol("models of several modalities"),
        claims=CLAIMS,
        sources=sources,
        rule="Only the abstract could be checked.",
        abstract=("inherent",),
    )
