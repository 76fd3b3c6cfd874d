"""Razzhigaev et al. (2024), *The Shape of Learning*: is anisotropy a bell in decoders, and flat in encoders?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Samples, TextSample, beyond_walks, measured, peaks
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, Findings of EACL 2024 (2024.findings-eacl.58)"
ALL, LATER = "all words", "without first words"


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """The first principal component's share of the variance, of all words and without first words."""
    from ctxexp_measures.isotropy.spectrum import FirstComponent

    from ctxexp import Group

    values = {}
    for name, rows in ((ALL, x), (LATER, x[~sample.is_first])):
        measure = FirstComponent()
        measure.update(Group("", rows))
        values[name] = measure.compute()["raw"]
    return values


def bell(source: Samples) -> list[Check]:
    """Whether a middle layer's share exceeds the first and the last, beyond what walks have."""
    members = source.of("decoder", statistic=ALL)
    checks = []
    for name in (ALL, LATER):
        for m in members:
            check = peaks(m, m.values[name], ways=len(members))
            if check.is_measured:
                check = beyond_walks(check, m.values[name].mean(axis=0))
            checks.append(check.under(name))
    return checks


def no_bell(source: Samples) -> list[Check]:
    """Whether no middle layer of an encoder exceeds both ends by more than the margin."""
    checks = []
    for name in (ALL, LATER):
        for m in source.of("encoder", statistic=ALL):
            gain = peaks(m, m.values[name] - NONE * _is_middle(m.values[name]))
            if gain.is_measured:
                passed = None if gain.passed is None else not gain.passed
                ends = (gain.effect + NONE, gain.low + NONE, gain.high + NONE)
                brief = f"{ends[0]:+.3f}"
                gain = replace(gain, passed=passed, effect=ends[0], low=ends[1], high=ends[2], brief=brief, text="")
            checks.append(gain.under(name))
    return checks


def _is_middle(values: np.ndarray) -> np.ndarray:
    """(layers,) 1 for all layers but the first and the last: what is taken from these lowers their gain by so much."""
    result = np.ones(values.shape[1])
    result[[0, -1]] = 0.0
    return result


def sources(inputs: Inputs) -> list[Source]:
    return [
        *measured(inputs, "razzhigaev_2024_shape", statistics, title="the run's text", kinds=("decoder", "encoder"))
    ]


claim = partial(
    Claim,
    on=(Samples,),
    general="Transformers",
    minis=False,
    variants=(ALL, LATER),
    quote_source=ABSTRACT,
    evidence="the paper's decoders and encoders on its text; model= gives the same tests of a model",
)
CLAIMS = (
    claim(
        id="decoders-bell",
        section="4",
        statement="In decoders a middle layer is the most anisotropic: a bell over layers.",
        quote="the anisotropy profile in transformer decoders exhibits a distinct bell-shaped curve, with the highest "
        "anisotropy concentrations in the middle layers",
        test="the share of variance of the first principal component in the middle layer chosen on the other samples, "
        "less that of the better of input and last layer, chosen likewise: its interval, and the simultaneous one of "
        "any middle layer, above 0; and fewer than 5% of walks have as clear a bell; with first words, whose vectors "
        "are massive, and without",
        null="layers of equal truth, of which the best looks better; walks over layers, of which many have some bell",
        reason="0: the paper gives no height; 5% of walks for a bell that is no accident",
        reversal="decoders with a hollow in the middle, or a trend from end to end, beyond what walks have; a bell "
        "that first words make",
        check=bell,
    ),
    claim(
        id="encoders-flat",
        section="4",
        statement="Encoders have no such bell.",
        quote="This pattern diverges from the more uniformly distributed anisotropy observed in encoders.",
        test="the same gain of encoders: its interval below .05",
        null="a bell of the margin's height",
        reason=f"{NONE} of the variance: less is no bell to speak of",
        reversal="an encoder with a bell",
        check=no_bell,
    ),
)


def paper() -> Paper:
    """The paper's claims by layer; those on training need checkpoints of it."""
    return Paper(
        name="razzhigaev_2024_shape",
        title="The claims of Razzhigaev et al. (2024), The Shape of Learning, tested",
        citation=(
            "Anton Razzhigaev, Matvey Mikhalchuk, Elizaveta Goncharova, Ivan Oseledets, Denis Dimitrov and Andrey "
            "Kuznetsov (2024), The Shape of Learning: Anisotropy and Intrinsic Dimensions in Transformer-Based "
            "Models. Findings of EACL, pp. 868-874"
        ),
        url="https://arxiv.org/abs/2311.05928",
        protocol=Protocol("the paper's decoders and encoders on its own text"),
        claims=CLAIMS,
        sources=sources,
        abstract=("decoders-bell", "encoders-flat"),
    )
