"""Every paper's claims in worlds of known truth, in small; `python -m benchmarks.claims` is the full form."""

from __future__ import annotations

import pytest
from ctxexp_papers.claims.court import papers
from ctxexp_papers.claims.paper import Claim, Paper

from benchmarks.claims.worlds import false_verdicts, share, worlds_of

NULL, PLANTED = 25, 3
CLAIMS = [(paper, claim) for paper in papers() for claim in paper.claims if claim.id in worlds_of(paper)]


@pytest.mark.parametrize(("paper", "claim"), CLAIMS, ids=[f"{p.name}-{c.id}" for p, c in CLAIMS])
def test_a_claim_is_decided_by_the_truth_alone(paper: Paper, claim: Claim) -> None:
    world = worlds_of(paper)[claim.id]
    assert false_verdicts(claim, world, NULL) <= 0.16  # of 25 worlds at 5%, 4 or fewer in 99%; the bench has 400
    if world.true:
        assert share(claim, world.true, {"pass"}, PLANTED) == 1
    if world.false:
        assert share(claim, world.false, {"fail"}, PLANTED) == 1


@pytest.mark.parametrize("paper", papers(), ids=lambda paper: paper.name)
def test_a_papers_claims_say_what_they_need(paper: Paper) -> None:
    worlds = worlds_of(paper)
    ids = [claim.id for claim in paper.claims]
    assert len(set(ids)) == len(ids)
    assert set(worlds) == set(ids)
    assert set(paper.abstract) <= set(ids)
    every = {f"{one.name}/{claim.id}" for one in papers() for claim in one.claims}
    assert paper.name in {one.name for one in papers([paper.name])}
    for claim in paper.claims:
        for name in ("statement", "quote", "quote_source", "test", "null", "reason", "reversal", "evidence"):
            assert getattr(claim, name).strip(), claim.id
        assert claim.statement.endswith("."), claim.id
        assert claim.variants, claim.id
        assert set(claim.contradicts) <= every, claim.id
