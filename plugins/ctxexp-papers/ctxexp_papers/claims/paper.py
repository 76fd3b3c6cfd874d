"""The claims of Ethayarajh (2019) as tests that were fixed before any run was looked at.

A claim's verdict is holds, holds only under a reading, fails, open, or not run, and comes from runs of the paper's own
weights, text and protocol alone. Other runs, and the figures that the authors released, go through the same tests and
are reported as what they are. Intervals decide: of released points it is only said on which side they lie.
"""

from __future__ import annotations

from ctxexp_papers.claims import contexts, static, words
from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.evidence import Evidence, Family, families, own_weights
from ctxexp_papers.claims.verdict import Claim, Finding, judge

CLAIMS: tuple[Claim, ...] = (*contexts.CLAIMS, *words.CLAIMS, *static.CLAIMS)
"""Every claim, in the paper's order; those of its abstract are in ABSTRACT."""

ABSTRACT = ("anisotropic", "same-word-closer", "self-similarity-falls", "variance-below-5", "finite-senses")
"""The five sentences of the abstract that report results."""


def evaluate(family: Family) -> list[Finding]:
    """A finding for each claim on this family, the runs that are judged together, in the order of CLAIMS."""
    findings: list[Finding] = []
    for claim in CLAIMS:
        findings.append(judge(claim, family, findings))
    return findings


__all__ = [
    "ABSTRACT",
    "CLAIMS",
    "Check",
    "Claim",
    "Evidence",
    "Family",
    "Finding",
    "evaluate",
    "families",
    "judge",
    "own_weights",
]
