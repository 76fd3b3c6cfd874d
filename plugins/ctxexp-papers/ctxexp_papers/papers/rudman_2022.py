"""Rudman et al. (2022), *IsoScore*: what measures of isotropy say of clouds whose isotropy is known."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from ctxexp_papers.claims.checks import NONE, Bound
from ctxexp_papers.claims.drawn import draw_instances, drawn_if_possible, within
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.samples import Samples
from ctxexp_papers.claims.source import Inputs, Source

ABSTRACT = "the abstract, arXiv 2108.07344"
WIDTHS = {"d = 10": 10, "d = 50": 50}
POINTS = 5000  # an even cloud of n points reaches about n / (d + n)
SHIFT = 10.0  # of every coordinate's mean, in standard deviations


def clouds(d: int, rng: np.random.Generator, points: int = POINTS) -> Mapping[str, float]:
    """Values of drawn clouds whose isotropy is known: an even one that is shifted, and an uneven one."""
    from ctxexp.maths import isoscore, mean_cosine

    even = rng.normal(size=(points, d))
    uneven = even * np.geomspace(1, 10, d)
    rng.normal(size=(d, d))  # a rotation was drawn here: later clouds stay those of the published table
    return {
        "cosine of shifted": float(mean_cosine(even + SHIFT)),
        "cosine of uneven": float(mean_cosine(uneven)),
        "isoscore of uneven": isoscore(np.cov(uneven, rowvar=False)),
    }


def drawn(samples: int = 12) -> Samples:
    """The paper's own kind of test: clouds whose isotropy is known by their making."""
    cases = {name: (partial(clouds, d), (d,)) for name, d in WIDTHS.items()}
    return draw_instances("rudman_2022", "Gaussian clouds of known isotropy, drawn here", cases, samples)


def sources(inputs: Inputs) -> list[Source]:
    """Drawn clouds."""
    return [*drawn_if_possible(inputs, drawn)]


# The mean cosine calls an even cloud anisotropic, and an uneven one isotropic.
MISLED = {
    "cosine of shifted": Bound(above=NONE),
    "cosine of uneven": Bound(within=NONE),
    "isoscore of uneven": Bound(below=0.5),
}
CLAIMS = (
    Claim(
        id="cosine-is-no-isotropy",
        section="4",
        statement="The mean cosine is no measure of isotropy: even clouds with a mean have much, uneven ones none.",
        quote="average random cosine similarity and the partition score, have not been thoroughly analyzed and are "
        "not appropriate for measuring isotropy",
        quote_source=ABSTRACT,
        test="of an even Gaussian cloud shifted by 10 the mean cosine is above .05; of a centred one whose spreads "
        "differ tenfold it is within .05 of 0, though its IsoScore is below a half: intervals over draws",
        null="a difference on the margin",
        reason=f"{NONE}, the margin of equivalence for cosines; a half of IsoScore, which is 0 to 1",
        reversal="a cloud for which it is otherwise",
        evidence="nothing but drawn clouds, which `ctxexp claims paper=rudman_2022` makes",
        check=partial(within, bounds=MISLED),
        on=(Samples,),
        models=tuple(WIDTHS),
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
        protocol=Protocol("clouds of known isotropy"),
        claims=CLAIMS,
        sources=sources,
        rule="What a measure does on clouds of known isotropy needs no model, so that clouds drawn here are evidence "
        "of the paper's own kind; its own clouds' sizes could not be checked.",
        abstract=("cosine-is-no-isotropy",),
    )
