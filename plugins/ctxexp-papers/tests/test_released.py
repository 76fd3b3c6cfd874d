"""Verdicts on what authors released, where the clones are; skipped without them."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from ctxexp_papers.claims.evidence import Inputs
from ctxexp_papers.claims.kinds import Check
from ctxexp_papers.claims.paper import papers
from ctxexp_papers.claims.released import DRAWS, PAIRED, bounded_mean
from ctxexp_papers.claims.report import words as words_of
from ctxexp_papers.claims.verdict import Trial, try_paper

from benchmarks.claims.worlds import decision_rates
from tests.published import published_data
from tests.seeds import daily_seed


def trial(name: str) -> Trial:
    folder = published_data("data", "released", name).parent
    (paper,) = papers([name])
    return try_paper(paper, Inputs(released=folder))


def words(of: Trial) -> dict[str, str]:
    return {verdict.claim.id: words_of(verdict) for verdict in of.verdicts}


def checks_of(of: Trial, claim: str, reading: str = "") -> dict[str, Check]:
    verdict = next(v for v in of.verdicts if v.claim.id == claim)
    assert verdict.own
    return {check.model: check for check in verdict.own.checks if check.reading == reading}


def effects(of: Trial, claim: str, reading: str) -> dict[str, tuple[bool | None, float, float, float]]:
    return {m: (c.passed, c.effect, c.low, c.high) for m, c in checks_of(of, claim, reading).items()}


@pytest.mark.published
def test_curves_of_ethayarajh_2019() -> None:
    made = trial("ethayarajh_2019")
    said = words(made)
    assert sum(not verdict.startswith("not run") for verdict in said.values()) == 4
    assert said["anisotropic"] == "open"  # by the bound on what 1,000 pairs can have erred by
    sides = {check.model: check.passed for check in checks_of(made, "anisotropic").values()}
    assert sides == {"elmo": None, "bert": True, "gpt2": True}


@pytest.mark.published
def test_middle_layers_of_skean_2025() -> None:
    """The layer is chosen on the tasks of other families, and five families are what intervals draw anew."""
    made = trial("skean_2025")
    last, ends = (effects(made, claim, "English test sets") for claim in ("middle-above-last", "middle-above-ends"))
    expected = {"pythia-410m": (5.06, 2.0, 8.3), "pythia-160m": (3.53, 0.6, 6.5), "pythia-14m": (4.95, -1.7, 11.8),
                "llm2vec-8b": (1.6, -0.4, 3.7)}  # fmt: skip
    for model, numbers in expected.items():
        assert last[model][1:] == pytest.approx(numbers, abs=0.1), model
    assert [model for model, (passed, *_) in last.items() if passed] == ["pythia-410m", "mamba-370m"]
    assert [model for model, (passed, *_) in ends.items() if passed] == ["mamba-370m"]
    learned = effects(made, "gain-is-learned", "English test sets")["pythia-410m"]
    assert learned[:2] == (None, pytest.approx(5.06 - 8.79, abs=0.01))
    assert set(words(made).values()) == {"open"}


def test_families_widen_what_tasks_one_by_one_would_show() -> None:
    """Worlds without a gain, whose tasks are alike by families, drawn anew each day: one by one they get a verdict in
    some 40%, by families in 5% at the most; beyond the bound in fewer than 1 of 1,000 days."""
    (paper,) = papers(["skean_2025"])
    (claim,) = (one for one in paper.claims if one.id == "middle-above-ends")
    found = decision_rates(claim, "null", 20, seed=daily_seed())
    assert found["holds"] + found["fails"] <= 0.25


@pytest.mark.parametrize("mean", [0.0, 0.7])
def test_the_released_baseline_lies_within_its_bound(mean: float) -> None:
    """The authors' draw: 1,000 vectors, 1,000 pairs of them with replacement; the truth is the shared direction's."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(60):
        signs = np.where(rng.random(DRAWS) < (1 + mean) / 2, 1.0, -1.0)  # vectors of width 1: cosines +-1
        one, other = rng.integers(0, DRAWS, (2, DRAWS))
        low, high = bounded_mean(np.array([float((signs[one] * signs[other]).mean())]), PAIRED)
        held += bool(low[0] <= mean**2 <= high[0])
    assert held >= 55


@pytest.fixture(scope="module")
def semcor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds SemCor."""
    archive = published_data("data", "senses", "google_wsd.tar.xz")
    folder = tmp_path_factory.mktemp("senses")
    with tarfile.open(archive) as files:
        for one in files:
            content = files.extractfile(one) if one.name.startswith("semcor/") else None
            if content is not None:
                (folder / one.name).parent.mkdir(parents=True, exist_ok=True)
                (folder / one.name).write_bytes(content.read())
    return folder


@pytest.mark.nightly
def test_the_numbers_on_variety_and_polysemy_that_the_page_quotes(
    monkeypatch: pytest.MonkeyPatch, semcor: Path
) -> None:
    sts = published_data("data", "sts", "STS2012-test").parent
    monkeypatch.setenv("SEMCOR", str(semcor))
    monkeypatch.setenv("STS", str(sts))
    made = trial("ethayarajh_2019")
    assert words(made)["variety-not-polysemy"].startswith("open")
    page = (Path(__file__).parents[3] / "docs" / "measures" / "claims.md").read_text(encoding="utf-8")
    rows = {row[0]: row[1:] for row in re.findall(r"^\| (ELMo|BERT|GPT-2) \| (.*) \| (.*) \| (.*) \|$", page, re.M)}
    checks = checks_of(made, "variety-not-polysemy", "polysemy has no part")
    assert len(checks) == len(rows) == 3
    for name, (variety, senses, n) in rows.items():
        check = checks[name.replace("-", "").lower()]
        quoted = re.sub(r"[+](?=\.)", "", check.text.replace("0.", "."))
        assert quoted == f"variety {variety}; senses {senses}", name
        assert f"{check.n:,.0f}" == n
