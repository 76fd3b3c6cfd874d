"""Do entropy and curvature foretell which layer is good? Against walks over layers, which are as smooth.

The paper correlates a layer's entropy and curvature with its score. Two curves that both drift over depth correlate
whatever they are: of two independent random walks of 13 layers a third do at p < .05. The evidence is an offered
decoder on one of the paper's 32 tasks, the STS benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from ctxexp.maths import Stream, spearman
from ctxexp.maths.statistics import spearman_rows
from ctxexp_papers.claims.checks import LEVEL, Check, chance
from ctxexp_papers.claims.pairs import RatedPairs, cosines, encode, parts_of, sentence_pairs
from ctxexp_papers.claims.paper import Claim
from ctxexp_papers.claims.samples import KINDS, Sampled, Samples
from ctxexp_papers.claims.source import Inputs, Source
from ctxexp_papers.claims.statistics.walks import association_p

PAIRS, PARTS, RESAMPLES, LEAST_WORDS = 200, 20, 1000, 4
ENTROPY, CURVATURE, SCORE = "entropy", "curvature", "score"
ONE_TASK = "one of the paper's 32 tasks, of a model that isn't the paper's"


def sources(inputs: Inputs) -> list[Source]:
    """Score, entropy and curvature of the offered decoders by layer on the STS benchmark."""
    models = [m for m in inputs.models if KINDS.get(m.split()[0]) == "decoder"]
    pairs = sentence_pairs(PAIRS) if models else None
    if pairs is None:
        return []
    members = [_member(model, pairs) for model in models]
    command = f"STS=<folder of STSbenchmark> python -m ctxexp claims paper=skean_2025 model='{','.join(models)}'"
    departures = {m.model: [ONE_TASK] for m in members}
    return [Samples("other", f"{PAIRS} pairs of the STS benchmark", departures, [], command, members)]


def _member(model: str, pairs: RatedPairs) -> Sampled:
    vectors = encode(model, [*pairs.first, *pairs.second])
    values: dict[str, list[np.ndarray]] = {}
    n = len(pairs.gold)
    parts = parts_of(n, PARTS)
    for at in range(len(vectors.layers)):
        means = vectors.means(at)
        similarity = cosines(means[:n], means[n:])
        paths = [x[at] for x in vectors.by_text if x.shape[1] >= LEAST_WORDS]
        by_layer = {SCORE: [_spearman(similarity[part], pairs.gold[part]) for part in parts], **_of_paths(paths)}
        for name, row in by_layer.items():
            values.setdefault(name, []).append(np.array(row))
    return Sampled(model, {name: np.array(rows).T for name, rows in values.items()}, vectors.layers)


def _of_paths(paths: Sequence[np.ndarray]) -> Mapping[str, list[float]]:
    """Mean entropy and curvature of sentences, in PARTS disjoint parts of them."""
    from ctxexp_measures.isotropy.sequence import Curvature, MatrixEntropy

    found = {}
    for name, measure in ((ENTROPY, MatrixEntropy()), (CURVATURE, Curvature())):
        scores = np.array([float(measure.score(path)) for path in paths])
        found[name] = [float(np.nanmean(scores[part])) for part in parts_of(len(scores), PARTS)]
    return found


def _spearman(a: np.ndarray, b: np.ndarray) -> float:
    finite = np.isfinite(a) & np.isfinite(b)
    return spearman(a[finite], b[finite])


def foretells(source: Samples, predictor: str, *, falls: bool) -> list[Check]:
    """Whether the score goes with the predictor over layers (`falls`: against it): Spearman's rho of both means,
    redrawn over samples, and fewer than 5% of walks go as far. Going with it in either direction fails nowhere."""
    checks = []
    members = source.of("decoder", statistic=predictor)
    for m in members:
        one, other = m.values[predictor], m.values[SCORE]
        rho = spearman(one.mean(axis=0), other.mean(axis=0))
        p = association_p(one.mean(axis=0), other.mean(axis=0), np.random.default_rng([0, Stream.CLAIMS, 16]))
        low, high = _ends(one, other)
        side = True if high < 0 else not falls if low > 0 else None
        passed = None if p >= (LEVEL / len(members) if side is False else LEVEL) else side
        text = f"rho over {one.shape[1]} layers; {chance(p)}"
        checks.append(
            Check(m.model, "", passed, rho, min(low, rho), max(high, rho), one.shape[1], text, brief=f"{rho:+.2f}")
        )
    return checks


def _ends(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """The middle 95% of rho over resamples of the samples (samples, layers)."""
    rng = np.random.default_rng([0, Stream.CLAIMS, 17])
    n = len(one)
    draws = rng.integers(0, n, (RESAMPLES, 2, n))
    rhos = spearman_rows(one[draws[:, 0]].mean(axis=1), other[draws[:, 1]].mean(axis=1))
    low, high = np.nanquantile(rhos, [0.025, 0.975])
    return float(low), float(high)


claim = partial(
    Claim,
    on=(Samples,),
    section="4",
    general="decoders",
    minis=False,
    null="two curves that know nothing of each other and are as smooth: walks of either's own steps, and smooth walks",
    reason="rho beyond 0, and fewer than 5% of walks go as far: layers are no independent cases",
    evidence="entropy and curvature of the paper's models by layer, which are not released; model=smollm2 with "
    "STS=<folder of STSbenchmark> in the environment gives the same test on one of its tasks",
)
TEST = (
    "Spearman's rho over layers of the score on the STS benchmark with {}: its interval over samples {} 0, and "
    "fewer than 5% of walks go as far"
)
CLAIMS = (
    claim(
        id="entropy-foretells",
        statement="A layer's entropy goes with its score, in one direction or the other.",
        test=TEST.format("the matrix entropy of sentences", "beside"),
        reversal="nothing that one model can show: that two curves don't go together is never beyond chance",
        check=partial(foretells, predictor=ENTROPY, falls=False),
    ),
    claim(
        id="curvature-foretells",
        statement="The less curved sentences' paths are in a layer, the better it is.",
        test=TEST.format("the curvature of sentences", "below"),
        reversal="decoders whose curved layers are the good ones",
        check=partial(foretells, predictor=CURVATURE, falls=True),
    ),
)
