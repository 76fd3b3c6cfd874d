"""A paper tried on what a user offers: a finding for each claim and source, and a verdict for each claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ctxexp_papers.claims.paper import Paper
from ctxexp_papers.claims.source import Inputs, Source
from ctxexp_papers.claims.verdict import RULINGS, Finding, Verdict, decide, judge


@dataclass(frozen=True)
class Trial:
    """A paper's verdicts, one a claim in the paper's order, and the findings on every source behind them."""

    paper: Paper
    verdicts: tuple[Verdict, ...]
    findings: tuple[tuple[Source, tuple[Finding, ...]], ...]

    def counts(self) -> dict[str, int]:
        """How many claims hold, fail, are open, and were not run."""
        counts = Counter(verdict.ruling for verdict in self.verdicts)
        return {ruling: counts[ruling] for ruling in RULINGS}

    def counts_on_models(self) -> dict[str, int]:
        """Of those not run: how many hold, fail and are open on the offered models."""
        counts = Counter(verdict.ruling_on_models for verdict in self.verdicts)
        return {ruling: counts[ruling] for ruling in RULINGS[:-1]}


def evaluate(paper: Paper, source: Source) -> tuple[Finding, ...]:
    """A finding for each of the paper's claims on this source, in their order."""
    return tuple(judge(claim, source) for claim in paper.claims)


def try_paper(paper: Paper, inputs: Inputs) -> Trial:
    """The paper's verdicts on what is offered."""
    return try_sources(paper, paper.sources(inputs))


def try_sources(paper: Paper, sources: Sequence[Source]) -> Trial:
    """The paper's verdicts on these sources, the first of them preferred."""
    findings = tuple((source, evaluate(paper, source)) for source in sources)
    verdicts = [decide(claim, [found[i] for _, found in findings]) for i, claim in enumerate(paper.claims)]
    return Trial(paper, tuple(verdicts), findings)


def papers(names: Sequence[str] = ()) -> list[Paper]:
    """The registered papers of these names, or all in the order of their names; raises UnknownName."""
    from ctxexp.command import registry
    from ctxexp_papers.claims.hooks import PAPER

    registered = registry()
    chosen = []
    for name in names or registered.names(PAPER):
        offer = registered.find(PAPER, name)
        with offer.plugin_call():
            chosen.append(offer.factory())
    return chosen
