"""Gao et al. (2019), *Representation Degeneration*: cones, and hulls that miss the origin. Theorems, and models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.drawn import drawn_if_possible, theorem, theorem_claim
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import (
    NOT_OWN,
    Sampled,
    Samples,
    TextSample,
    in_layers,
    learned,
    measured,
)  # fmt: skip
from ctxexp_papers.claims.source import Inputs, Source, has_twin, untrained_encoder
from ctxexp_papers.papers.gao_2019.instances import PARTS, UNSURE, WIDTHS, drawn, toy_models

ABSTRACT = "the abstract, arXiv 1907.12009"


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """The margin of the narrowest cone about a sample's rows; NaN where so few rows have one by chance."""
    from ctxexp_measures.frequency.hull import chance_of_direction, negative_direction

    if chance_of_direction(*x.shape) > NONE:
        return {"margin": np.nan}
    margin = negative_direction(x).margin
    return {"margin": 0.0 if np.isnan(margin) else margin}


def tables(inputs: Inputs) -> list[Source]:
    """Mean cosines of the offered models' tied embedding tables, in disjoint random parts, with their twins'."""
    members = []
    for model in inputs.models:
        values = _table(model)
        if values is None:
            continue
        twin = _table(model, untrained=True) if has_twin(model) else None
        members.append(Sampled(model, {"table": values}, (), {} if twin is None else {"table": twin}))
    if not members:
        return []
    command = f"python -m ctxexp claims paper=gao_2019 model='{','.join(m.model for m in members)}'"
    departures = {m.model: [NOT_OWN] for m in members}
    return [Samples("other", "tied embedding tables", departures, [], command, members)]


def _table(model: str, *, untrained: bool = False) -> np.ndarray | None:
    """(parts, 1) mean cosines of the rows of a model's tied table that stand for text; None without such a table."""
    from ctxexp.command import Built, configured
    from ctxexp.maths import mean_cosine

    study = Built(configured(model)).study
    encoder = untrained_encoder(model) if untrained else study.encoder
    for table in encoder.tables(study.corpus.running):
        if table.tied:
            order = np.random.default_rng(0).permutation(len(table.vectors))
            parts = np.array_split(order, PARTS)
            return np.array([[float(mean_cosine(np.asarray(table.vectors[part], np.float64)))] for part in parts])
    return None


def sources(inputs: Inputs) -> list[Source]:
    """Drawn hidden states, the offered models' tables, and their last hidden states."""
    title = "hidden states of the run's text"
    kinds = ("decoder", "encoder")
    return [
        *drawn_if_possible(inputs, drawn),
        *drawn_if_possible(inputs, toy_models),
        *tables(inputs),
        *measured(inputs, "gao_2019", statistics, title=title, kinds=kinds, layers=2),
    ]


def cone(source: Samples) -> list[Check]:
    members = source.of(statistic="table")
    return [in_layers(m, m.values["table"], Bound(above=NONE), ways=len(members)) for m in members]


def cone_is_learned(source: Samples) -> list[Check]:
    members = source.of(statistic="table")
    return [learned(m, m.values["table"][:, 0], m.twin["table"][:, 0] if m.twin else None) for m in members]


def regulariser_lowers(source: Samples) -> list[Check]:
    """Whether the same model has a less cone-like table with the regulariser."""
    return [
        in_layers(m, m.values["plain"] - m.values["regularised"], Bound(above=NONE))
        for m in source.of(statistic="regularised")
    ]


def hull_misses(source: Samples) -> list[Check]:
    """Whether the hull of the last hidden states misses the origin, in every sample."""
    members = source.of(statistic="margin")
    last = [(m, m.values["margin"][:, -1:]) for m in members]
    return [in_layers(Sampled(m.model, {}), values, Bound(above=0.0), ways=len(members)) for m, values in last]


