"""Rudman et al. (2022), *IsoScore*: what measures of isotropy say of clouds whose isotropy is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound, Check
from ctxexp_papers.claims.drawn import draw_instances, drawn_if_possible, within
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Samples, TextSample, measured
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, arXiv 2108.07344"
WIDTHS = {"d = 10": 10, "d = 50": 50}
POINTS = 5000  # an even cloud of n points reaches about n / (d + n)
SHIFT = 10.0  # of every coordinate's mean, in standard deviations
CLOSE = 0.01  # of IsoScore, which is 0 to 1


def clouds(d: int, rng: np.random.Generator, points: int = POINTS) -> Mapping[str, float]:
    """Values of a drawn cloud whose isotropy is known: shifted, scaled, rotated, and of half of the dimensions."""
    from ctxexp.maths import isoscore, mean_cosine

    def score(x: np.ndarray) -> float:
        return isoscore(np.cov(x, rowvar=False))

    even = rng.normal(size=(points, d))
    uneven = even * np.geomspace(1, 10, d)
    half = even * (np.arange(d) < d // 2)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return {
        "shifted": score(even + SHIFT) - score(even),
        "cosine of shifted": float(mean_cosine(even + SHIFT)),
        "cosine of uneven": float(mean_cosine(uneven)),
        "isoscore of uneven": score(uneven),
        "scaled": score(3.0 * even) - score(even),
        "rotated": score(uneven @ turn) - score(uneven),
        "half": score(half) - (d // 2 - 1) / (d - 1),
    }


def statistics(x: np.ndarray, sample: TextSample) -> Mapping[str, float]:
    """What taking the mean away changes in a model's layer: IsoScore, and the mean cosine's size."""
    from ctxexp.maths import isoscore, mean_cosine

    centred = x - x.mean(axis=0)
    change = isoscore(np.cov(centred, rowvar=False)) - isoscore(np.cov(x, rowvar=False))
    return {"isoscore": change, "cosine": abs(float(mean_cosine(x))) - abs(float(mean_cosine(centred)))}


def drawn(samples: int = 12) -> Samples:
    """The paper's own kind of test: clouds whose isotropy is known by their making."""
    cases = {name: (partial(clouds, d), (d,)) for name, d in WIDTHS.items()}
    return draw_instances("rudman_2022", "Gaussian clouds of known isotropy, drawn here", cases, samples)


def sources(inputs: Inputs) -> list[Source]:
    """Drawn clouds, and the offered models' layers."""
    return [
        *drawn_if_possible(inputs, drawn),
        *measured(inputs, "rudman_2022", statistics, title="the run's text", layers=7),
    ]


# The mean cosine calls an even cloud anisotropic, and an uneven one isotropic.
MISLED = {
    "cosine of shifted": Bound(above=NONE),
    "cosine of uneven": Bound(within=NONE),
    "isoscore of uneven": Bound(below=0.5),
}
# The mean decides the mean cosine of a model's layers, and nothing of IsoScore.
ALL_BY_MEAN = {"isoscore": Bound(within=CLOSE), "cosine": Bound(above=NONE)}


def close(statistic: str) -> Callable[[Samples], list[Check]]:
    return partial(within, bounds={statistic: Bound(within=CLOSE)})


claim = partial(
    Claim,
    on=(Samples,),
    evidence="nothing but drawn clouds, which `ctxexp claims paper=rudman_2022` makes",
    models=tuple(WIDTHS),
    null="a difference on the margin",
    reason=f"{CLOSE} of IsoScore, 0 to 1: the measure is of a sample",
    reversal="a cloud for which it is otherwise",
)
CLAIMS = (
    claim(
        id="cosine-is-no-isotropy",
        section="4",
        statement="The mean cosine is no measure of isotropy: even clouds with a mean have much, uneven ones none.",
        quote="average random cosine similarity and the partition score, have not been thoroughly analyzed and are "
        "not appropriate for measuring isotropy",
        quote_source=ABSTRACT,
        test="of an even Gaussian cloud shifted by 10 the mean cosine is above .05; of a centred one whose spreads "
        "differ tenfold it is within .05 of 0, though its IsoScore is below a half: intervals over draws",
        check=partial(within, bounds=MISLED),
    ),
    claim(
        id="mean-agnostic",
        section="4",
        statement="IsoScore doesn't see a cloud's mean.",
        test="IsoScore of an even cloud shifted by 10 less that without: its interval within .01 of 0",
        check=close("shifted"),
    ),
    claim(
        id="scale-agnostic",
        section="4",
        statement="IsoScore doesn't see a cloud's scale.",
        test="IsoScore of a cloud of threefold spread less that without: its interval within .01 of 0",
        check=close("scaled"),
    ),
    claim(
        id="rotation-agnostic",
        section="4",
        statement="IsoScore doesn't see a cloud's axes.",
        test="IsoScore of an uneven cloud in random axes less that in its own: its interval within .01 of 0",
        check=close("rotated"),
    ),
    claim(
        id="counts-dimensions",
        section="4",
        statement="IsoScore is the share of dimensions that a cloud uses evenly.",
        test="IsoScore of a cloud that uses half of its dimensions evenly less (d/2 - 1) / (d - 1): its interval "
        "within .01 of 0",
        check=close("half"),
    ),
    claim(
        id="mean-makes-the-cosine",
        section="5",
        statement="In models' layers too it is the mean that makes the mean cosine, and IsoScore doesn't see it.",
        test="taking a layer's mean away changes IsoScore by less than .01 and the mean cosine by more than .05: "
        "intervals over samples of sentences, every layer",
        models=(),
        general="contextual models",
        evidence="the paper's models on WikiText-2; model= gives the same tests of a model",
        check=partial(within, bounds=ALL_BY_MEAN),
    ),
)


def paper() -> Paper:
    """The paper's claims."""
    return Paper(
        name="rudman_2022",
        title="The claims of Rudman et al. (2022), IsoScore, tested",
        citation=(
            "William Rudman, Nate Gillman, Taylor Rayne and Carsten Eickhoff (2022), IsoScore: Measuring the "
            "Uniformity of Embedding Space Utilization. Findings of ACL, pp. 3325-3339"
        ),
        url="https://aclanthology.org/2022.findings-acl.262",
        protocol=Protocol("of the claims on measures: clouds of known isotropy; of that on models: WikiText-2"),
        claims=CLAIMS,
        sources=sources,
        rule="What a measure does on clouds of known isotropy needs no model, so that clouds drawn here are evidence "
        "of the paper's own kind; its own clouds' sizes could not be checked.",
        abstract=("cosine-is-no-isotropy",),
    )
