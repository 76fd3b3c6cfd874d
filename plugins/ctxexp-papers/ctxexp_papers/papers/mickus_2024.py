"""Mickus, Grönroos & Attieh (2024), *Isotropy, Clusters, and Classifiers*: do isotropy and clusters exclude each other?

A theorem test. k clusters of even spread have a covariance of the within variance everywhere and the between variance
along at most k - 1 directions: with fewer clusters than dimensions these stand out, and IsoScore falls as clusters
part. With a cluster at each of the d + 1 corners of a regular simplex, or at both ends of each axis, the between
covariance is even: clusters as far apart as one likes, and IsoScore 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.drawn import draw_instances, drawn_if_possible
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Sampled, Samples, TextSample, in_layers, measured
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, ACL 2024 (2024.acl-short.7)"
WIDTH, POINTS = 20, 1000
FEWER, AS_MANY = "fewer clusters than dimensions", "clusters on all axes"
DISTANCE = 20.0  # of clusters from the middle, in standard deviations within them
FAR = 0.5  # silhouette of clusters that nobody would doubt
EVEN = 0.9  # IsoScore of a cloud that is isotropic but for sampling: 1,000 even points of 20 dimensions have .98


def centres(variant: str, rng: np.random.Generator) -> np.ndarray:
    """Directions of the clusters, (k, d): three at random, or both ends of each axis."""
    axes = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
    return axes[:3] if variant == FEWER else np.concatenate([axes, -axes])


def cloud(variant: str, distance: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points about the centres at this distance, (n, d), and their labels."""
    means = centres(variant, rng)
    labels = rng.integers(0, len(means), POINTS)
    return distance * means[labels] + rng.normal(size=(POINTS, WIDTH)), labels


def silhouette(x: np.ndarray, labels: np.ndarray) -> float:
    from ctxexp_measures.isotropy.clusters import mean_silhouette

    return mean_silhouette(x, labels)


def score(x: np.ndarray) -> float:
    from ctxexp.maths import isoscore

    return isoscore(np.cov(x, rowvar=False))


def instance(variant: str, rng: np.random.Generator) -> Mapping[str, float]:
    """IsoScore and silhouette of well separated clusters, and what parting them and whitening them change."""
    x, labels = cloud(variant, DISTANCE, rng)
    near, _ = cloud(variant, 0.0, rng)
    values, directions = np.linalg.eigh(np.cov(x, rowvar=False))
    white = (x - x.mean(axis=0)) @ directions / np.sqrt(values)
    apart = silhouette(x, labels)
    return {
        "isoscore": score(x),
        "silhouette": apart,
        "fall": score(near) - score(x),
        "cost of whitening": apart - silhouette(white, labels),
    }


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """How much whitening lowers the silhouette of words (those that occur twice or more), beyond what it does to the
    same rows with words exchanged at random; NaN where words are too few for the width, as in an input layer, where a
    word is one point."""
    from ctxexp.errors import TransformError
    from ctxexp.transforms import Whitening

    counts = np.bincount(sample.word)
    rows = counts[sample.word] > 1
    words = np.unique(sample.word[rows], return_inverse=True)[1]
    shuffled = np.random.default_rng(0).permutation(words)
    try:
        white = Whitening(min(50, x.shape[1])).fit(x).apply(x)[rows]
    except TransformError:
        return {"cost": np.nan, "kept": np.nan}
    own = silhouette(x[rows], words) - silhouette(white, words)
    return {
        "cost": own - (silhouette(x[rows], shuffled) - silhouette(white, shuffled)),
        "kept": silhouette(white, words),
    }


def drawn(samples: int = 8) -> Samples:
    """Instances of the theorem."""
    cases = {variant: (partial(instance, variant), (number,)) for number, variant in enumerate((FEWER, AS_MANY))}
    return draw_instances("mickus_2024", "clusters drawn here, of known separation", cases, samples)


