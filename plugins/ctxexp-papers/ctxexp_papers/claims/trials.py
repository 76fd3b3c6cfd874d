"""A paper tried on what a user offers: its evidence gathered, its verdicts."""

from __future__ import annotations

from ctxexp_papers.claims.evidence import Inputs, Source
from ctxexp_papers.claims.models import of_models
from ctxexp_papers.claims.paper import Paper
from ctxexp_papers.claims.released import READERS
from ctxexp_papers.claims.runs import of_runs
from ctxexp_papers.claims.verdict import Trial, try_sources


def try_paper(paper: Paper, inputs: Inputs) -> Trial:
    """The paper's verdicts on what is offered."""
    return try_sources(paper, gather(paper, inputs))


def gather(paper: Paper, inputs: Inputs) -> list[Source]:
    """The evidence on the paper's claims: its own first."""
    evidence, tests = paper.evidence, paper.measurements()
    found: list[Source] = []
    if reader := evidence.get("released"):
        found += READERS[reader](inputs, paper.name, tests)
    if "runs" in evidence:
        found += of_runs(inputs, evidence, tests)
    if paper.claims and not {"released", "runs"} & set(evidence):
        found += of_models(inputs, paper.name, evidence, tests)
    return sorted(found, key=lambda source: source.kind != "protocol")
