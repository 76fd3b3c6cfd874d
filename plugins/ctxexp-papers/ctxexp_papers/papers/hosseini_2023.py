"""Hosseini & Fedorenko (2023): do trained decoders straighten a sentence's path, and untrained ones not?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Sampled, Samples, TextSample, in_layers, measured, middle
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, arXiv 2311.04930"
ALL, LATER = "all words", "without first words"
MARGIN = NONE  # radians: 3 degrees, of 120 that chance has


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """Mean curvature of the sample's sentences, with their first words and without; radians."""
    from ctxexp_measures.isotropy.sequence import Curvature

    measure = Curvature()
    paths = sample.sentences(x, least=4)
    return {name: float(np.nanmean([measure.score(p) for p in part]))
            for name, part in ((ALL, paths), (LATER, [p[1:] for p in paths]))}  # fmt: skip


def fall(values: Mapping[str, np.ndarray], name: str, at: int) -> np.ndarray:
    """(samples,) the fall of curvature from the input layer to a layer."""
    return np.asarray(values[name][:, 0] - values[name][:, at])


def straightens(source: Samples) -> list[Check]:
    """Whether curvature falls from the input to the middle layer."""
    checks = []
    members = source.of("decoder", statistic=ALL)
    for name in (ALL, LATER):
        for m in members:
            effect = fall(m.values, name, middle(m))[:, None]
            checks.append(in_layers(Sampled(m.model, {}), effect, Bound(above=MARGIN), ways=len(members)).under(name))
    return checks


def untrained_stay(source: Samples) -> list[Check]:
    """Whether the untrained twin's curvature stays as it is."""
    checks = []
    members = [m for m in source.of("decoder", statistic=ALL) if m.twin]
    for name in (ALL, LATER):
        for m in members:
            effect = fall(m.twin, name, middle(m))[:, None]
            checks.append(in_layers(Sampled(m.model, {}), effect, Bound(within=MARGIN), ways=len(members)).under(name))
    return checks


def sources(inputs: Inputs) -> list[Source]:
    title = "the run's text, word by word"
    return [*measured(inputs, "hosseini_2023", statistics, title=title, kinds=("decoder",), twins=True)]


claim = partial(
    Claim,
    on=(Samples,),
    general="autoregressive Transformers",
    variants=(ALL, LATER),
    evidence="GPT-2 of several sizes and its untrained twin on the paper's UD sentences; model= gives the same tests "
    "of a decoder",
    reason=f"{MARGIN} radians, 3 degrees: independent vectors have 120, and less is no straightening to speak of",
)
CLAIMS = (
    claim(
        id="straightens",
        section="3",
        statement="In trained decoders a sentence's path is straighter in the middle layer than in the input.",
        quote="In trained models, the curvature decreases from the early to the deeper layers of the network.",
        quote_source=ABSTRACT,
        test="curvature in the input layer less that in the middle layer, fixed beforehand: its interval over samples "
        "of sentences above .05 radians; with first words, which attention sinks lengthen, and without",
        null="a fall on the margin",
        reversal="curvature that rises, or falls with first words alone",
        check=straightens,
    ),
    claim(
        id="untrained-do-not",
        section="3",
        statement="Untrained networks don't straighten.",
        quote="Importantly, untrained models do not exhibit these behaviors.",
        quote_source=ABSTRACT,
        test="the untrained twin's fall: its interval within .05 radians of 0",
        null="a fall on the margin",
        reversal="untrained networks whose paths become straighter: averaging over words alone does that",
        check=untrained_stay,
    ),
)


def paper() -> Paper:
    """The paper's claims on words; those on surprisal and on generated text aren't tried."""
    return Paper(
        name="hosseini_2023",
        title="The claims of Hosseini & Fedorenko (2023), Straightening, tested",
        citation=(
            "Eghbal Hosseini and Evelina Fedorenko (2023), Large language models implicitly learn to straighten "
            "neural sentence trajectories to construct a predictive representation of natural language. NeurIPS"
        ),
        url="https://arxiv.org/abs/2311.04930",
        protocol=Protocol("GPT-2 and other decoders on sentences of Universal Dependencies"),
        claims=CLAIMS,
        sources=sources,
        abstract=("straightens", "untrained-do-not"),
    )
