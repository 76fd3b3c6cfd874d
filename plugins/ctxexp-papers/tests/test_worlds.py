"""Every shipped claim in worlds of known truth, in small; `python -m benchmarks.claims` is the full form."""

from __future__ import annotations

import pytest
from ctxexp_papers.claims.paper import Claim, papers

from benchmarks.claims.artefacts import ARTEFACTS, fooled
from benchmarks.claims.worlds import decision_rates

CLAIMS = [pytest.param(claim, id=f"{paper.name}-{claim.id}") for paper in papers([]) for claim in paper.claims]
NULLS, SEED = 5, 2


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_planted_truth_is_found_either_way(claim: Claim) -> None:
    assert decision_rates(claim, "true", 1, seed=SEED) == {"holds": 1, "fails": 0}
    assert decision_rates(claim, "false", 1, seed=SEED) == {"holds": 0, "fails": 1}


@pytest.mark.nightly
def test_null_worlds_of_all_claims_seldom_get_a_verdict() -> None:
    """Of all together, since one claim's few worlds say nothing."""
    found = [decision_rates(claim.values[0], "null", NULLS, seed=SEED) for claim in CLAIMS]  # type: ignore[arg-type]
    assert sum(sum(one.values()) for one in found) / len(found) <= 0.07


@pytest.mark.parametrize("name", ["huh_2024", "queipo_2025", "razzhigaev_2024_linear", "sun_2024", "timkey_2021"])
def test_an_artefact_alone_passes_those_claims_that_list_it(name: str) -> None:
    (paper,) = papers([name])
    for artefact in sorted(ARTEFACTS)[(SEED + len(name)) % 3 :: 3]:
        listed = {claim.id: float(artefact in claim.passed_by) for claim in paper.claims}
        assert fooled(paper, artefact, 1, SEED) == listed, artefact
