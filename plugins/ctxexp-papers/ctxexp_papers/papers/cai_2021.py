"""Cai, Huang, Bian & Church (2021): clusters in contextual spaces, and isotropy inside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Sampled, Samples, TextSample, in_layers, measured
from ctxexp_papers.claims.source import Inputs, Source

SPACE = "the abstract, ICLR 2021"
CLUSTERED = 0.1  # mean silhouette from which on there is more than one cluster, as in the metric
KINDS = ("decoder", "encoder", "recurrent")
ALL, LATER = "all words", "without first words"


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """The mean cosine within clusters about their means; the clusters' silhouette, and that of two clusters in a
    Gaussian cloud of the same covariance."""
    from ctxexp_measures.isotropy.clusters import ClusterAdjustedSimilarity, mean_silhouette

    values: dict[str, float] = {}
    for name, rows in ((ALL, x), (LATER, x[~sample.is_first])):
        found = ClusterAdjustedSimilarity().values(rows)
        cloud = np.random.default_rng(0).multivariate_normal(
            np.zeros(x.shape[1]), np.cov(rows, rowvar=False), len(rows)
        )
        single = ClusterAdjustedSimilarity(clusters=2)
        values |= {
            f"within, {name}": found.get("raw", np.nan),
            f"silhouette, {name}": float(np.nan_to_num(found.get("silhouette", 0.0))),
            f"cloud, {name}": mean_silhouette(cloud, single._clusters(cloud, 2)),
        }
    return values


def _checks(
    source: Samples, statistic: str, value: Callable[[Sampled, str], np.ndarray], bound: Bound, least: float
) -> list[Check]:
    """A check a model and choice of words over the hidden layers."""
    checks = []
    for name in (ALL, LATER):
        members = source.of(*KINDS, statistic=f"{statistic}, {name}")
        for m in members:
            hidden = Sampled(m.model, {}, m.layers[1:])
            checks.append(in_layers(hidden, value(m, name)[:, 1:], bound, least=least, ways=len(members)).under(name))
    return checks


def clustered(source: Samples) -> list[Check]:
    """Whether the silhouette exceeds both its threshold and that of a cloud without clusters."""

    def excess(m: Sampled, name: str) -> np.ndarray:
        return np.asarray(m.values[f"silhouette, {name}"] - np.maximum(m.values[f"cloud, {name}"], CLUSTERED))

    return _checks(source, "silhouette", excess, Bound(above=0.0), 0.501)


def isotropic(source: Samples) -> list[Check]:
    """Whether words are isotropic about their clusters' means."""
    return _checks(source, "within", lambda m, name: m.values[f"within, {name}"], Bound(within=NONE), 1.0)


def sources(inputs: Inputs) -> list[Source]:
    title = "the run's text, 250 words a sample"
    return [*measured(inputs, "cai_2021", statistics, title=title, kinds=KINDS, samples=10, rows=250, layers=5)]


claim = partial(
    Claim,
    on=(Samples,),
    evidence="the paper's models (GPT, GPT-2, BERT, DistilBERT, XLM and others) on its texts of WikiText and PTB; "
    "model= gives the same tests of a model",
    variants=(ALL, LATER),
    general="contextual models",
)
CLAIMS = (
    claim(
        id="clusters-exist",
        section="4",
        statement="Most layers have isolated clusters.",
        quote="We identify isolated clusters and low dimensional manifolds in the contextual embedding space",
        quote_source=SPACE,
        test="the best mean silhouette of 2 to 10 clusters, less the larger of .1 and that of two clusters in a "
        "Gaussian cloud of the same covariance: its interval over samples above 0 in more than half of the hidden "
        "layers; with first words, whose vectors lie apart in causal models, and without",
        null="a cloud without clusters, of the same covariance: k-means divides it too",
        reason=".1, below which the measure counts one cluster",
        reversal="silhouettes that a cloud has too",
        check=clustered,
    ),
    claim(
        id="isotropic-within",
        section="4",
        statement="About their clusters' means words are isotropic: their mean cosine is about 0.",
        quote="the isotropy indeed exists in the space, from a different but more constructive perspective",
        quote_source=SPACE,
        test="mean cosine within clusters about their means: its interval within .05 of 0 in every hidden layer",
        null="a mean cosine on the margin",
        reason=f"{NONE}, the margin of equivalence for cosines",
        reversal="a layer whose clusters are cones themselves",
        check=isotropic,
    ),
)


def paper() -> Paper:
    """The paper's claims."""
    return Paper(
        name="cai_2021",
        title="The claims of Cai et al. (2021), Clusters and Manifolds, tested",
        citation=(
            "Xingyu Cai, Jiaji Huang, Yuchen Bian and Kenneth Church (2021), Isotropy in the Contextual Embedding "
            "Space: Clusters and Manifolds. ICLR"
        ),
        url="https://openreview.net/forum?id=xYGNO86OWDH",
        protocol=Protocol("the paper's models on PTB, WikiText-2 and WikiText-103"),
        claims=CLAIMS,
        sources=sources,
        abstract=("clusters-exist", "isotropic-within"),
    )
