"""The table of claims in a sweep's report, and the page of verdicts that a script makes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from ctxexp_papers.claims.sweep_table import COLUMNS, OF_RUNS, table

from docs.numbers import court
from tests.made import results_with


def test_a_sweep_for_a_papers_claims_has_a_table_of_them() -> None:
    plain = results_with({"anisotropy/mean_cosine": np.array([0.1, 0.5])})
    assert table([("a", plain)]) is None
    rows = [{"word": f"w{i}", "layer": layer, "all": 0.9 if i < 40 else 0.3, "one_sense": 0.9 if i < 40 else 0.3,
             "senses": 1 if i < 40 else 4, "contexts": 6 + i % 7, "variety": 0.5}
            for i in range(80) for layer in range(3)]  # fmt: skip
    frame = pd.DataFrame(rows)
    frame["all"] += np.random.default_rng(0).normal(0, 0.02, len(frame))
    frame["one_sense"] = frame["all"]
    run = results_with({"anisotropy/mean_cosine": np.array([0.1, 0.5])})
    run = type(run)(run.frame, {"self_similarity_by_senses": frame}, {}, run.info)
    made = table([("a", run)])
    assert made is not None
    assert list(made.columns) == COLUMNS
    by_claim = {row[0]: row for row in made.shown}
    assert by_claim["mono-above-poly"][1] == "as claimed only under poly-rand (1 other reading open or not measured)"
    assert by_claim["mono-above-one-sense"][1] == "as claimed"
    assert {row[-1] for row in made.shown} == {"measured here, not a verdict"}
    assert len(by_claim) == len(made.shown)


def test_the_first_column_names_one_claim_even_of_several_papers() -> None:
    ids = [claim.id for paper in OF_RUNS.values() for claim in paper().claims]
    assert len(set(ids)) == len(ids)
    assert COLUMNS[0] == "claim"


def test_the_page_counts_verdicts_on_models_apart(tmp_path: Path) -> None:
    check = {"model": "m", "specification": None, "as_claimed": True, "effect": 0.5, "low": 0.4, "high": 0.6, "n": 9}
    finding = {"on": "a source", "kind": "protocol", "outcome": "holds", "command": "ctxexp claims", "checks": [check]}
    base = {
        "place": "section 1",
        "statement": "It is.",
        "quote": "it is",
        "quote_checked_against": "abstract",
        "null": "no",
    }
    claims = [
        base | {"claim": "a", "verdict": "holds", "words": "holds", "verdict_on_models": None, "words_on_models": None,
                "decided_by": finding, "not_verdicts": []},
        base | {"claim": "b", "verdict": "not run", "words": "not run", "verdict_on_models": "fails", "quote": None,
                "words_on_models": "fails on m", "decided_by": None, "not_verdicts": [finding | {"kind": "other"}]},
        base | {"claim": "c", "verdict": "not run", "words": "not run", "verdict_on_models": None,
                "words_on_models": None, "decided_by": None, "not_verdicts": [], "why": "needs ratings"},
    ]  # fmt: skip
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "claims.json").write_text(json.dumps([{"paper": "p_2020", "claims": claims}]))
    numbers = court._kept(tmp_path)
    assert numbers["decided_on"].tolist() == ["protocol", "models", "not run"]
    text = court.table(numbers)
    assert "instances: 1 claims of 1 papers (1 holds, 0 fails, 0 open)." in text
    assert "On offered models alone: 1 claims of 1 papers (0 holds, 1 fails, 0 open)." in text
    assert "| on models: fails on m | 0.5 [0.4, 0.6] | a source |" in text
    assert 'It is. *"it is"* (section 1; abstract)' in text
    assert "It is. (section 1; a paraphrase, not checked)" in text
    assert "| not run: needs ratings |" in text
