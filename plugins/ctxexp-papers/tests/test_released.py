"""Verdicts on what authors released, where the clones are; skipped without them."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest
from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.court import Trial, papers, try_paper
from ctxexp_papers.claims.source import Inputs
from ctxexp_papers.papers.ethayarajh_2019.polysemy import NO_PART

FOLDER = Path(__file__).parents[3] / ".." / "shared" / "data" / "released"


def trial(name: str) -> Trial:
    if not (FOLDER / name).is_dir():
        pytest.skip(f"no {FOLDER / name}: the authors' released results, which are not ours to ship")
    (paper,) = papers([name])
    return try_paper(paper, Inputs(released=FOLDER))


def words(of: Trial) -> dict[str, str]:
    return {verdict.claim.id: verdict.words for verdict in of.verdicts}


def finding_of(of: Trial, claim: str) -> tuple[Check, ...]:
    verdict = next(v for v in of.verdicts if v.claim.id == claim)
    assert verdict.finding
    return verdict.finding.checks


def effects(of: Trial, claim: str, variant: str = "") -> dict[str, tuple[bool | None, float, float, float]]:
    verdict = next(v for v in of.verdicts if v.claim.id == claim)
    assert verdict.finding
    checks = [check for check in verdict.finding.checks if check.variant == variant]
    return {check.model: (check.passed, check.effect, check.low, check.high) for check in checks}


def test_curves_of_ethayarajh_2019() -> None:
    made = trial("ethayarajh_2019")
    said = words(made)
    assert sum(verdict != "not run" for verdict in said.values()) == 4
    assert said["anisotropic"] == "open"  # by the bound on what 1,000 pairs can have erred by
    sides = {check.model: check.passed for check in finding_of(made, "anisotropic")}
    assert sides == {"elmo": None, "bert": True, "gpt2": True}


def test_middle_layers_of_skean_2025() -> None:
    """Those of the first trials by hand: the layer chosen on the other 31 tasks."""
    made = trial("skean_2025")
    last, ends = (effects(made, claim, "English test sets") for claim in ("middle-above-last", "middle-above-ends"))
    expected = {"pythia-410m": (5.06, 3.8, 6.4), "pythia-160m": (2.54, -0.2, 5.2), "pythia-70m": (-2.69, -5.4, -0.2),
                "pythia-14m": (-1.34, -2.5, -0.4)}  # fmt: skip
    for model, numbers in expected.items():
        assert ends[model][1:] == pytest.approx(numbers, abs=0.13), model
    assert last["pythia-410m"][1:] == pytest.approx((5.06, 3.8, 6.4), abs=0.1)
    assert {model: passed for model, (passed, *_) in ends.items()} == {
        "pythia-14m": False, "pythia-70m": None, "pythia-160m": None, "pythia-410m": True, "mamba-370m": True,
    }  # fmt: skip
    every = effects(made, "middle-above-ends", "all language subsets")
    assert {model for model, (passed, *_) in every.items() if passed is None} == {
        "pythia-14m", "pythia-70m", "pythia-160m",
    }  # fmt: skip
    learned = effects(made, "gain-is-learned", "English test sets")["pythia-410m"]
    assert learned[0] is False
    assert learned[1] == pytest.approx(5.06 - 8.79, abs=0.01)
    assert words(made) == {
        "middle-above-last": "holds",
        "middle-above-ends": "open: fails under English test sets, 1 other not decided",
        "nearly-every-task": "open",
        "best-at-mid-depth": "open",
        "gain-is-learned": "fails",
    }


def test_means_of_gari_soler_2021_tell_sides_and_give_no_verdict() -> None:
    made = trial("gari_soler_2021")
    assert set(words(made).values()) == {"not run"}
    ((source, findings),) = made.findings
    assert source.kind == "points"
    said = {finding.claim.id: finding.words for finding in findings}
    assert said == {"other-languages": "figures disagree"}
    greek = [c for c in findings[-1].checks if c.passed is False]
    assert {c.model for c in greek} == {"el-greekuncased", "el-multicased"}


@pytest.fixture(scope="module")
def semcor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds SemCor."""
    archive = FOLDER.parent / "senses" / "google_wsd.tar.xz"
    if not archive.is_file():
        pytest.skip(f"no {archive}, which holds SemCor")
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
    sts = FOLDER.parent / "sts"
    if not (sts / "STS2012-test").is_dir():
        pytest.skip(f"no text of STS 2012 to 2016 in {sts}")
    monkeypatch.setenv("SEMCOR", str(semcor))
    monkeypatch.setenv("STS", str(sts))
    made = trial("ethayarajh_2019")
    assert words(made)["variety-not-polysemy"].startswith("open")
    page = (Path(__file__).parents[3] / "docs" / "measures" / "claims.md").read_text(encoding="utf-8")
    rows = {row[0]: row[1:] for row in re.findall(r"^\| (ELMo|BERT|GPT-2) \| (.*) \| (.*) \| (.*) \|$", page, re.M)}
    checks = [check for check in finding_of(made, "variety-not-polysemy") if check.variant == NO_PART]
    assert len(checks) == 2 * len(rows) == 6
    for name, (variety, senses, n) in rows.items():
        mine = [check for check in checks if check.model == name.replace("-", "").lower()]
        for check, quoted in zip(mine, (variety, senses), strict=True):
            values = [f"{value:.3f}".replace("0.", ".") for value in (check.effect, check.low, check.high)]
            assert quoted == "{} [{}, {}]".format(*values), name
            assert f"{check.n:,.0f}" == n
