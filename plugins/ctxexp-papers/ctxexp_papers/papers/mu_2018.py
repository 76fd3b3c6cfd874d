"""Mu & Viswanath (2018), *All-but-the-Top*: a common mean, a few dominating directions, and isotropy without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.pairs import WORDS, RatedPairs, cosines, encode, parts_of, word_pairs
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import NOT_OWN, SAMPLES, Sampled, Samples, TextSample, in_layers, measured
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, arXiv 1702.01417"
SCALES = ("as given", "unit norm")


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """Excess of the mean's length over that of rows with random signs, of the top directions' share over that of
    columns shuffled one by one; log I(W) after processing less before, and less after taking random directions."""
    from ctxexp_measures.isotropy.partition import log_partition_ratio

    from ctxexp.transforms import AllButTheTop, Center

    rng = np.random.default_rng(len(x))
    signs = rng.choice([-1.0, 1.0], (len(x), 1))
    shuffled = rng.permuted(x, axis=0)
    k = max(1, round(x.shape[1] / 100))
    processed, centred = AllButTheTop(k).fit(x).apply(x), Center().fit(x).apply(x)
    directions = np.linalg.qr(rng.normal(size=(x.shape[1], k)))[0]
    at_random = centred - centred @ directions @ directions.T
    values = {"mean": _mean_length(x) - _mean_length(x * signs), "top": _top_share(x, k) - _top_share(shuffled, k)}
    for name in SCALES:
        log = partial(log_partition_ratio, unit_norm=name == "unit norm")
        values[f"gain, {name}"] = log(processed) - log(x)
        values[f"gain over random, {name}"] = log(processed) - log(at_random)
    return values


def _mean_length(x: np.ndarray) -> float:
    """|mean of the rows| over the rows' mean length, 0 to 1."""
    return float(np.linalg.norm(x.mean(axis=0)) / np.linalg.norm(x, axis=1).mean())


def _top_share(x: np.ndarray, k: int) -> float:
    """Share of the variance along the k first principal components."""
    variances = np.linalg.eigvalsh(np.cov(x, rowvar=False))[::-1]
    return float(variances[:k].sum() / variances.sum())


def on_benchmarks(inputs: Inputs) -> list[Samples]:
    """Word vectors on similarity benchmarks, as given and processed, in disjoint samples of pairs. The mean and the
    directions are those of the words of the run's text."""
    members = []
    for model in _static(inputs):
        space = inputs.space(model)
        words = np.unique(space.words(np.arange(len(space.rows))), return_index=True)[1]
        x = np.asarray(space.layers.layer(space.layers.layer_numbers[0])[space.rows[words]], np.float64)
        values: dict[str, np.ndarray] = {}
        for pairs in word_pairs():
            values |= _gains(model, pairs, x)
        if values:
            members.append(Sampled(model, values))
    if not members:
        return []
    names = ",".join(m.model for m in members)
    command = f"BENCHMARKS=<folder> python -m ctxexp claims paper=mu_2018 model='{names}'"
    departures = {m.model: [NOT_OWN] for m in members}
    return [Samples("other", "word similarity benchmarks", departures, [], command, members)]


def _gains(model: str, pairs: RatedPairs, x: np.ndarray) -> dict[str, np.ndarray]:
    """(samples, 1): the gain in Spearman's rho by processing, under the benchmark's name."""
    from ctxexp.maths import spearman
    from ctxexp.transforms import AllButTheTop

    vectors = encode(model, [*pairs.first, *pairs.second]).means(0)
    n = len(pairs.gold)
    sides = (vectors[:n], vectors[n:])
    k = max(1, round(x.shape[1] / 100))
    process = AllButTheTop(k).fit(x)
    finite = np.isfinite(sides[0][:, 0]) & np.isfinite(sides[1][:, 0])
    one, other = (side[finite] for side in sides)
    before = cosines(one, other)
    after = cosines(*(np.asarray(process.apply(side), np.float64) for side in (one, other)))
    gold = pairs.gold[finite]
    gains = [spearman(after[p], gold[p]) - spearman(before[p], gold[p]) for p in parts_of(len(gold), SAMPLES)]
    return {pairs.name: np.array(gains)[:, None]}


def benchmarks_gain(source: Samples) -> list[Check]:
    """A check a benchmark, in each of which the gain must be above 0."""
    return [
        in_layers(Sampled(m.model, {}), m.values[name], Bound(above=0.0), ways=len(source.members)).under(name)
        for name in WORDS
        for m in source.of(statistic=name)
    ]


def above(source: Samples, statistic: str, bound: float) -> list[Check]:
    members = source.of(statistic=statistic)
    return [in_layers(m, m.values[statistic], Bound(above=bound), ways=len(members)) for m in members]


def isotropy_rises(source: Samples, statistic: str) -> list[Check]:
    return [check.under(name) for name in SCALES for check in above(source, f"{statistic}, {name}", 0.0)]


def sources(inputs: Inputs) -> list[Source]:
    """Files of word vectors among the offered models, on the words of the run's text."""
    static = replace(inputs, models=_static(inputs))
    title = "vectors of the text's words"
    return [*measured(static, "mu_2018", statistics, title=title, by_word=True), *on_benchmarks(inputs)]


def _static(inputs: Inputs) -> tuple[str, ...]:
    return tuple(m for m in inputs.models if m.split()[0] in STATIC)


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
    claim(
        id="isotropy-rises",
        section="2.2",
        statement="Without the mean and these directions the vectors are more isotropic, by I(W).",
        quote="",
        quote_source="",
        test="log I(W) after processing less before: its interval above 0, of the vectors as given and at norm 1",
        null="no difference between both",
        reason="0: the paper says more isotropic, not by how much",
        reversal="I(W) that falls",
        check=partial(isotropy_rises, statistic="gain"),
        variants=SCALES,
    ),
    claim(
        id="top-directions-matter",
        section="2.2",
        statement="It is the top directions that do it, not the mean alone: random directions raise I(W) less.",
        quote="",
        quote_source="",
        test="log I(W) without the mean and top directions less that without the mean and as many random ones: its "
        "interval above 0",
        null="the mean alone makes the difference",
        reason="0: a direction of average variance is the control",
        reversal="random directions that do as well",
        check=partial(isotropy_rises, statistic="gain over random"),
        variants=SCALES,
    ),
    claim(
        id="similarity-gains",
        section="3",
        statement="Processed vectors are better on word similarity, on every benchmark.",
        quote="",
        quote_source="",
        test="Spearman's rho with people's ratings after processing less before, on SimLex-999, MEN, WordSim-353 and "
        "Rare Words: its interval over samples of pairs above 0 on each",
        null="no difference between both",
        reason="0: the paper says consistently, and gives a table of gains without intervals",
        evidence="the paper's word2vec and GloVe files; model=glove with BENCHMARKS=<folder of simlex999 ...> in "
        "the environment gives the same test of GloVe 6B",
        reversal="a benchmark on which processing loses",
        check=benchmarks_gain,
        variants=WORDS,
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
