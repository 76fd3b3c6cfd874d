"""Gao et al. (2019), *Representation Degeneration*: are tied word embeddings a cone?"""

from __future__ import annotations

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import NOT_OWN, Sampled, Samples, in_layers
from ctxexp_papers.claims.source import Inputs, Source

PARTS = 20


def sources(inputs: Inputs) -> list[Source]:
    """Mean cosines of the offered models' tied embedding tables, in disjoint random parts."""
    members = []
    for model in inputs.models:
        if (values := _table(model)) is not None:
            members.append(Sampled(model, {"table": values}))
    if not members:
        return []
    command = f"python -m ctxexp claims paper=gao_2019 model='{','.join(m.model for m in members)}'"
    departures = {m.model: [NOT_OWN] for m in members}
    return [Samples("other", "tied embedding tables", departures, [], command, members)]


def _table(model: str) -> np.ndarray | None:
    """(parts, 1) mean cosines of the rows of a model's tied table that stand for text; None without such a table."""
    from ctxexp.command import Built, configured
    from ctxexp.maths import mean_cosine

    study = Built(configured(model)).study
    for table in study.encoder.tables(study.corpus.running):
        if table.tied:
            order = np.random.default_rng(0).permutation(len(table.vectors))
            parts = np.array_split(order, PARTS)
            return np.array([[float(mean_cosine(np.asarray(table.vectors[part], np.float64)))] for part in parts])
    return None


def cone(source: Samples) -> list[Check]:
    members = source.of(statistic="table")
    return [in_layers(m, m.values["table"], Bound(above=NONE), ways=len(members)) for m in members]


CLAIMS = (
    Claim(
        id="cone",
        section="3",
        statement="Tied word embeddings lie in a narrow cone.",
        quote="most of the learnt word embeddings tend to degenerate and be distributed into a narrow cone",
        quote_source="the abstract, arXiv 1907.12009",
        test="mean cosine of the tied table in disjoint random parts: its interval above .05",
        null="a mean cosine on the margin",
        reason=f"{NONE}, the margin of equivalence for cosines",
        reversal="tied tables that are isotropic",
        evidence="the paper's Transformer trained on WMT 2014 and WikiText-2; model= gives the same test",
        check=cone,
        on=(Samples,),
        general="language models",
    ),
)


def paper() -> Paper:
    """The paper's claim on models; those on translation and perplexity aren't tried."""
    return Paper(
        name="gao_2019",
        title="The claims of Gao et al. (2019), Representation Degeneration, tested",
        citation=(
            "Jun Gao, Di He, Xu Tan, Tao Qin, Liwei Wang and Tie-Yan Liu (2019), Representation Degeneration Problem "
            "in Training Natural Language Generation Models. ICLR"
        ),
        url="https://arxiv.org/abs/1907.12009",
        protocol=Protocol("Transformers on WMT 2014 and WikiText-2"),
        claims=CLAIMS,
        sources=sources,
        abstract=("cone",),
    )
