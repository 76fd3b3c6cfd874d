"""Mu & Viswanath (2018), *All-but-the-Top*: a common mean, and a few dominating directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Samples, TextSample, in_layers, measured
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, arXiv 1702.01417"


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """Excess of the mean's length over that of rows with random signs, of the top directions' share over that of
    columns shuffled one by one."""
    rng = np.random.default_rng(len(x))
    signs = rng.choice([-1.0, 1.0], (len(x), 1))
    shuffled = rng.permuted(x, axis=0)
    k = max(1, round(x.shape[1] / 100))
    return {"mean": _mean_length(x) - _mean_length(x * signs), "top": _top_share(x, k) - _top_share(shuffled, k)}


def _mean_length(x: np.ndarray) -> float:
    """|mean of the rows| over the rows' mean length, 0 to 1."""
    return float(np.linalg.norm(x.mean(axis=0)) / np.linalg.norm(x, axis=1).mean())


def _top_share(x: np.ndarray, k: int) -> float:
    """Share of the variance along the k first principal components."""
    variances = np.linalg.eigvalsh(np.cov(x, rowvar=False))[::-1]
    return float(variances[:k].sum() / variances.sum())


def above(source: Samples, statistic: str, bound: float) -> list[Check]:
    members = source.of(statistic=statistic)
    return [in_layers(m, m.values[statistic], Bound(above=bound), ways=len(members)) for m in members]


def sources(inputs: Inputs) -> list[Source]:
    """Files of word vectors among the offered models, on the words of the run's text."""
    static = replace(inputs, models=tuple(m for m in inputs.models if m.split()[0] in STATIC))
    return [*measured(static, "mu_2018", statistics, title="vectors of the text's words", by_word=True)]


STATIC = ("glove", "word_vectors", "fasttext")
claim = partial(
    Claim,
    on=(Samples,),
    general="word vectors",
    evidence="the paper's word2vec and GloVe 840B files of 300 dimensions, which are in no package; model=glove gives "
    "the same tests of GloVe 6B",
    quote="eliminate the common mean vector and a few top dominating directions from the word vectors",
    quote_source=ABSTRACT,
)
CLAIMS = (
    claim(
        id="nonzero-mean",
        section="2.1",
        statement="Word vectors have a large common mean.",
        test="the mean vector's length over the mean length, less that of the same vectors with random signs: its "
        "interval over disjoint samples of words above .05",
        null="vectors whose signs are random: a mean of n vectors is never 0",
        reason=f"{NONE}, the margin of equivalence as a share of the mean length",
        reversal="vectors with no larger mean than with random signs",
        check=partial(above, statistic="mean", bound=NONE),
    ),
    claim(
        id="few-directions",
        section="2.1",
        statement="A few directions (a hundredth of the dimensions) hold much of the variance.",
        test="their share of the variance, less that of the same columns shuffled one by one: its interval above .05",
        null="columns without correlation, of the same spread each: the largest of many variances exceeds their mean",
        reason=f"{NONE} of the variance: any correlation at all exceeds 0",
        reversal="a spectrum that shuffled columns have too",
        check=partial(above, statistic="top", bound=NONE),
    ),
)


def paper() -> Paper:
    """The paper's claims."""
    return Paper(
        name="mu_2018",
        title="The claims of Mu & Viswanath (2018), All-but-the-Top, tested",
        citation=(
            "Jiaqi Mu and Pramod Viswanath (2018), All-but-the-Top: Simple and Effective Postprocessing for Word "
            "Representations. ICLR"
        ),
        url="https://arxiv.org/abs/1702.01417",
        protocol=Protocol("the published word2vec and GloVe files (section 2), whose checksums are not on record"),
        claims=CLAIMS,
        sources=sources,
        abstract=("nonzero-mean", "few-directions"),
    )
