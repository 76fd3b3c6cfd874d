"""The common part of the paper's claims: the shapes of their tests, and the evidence they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ctxexp_papers.claims.checks import NONE, Check
from ctxexp_papers.claims.evidence import Family
from ctxexp_papers.claims.paper import Claim

ABSTRACT = "the abstract, arXiv 1909.00512"
RUNS = "python -m ctxexp -m experiment=ethayarajh_2019 weights=published model=bert,gpt2,elmo"


@dataclass(frozen=True)
class TestShape:
    """A shape of test: what it must not call an effect, why its threshold is where it is, what would reverse it."""

    null: str
    reason: str
    reversal: str


BOUND = TestShape(
    "a layer on the bound: of so many layers and models one would break or meet it by chance, so that intervals are "
    "widened for all that may",
    f"0 where the paper says above or below; {NONE} where it says anisotropic or none, since untrained networks too "
    "exceed 0",
    "a layer whose whole interval is on the other side, in any of the models",
)
TREND = TestShape(
    "walks of the curve's own steps, each up or down, and smooth walks: 5% go with depth as far",
    f"a change of {NONE} at the least: less is none by the margin of equivalence",
    "a run whose curve goes the other way, or no further than walks do",
)
ASSOCIATION = TestShape(
    "walks of either curve's own steps, and smooth walks: 5% go with the other curve as far",
    "rho beyond 0, on raw self-similarity: adjusted contains the mean cosine",
    "curves that rise together in the chance-corrected value too",
)
DIFFERENCE = TestShape(
    "the difference is 0, by its interval on the same resamples where runs share them",
    f"0 for below and above; {NONE} for close",
    "a difference's interval on the other side, in any of the readings",
)
SHARE = TestShape(
    "the share is on its line, by Wilson's interval widened for layers and models",
    "one word in ten, for `many` and for `among the lowest`: the paper gives no number",
    "one layer of one model with the share on the other side",
)
LOWEST_FIVE = TestShape(
    "the share is on its line, by Wilson's interval: five words are lowest by chance once in 10^17 choices",
    "one other word in a hundred, since ties and rare words with two contexts may stand lower",
    "another hundred words below them",
)
WINS = TestShape(
    "equal scores: a benchmark is won only by a difference whose interval is above 0, a tie is no win",
    "more than half of the benchmarks, the paper's `most`",
    "lost benchmarks whose intervals leave fewer than half to win",
)
INFERENCE = TestShape("those of the claims it rests on", "the weakest of them decides", "a verdict on one of those")


def claim(
    id: str,
    section: str,
    statement: str,
    test: str,
    check: Callable[[Any], list[Check]],
    models: tuple[str, ...],
    variants: tuple[str, ...] = ("",),
    *,
    shape: TestShape,
    needs: tuple[str, ...] = (),
    evidence: str = f"runs of the paper's weights on its text ({RUNS})",
    quote: str = "",
) -> Claim:
    """A claim of the paper on its runs; `quote`: its abstract's words."""
    return Claim(
        id=id,
        section=section,
        statement=statement,
        test=test,
        check=check,
        models=models,
        variants=variants,
        needs=needs,
        null=shape.null,
        reason=shape.reason,
        reversal=shape.reversal,
        on=(Family,),
        evidence=evidence,
        quote=quote,
        quote_source=ABSTRACT if quote else "",
    )