def sources(inputs: Inputs) -> list[Source]:
    """Drawn clusters, and words of the offered models' layers."""
    title = "words of the run's text as clusters, whitened"
    return [
        *drawn_if_possible(inputs, drawn),
        *measured(inputs, "mickus_2024", statistics, title=title, layers=5, kinds=("decoder", "encoder")),
    ]


def _by_variant(source: Samples, tests: Mapping[str, Bound]) -> list[Check]:
    """Checks of the drawn instances by variant, under one model's name: the claim is of clusters, not of one case."""
    checks = []
    for member in source.of(statistic=next(iter(tests))):
        for statistic, bound in tests.items():
            check = in_layers(Sampled("clusters", {}), member.values[statistic], bound, ways=len(tests))
            checks.append(check.under(member.model))
    return checks


def excludes(source: Samples) -> list[Check]:
    """Whether clusters that are clearly there keep a cloud from being isotropic."""
    return _by_variant(source, {"isoscore": Bound(below=EVEN), "silhouette": Bound(above=FAR)})


def whitening_costs(source: Samples) -> list[Check]:
    return _by_variant(source, {"cost of whitening": Bound(above=NONE)})


def words_lose(source: Samples) -> list[Check]:
    members = source.of(statistic="cost")
    return [in_layers(m, m.values["cost"], Bound(above=0.0), ways=len(members)) for m in members]


claim = partial(
    Claim,
    on=(Samples,),
    evidence="nothing but drawn clusters, which `ctxexp claims paper=mickus_2024` makes",
    quote="isotropy imposes requirements on the embedding space that are not compatible with the presence of clusters",
    quote_source=ABSTRACT,
    models=("clusters",),
    variants=(FEWER, AS_MANY),
)
CLAIMS = (
    claim(
        id="isotropy-excludes-clusters",
        section="2",
        statement="A space with clusters isn't isotropic.",
        test=f"of clusters {DISTANCE:g} standard deviations from the middle, whose silhouette is above {FAR}, IsoScore "
        f"is below {EVEN}: intervals over draws, with three clusters in {WIDTH} dimensions, and with one at both ends "
        "of every axis",
        null="an IsoScore on the line",
        reason=f"{EVEN}: as many even points have .98",
        reversal="clusters in fewer than d dimensions that leave IsoScore at 1, which can't be: then both hold",
        check=excludes,
    ),
    claim(
        id="isotropy-costs-clusters",
        section="2",
        statement="Making a space with clusters isotropic blurs the clusters.",
        test="silhouette of the clusters less that after whitening: its interval above .05",
        null="a silhouette on the margin",
        reason=f"{NONE} of the silhouette, -1 to 1: less is no cost to speak of",
        reversal="whitening that parts clusters further",
        check=whitening_costs,
    ),
    claim(
        id="words-lose",
        section="3",
        statement="In models' layers, too, words are less of a cluster once the space is whitened.",
        test="fall of the silhouette of words by whitening to 50 dimensions, less that of words exchanged at random: "
        "its interval above 0 in every layer",
        null="words exchanged at random, whose silhouette whitening changes too",
        reason="0: the paper says at odds, not how much",
        reversal="layers in which whitening parts words",
        models=(),
        general="contextual models",
        variants=("",),
        evidence="the paper's models and labels; model= gives the same test with words as labels",
        check=words_lose,
    ),
)


def paper() -> Paper:
    """The paper's claims."""
    return Paper(
        name="mickus_2024",
        title="The claims of Mickus et al. (2024), Isotropy, Clusters, and Classifiers, tested",
        citation=(
            "Timothee Mickus, Stig-Arne Grönroos and Joseph Attieh (2024), Isotropy, Clusters, and Classifiers. ACL "
            "(Volume 2: Short Papers), pp. 75-84"
        ),
        url="https://aclanthology.org/2024.acl-short.7",
        protocol=Protocol("of the mathematical claims: any clusters; of that on words: the paper's models and labels"),
        claims=CLAIMS,
        sources=sources,
        rule="The paper argues mathematically; its claim is tried on clusters drawn here. Clusters on all axes, more "
        "of them than dimensions, are the case that its labels (few) don't have.",
        abstract=("isotropy-excludes-clusters",),
    )