claim = partial(Claim, on=(Samples,), quote_source=ABSTRACT, general="language models")
proven = partial(
    theorem_claim,
    reversal="hidden states for which it is otherwise",
    evidence="nothing but drawn hidden states, which `ctxexp claims paper=gao_2019` makes",
    models=tuple(WIDTHS),
)
CLAIMS = (
    proven(
        id="theorem-1",
        section="4.1",
        statement="The vector of a token that never occurs is pushed off without end if and only if the hull of the "
        "hidden states misses the origin.",
        test="gradient descent on the loss of an unseen token against the linear programme, on drawn hidden states "
        f"(those whose hull passes the origin within {UNSURE} are drawn again: descent would take too long to tell)",
        check=partial(theorem, statistic="theorem"),
    ),
    proven(
        id="layer-norm",
        section="4.1",
        statement="Hidden states out of a layer norm with a bias lie on one side of the origin.",
        test="the hull of drawn rows, normed, with random gains and biases, misses the origin",
        check=partial(theorem, statistic="normed"),
    ),
    proven(
        id="bias-does-it",
        section="4.1",
        statement="It is the bias: without it the hull of normed rows holds the origin.",
        test="the hull of the same rows without a bias doesn't miss the origin (40 rows a dimension)",
        check=partial(theorem, statistic="without"),
    ),
    proven(
        id="theorem-3",
        section="4.2",
        statement="The vector of a token that is rare ends near where that of one that never occurs would.",
        test="the theorem's bound on their distance, on drawn quadratic losses of every frequency for which it is said",
        check=partial(theorem, statistic="rare"),
    ),
    claim(
        id="regulariser-lowers-cosine",
        section="5",
        statement="The cosine regulariser lowers the mean cosine of the tied table.",
        quote="",
        quote_source="",
        test="mean cosine of the table trained without the regulariser less that of the same model trained with it, on "
        "tied bigram models of drawn counts: its interval above .05",
        null="a difference on the margin",
        reason=f"{NONE}, the margin of equivalence for cosines; the claim on translation and perplexity isn't tried",
        reversal="models whose tables stay as they are",
        evidence="the paper's Transformer, trained twice; tied bigram models are trained here in its place",
        check=regulariser_lowers,
    ),
    claim(
        id="cone",
        section="3",
        statement="Tied word embeddings lie in a narrow cone.",
        quote="most of the learnt word embeddings tend to degenerate and be distributed into a narrow cone",
        test="mean cosine of the tied table in disjoint random parts: its interval above .05",
        null="a mean cosine on the margin",
        reason=f"{NONE}, the margin of equivalence for cosines",
        reversal="tied tables that are isotropic",
        evidence="the paper's Transformer trained on WMT 2014 and WikiText-2; model= gives the same test",
        check=cone,
    ),
    claim(
        id="cone-is-learned",
        section="3",
        statement="The cone comes of training.",
        quote="",
        quote_source="",
        test="the table's mean cosine less that of the untrained twin: both intervals above 0",
        null="the untrained twin's table",
        reason="0: as much without training is not learned",
        reversal="tables that begin as a cone",
        evidence="the paper's Transformer and its untrained twin; model= gives the same test",
        check=cone_is_learned,
    ),
    claim(
        id="hull-misses",
        section="4.1",
        statement="The hull of trained models' hidden states misses the origin.",
        quote="",
        quote_source="",
        test="the margin of the narrowest cone about the last layer's rows in samples of sentences: its interval above "
        "0; of so few rows that random ones have such a direction too, nothing is said",
        null="random rows with fair signs, by Wendel's formula in fewer than 5% of cases",
        reason="0: the theorem asks for any direction",
        reversal="last layers whose hull holds the origin",
        evidence="the paper's Transformer; model= gives the same test",
        check=hull_misses,
    ),
)


def paper() -> Paper:
    """The paper's claims; those on translation and perplexity aren't tried."""
    return Paper(
        name="gao_2019",
        title="The claims of Gao et al. (2019), Representation Degeneration, tested",
        citation=(
            "Jun Gao, Di He, Xu Tan, Tao Qin, Liwei Wang and Tie-Yan Liu (2019), Representation Degeneration Problem "
            "in Training Natural Language Generation Models. ICLR"
        ),
        url="https://arxiv.org/abs/1907.12009",
        protocol=Protocol("of the theorems: any hidden states; of models: Transformers on WMT 2014 and WikiText-2"),
        claims=CLAIMS,
        sources=sources,
        rule="The theorems' wording could not be checked: they are paraphrased as ctxexp-measures has them.",
        abstract=("cone",),
    )
