"""Gröger, Wen & Brbić (2026), *An Aristotelian View*: similarity grows with scale by chance alone; what is left?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.drawn import draw_instances, drawn_if_possible
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Sampled, Samples, in_layers
from ctxexp_papers.claims.source import Inputs, Source
from ctxexp_papers.papers.huh_2024 import GLOBAL, LOCAL, pairs

ABSTRACT = "the abstract, arXiv 2602.14486"
NOISE, ROWS = "independent noise", 100
WIDTHS, DEPTHS = (16, 64, 256), (1, 3, 9)


def plain_cka(x: np.ndarray, y: np.ndarray) -> float:
    """Linear CKA as most papers take it, with the biased estimate of HSIC (Kornblith et al. 2019)."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return float(np.linalg.norm(x.T @ y) ** 2 / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)))


def noise(rng: np.random.Generator) -> Mapping[str, float]:
    """Similarity of independent noise: plain CKA by width, the same less that of exchanged rows, and the largest
    share of mutual neighbours of any two layers by depth, plain and less that of exchanged rows."""
    from ctxexp_compare.measure import Sample
    from ctxexp_compare.neighbours import MutualNeighbours

    values = {}
    for d in WIDTHS:
        x, y = rng.normal(size=(2, ROWS, d))
        exchanged = np.mean([plain_cka(x, y[rng.permutation(ROWS)]) for _ in range(5)])
        values[f"width {d}"] = plain_cka(x, y)
        values[f"width {d}, calibrated"] = values[f"width {d}"] - float(exchanged)
    measure, sample = MutualNeighbours(), Sample(np.arange(ROWS))
    sides = [[measure.prepare_side(x, sample) for x in rng.normal(size=(max(DEPTHS), ROWS, 16))] for _ in range(3)]
    for depth in DEPTHS:
        one, other, exchanged_one = (side[:depth] for side in sides)
        best = max(measure.score(a, b).value for a in one for b in other)
        chance = max(measure.score(a, b).value for a in one for b in exchanged_one)  # noise is its own exchange
        values[f"depth {depth}"], values[f"depth {depth}, calibrated"] = best, best - chance
    return values


def drawn(samples: int = 16) -> Samples:
    """Noise of several widths and depths."""
    return draw_instances("groeger_2026", "independent noise, drawn here", {NOISE: (noise, (2026,))}, samples)


def sources(inputs: Inputs) -> list[Source]:
    """Drawn noise, and pairs of the offered models."""
    return [*drawn_if_possible(inputs, drawn), *pairs(inputs, "groeger_2026")]


def inflates(source: Samples, what: str, sizes: tuple[int, ...]) -> list[Check]:
    """Whether the similarity of noise rises with each larger size."""
    members = source.of(statistic=f"{what} {sizes[0]}")
    return [in_layers(m, np.diff(_curve(m, what, sizes, ""), axis=1), Bound(above=0.0)).under(what) for m in members]


def grows(source: Samples) -> list[Check]:
    return [*inflates(source, "width", WIDTHS), *inflates(source, "depth", DEPTHS)]


def calibration_helps(source: Samples) -> list[Check]:
    """Whether calibrated similarity of noise stays at 0."""
    return [
        in_layers(m, _curve(m, what, sizes, ", calibrated"), Bound(within=NONE)).under(what)
        for what, sizes in (("width", WIDTHS), ("depth", DEPTHS))
        for m in source.of(statistic=f"{what} {sizes[0]}")
    ]


def _curve(member: Sampled, what: str, sizes: tuple[int, ...], which: str) -> np.ndarray:
    return np.concatenate([member.values[f"{what} {size}{which}"] for size in sizes], axis=1)


def on_pairs(source: Samples, name: str, bound: Bound) -> list[Check]:
    members = source.of(statistic=name)
    return [in_layers(m, m.values[name], bound, ways=len(members)) for m in members]


claim = partial(Claim, on=(Samples,), quote_source=ABSTRACT)
of_noise = partial(
    claim,
    models=(NOISE,),
    variants=("width", "depth"),
    evidence="nothing but drawn noise, which `ctxexp claims paper=groeger_2026` makes",
)
of_pairs = partial(
    claim,
    general="pairs of models",
    evidence="the paper's vision and language models; two or more model= give the same tests of pairs",
    null="rows in random order within words",
)
CLAIMS = (
    of_noise(
        id="scale-inflates",
        section="3",
        statement="Similarity of independent spaces grows with their width and with the number of layers compared.",
        quote="increasing model depth or width can systematically inflate representational similarity scores",
        test=f"plain CKA of noise of {ROWS} rows rises with each width of {', '.join(map(str, WIDTHS))}; the "
        "most alike of two networks' layers are more so (mutual neighbours) with each depth of "
        f"{', '.join(map(str, DEPTHS))}: intervals of the differences above 0",
        null="no difference between sizes",
        reason="0: the paper says inflate, not by how much",
        reversal="a similarity that size leaves as it is",
        check=grows,
    ),
    of_noise(
        id="calibration-removes-it",
        section="3",
        statement="Calibrated by exchanged rows it is 0 at every size.",
        quote="we introduce a permutation-based null-calibration framework that transforms any representational "
        "similarity metric into a calibrated score with statistical guarantees",
        test="similarity of noise less that of exchanged rows, likewise the most alike of as many: its interval within "
        ".05 of 0 at every width and depth",
        null="a similarity on the margin",
        reason=f"{NONE} of the range 0 to 1",
        reversal="a calibrated similarity that grows with size",
        check=calibration_helps,
    ),
    of_pairs(
        id="global-disappears",
        section="5",
        statement="After calibration little is left of global similarity (CKA).",
        quote="the apparent convergence reported by global spectral measures largely disappears after calibration",
        test="CKA of the middle layers of each pair of models, adjusted by chance within words: its interval below .05",
        reason=f"{NONE} of what a space has with itself",
        reversal="pairs of models whose calibrated CKA is clearly above 0",
        check=partial(on_pairs, name=GLOBAL, bound=Bound(below=NONE)),
        contradicts=("huh_2024/models-agree",),
    ),
    of_pairs(
        id="local-remains",
        section="5",
        statement="Agreement of neighbourhoods remains.",
        quote="local neighborhood similarity, but not local distances, retains significant agreement across different "
        "modalities",
        test="mutual nearest neighbours of each pair, adjusted likewise: its interval above 0",
        reason="0: the paper says significant, not how much",
        reversal="pairs whose neighbours agree no more than by chance within words",
        check=partial(on_pairs, name=LOCAL, bound=Bound(above=0.0)),
    ),
)


def paper() -> Paper:
    """The paper's claims."""
    return Paper(
        name="groeger_2026",
        title="The claims of Gröger et al. (2026), An Aristotelian View, tested",
        citation=(
            "Fabian Gröger, Shuo Wen and Maria Brbić (2026), Revisiting the Platonic Representation Hypothesis: An "
            "Aristotelian View. arXiv 2602.14486"
        ),
        url="https://arxiv.org/abs/2602.14486",
        protocol=Protocol("of the claims on measures: independent spaces; of those on models: vision and language"),
        claims=CLAIMS,
        sources=sources,
        rule="Chance here is within words, stricter than the paper's over all rows: two spaces of the same words are "
        "alike for that alone.",
        abstract=("scale-inflates", "calibration-removes-it", "global-disappears", "local-remains"),
    )
