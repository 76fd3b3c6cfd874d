"""Papers are files: what one must have, what a wrong one is told, and how verdicts on it are reached and shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ctxexp_papers.claims import report
from ctxexp_papers.claims.evidence import Member, Source, has_twin, is_mini, untrained_encoder
from ctxexp_papers.claims.kinds import describe, key_of
from ctxexp_papers.claims.paper import load, papers
from ctxexp_papers.claims.statistics import LayerCurve
from ctxexp_papers.claims.verdict import Verdict, try_sources

from benchmarks.claims.artefacts import ARTEFACTS
from ctxexp.command import Experiment, configured, registry
from ctxexp.errors import ConfigError, DataError, UnknownName
from tests.composed import forget_plugin_files, run_command_line

from .drawn_instances import INSTANCES, counts

FILE = """
[paper]
title = "Mine"
citation = "Me (2026)"
url = "https://example.org"
source = "its abstract"
protocol = "any model"
needs = "numbers"

[[claim]]
id = "positive"
place = "section 1"
statement = "Numbers are positive."
quote = "All are positive"
general = "models"
test = {kind = "layers", metric = "anisotropy/mean_cosine", above = 0}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine_2026.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_every_shipped_claim_has_its_quote_its_place_and_a_test() -> None:
    every = papers([])
    for paper in every:
        for claim in paper.claims:
            assert all((claim.quote, claim.source, claim.place, describe(claim.test))), claim.id
            assert set(claim.passed_by) <= set(ARTEFACTS)
        for test in paper.measurements():
            name = test["metric"].split("/")[0]
            kind = "comparison" if paper.evidence.get("of") in ("pairs", "steps") else "metric"
            name = "max_explainable_variance" if name.startswith("max_explainable_variance") else name
            assert name == "mteb" or registry().find(kind, name)
    assert {f"{paper.name}/{one.id}" for paper in every for one in paper.follows} >= set(INSTANCES)
    with pytest.raises(UnknownName, match="did you mean 'skean_2025'"):
        papers(["skaen_2025"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('quote = "All are positive"', "", "claim positive has no quote"),
        ('kind = "layers"', 'kind = "vote"', "test kind 'vote'; expected one of layers, trend, compare, ends"),
        ("above = 0}", "above = 0, below = 1}", "more than one of above, below, within"),
        ("above = 0}", "abvoe = 0}", "claim positive: unknown abvoe"),
    ],
)
def test_a_wrong_file_is_told_what_is_wrong(file: Path, old: str, new: str, message: str) -> None:
    file.write_text(FILE.replace(old, new), encoding="utf-8")
    with pytest.raises(DataError) as error:
        load(file)
    assert str(file) in str(error.value)
    assert message in str(error.value)


def test_a_paper_of_ones_own_is_tried_from_its_file(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["claims", f"paper={file}", "model=random_words", "out=found"]) == 0
    said = capsys.readouterr().out
    assert "Of 1 claims 0 on the papers' own protocol or results (0 holds, 0 fails, 0 open) and 1 on" in said
    rows = pd.read_csv(tmp_path / "found" / "claims.csv")
    assert rows.loc[0, ["claim", "decided_on", "quote", "checked"]].tolist() == [
        "positive", "models", "All are positive", "its abstract",
    ]  # fmt: skip
    tests = pd.read_csv(tmp_path / "found" / "tests.csv")
    assert abs(tests.effect[0]) < 0.05  # random vectors
    assert rows.words[0].endswith(" on random_words")
    assert "*“All are positive”* (section 1; its abstract)" in (tmp_path / "found" / "claims.md").read_text("utf-8")


def test_a_plugin_brings_a_paper(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = file.with_suffix(".py")
    plugin.write_text(
        "import pathlib, ctxexp\n@ctxexp.hookimpl(optionalhook=True)\ndef register_papers(register):\n"
        f"    register('theirs', lambda: pathlib.Path({str(file)!r}))\n",
        encoding="utf-8",
    )
    try:
        assert run_command_line([f"plugins=[{plugin}]", "claims", "paper=theirs", "json=true"]) == 0
    finally:
        forget_plugin_files()
    (row,) = json.loads(capsys.readouterr().out)["tables"]["claims"]["rows"]
    assert (row["paper"], row["claim"], row["ruling"]) == ("mine_2026", "positive", "not run")


def offered(kind: str, title: str = "", **values: float | None) -> Source:
    """Models with a curve of this value; of None: about 0."""
    key = key_of({"metric": "anisotropy/mean_cosine"})
    samples = 0.1 * np.linspace(-1, 1, 9)[:, None] * np.ones(3)
    members = [Member(model, {key: LayerCurve.of_samples(samples + (v or 0))}) for model, v in values.items()]
    departures = {model: ["not its own"] for model in values} if kind == "other" else {}
    return Source(kind, title or kind, members, departures)  # type: ignore[arg-type]


def verdict(file: Path, *sources: Source, **changes: object) -> Verdict:
    paper = load(file)
    paper = replace(paper, claims=(replace(paper.claims[0], **changes),))
    return try_sources(paper, sources).verdicts[0]


def test_a_claim_on_models_in_general_is_decided_on_offered_ones_and_counted_apart(file: Path) -> None:
    one = verdict(file, offered("other", smollm2=-1, gpt2=1))
    assert (one.ruling, one.decided_on, one.own) == ("fails", "models", None)
    assert report.words(one) == "fails on smollm2, gpt2 (mini)"
    assert report.words(verdict(file, offered("other", smollm2=1, gpt2=-1), minis=False)) == "holds on smollm2"
    assert verdict(file, offered("other", gpt2=-1), minis=False).ruling == "not run"
    assert verdict(file, offered("other", smollm2=None)).ruling == "open"
    alone = verdict(file, offered("other", smollm2=1), general="")
    assert report.words(alone) == (
        "not run: smollm2: not its own; needs numbers; measured here, not a verdict: holds on smollm2 (other)"
    )
    own = verdict(file, offered("protocol", theirs=-1), offered("other", smollm2=1))
    assert (own.ruling, own.decided_on) == ("fails", "protocol")


def test_own_sources_that_disagree_leave_a_claim_open(file: Path) -> None:
    up, down, none = (offered("protocol", name, theirs=v) for name, v in (("a", 1), ("b", -1), ("c", None)))
    assert verdict(file, up, up).ruling == "holds"
    assert verdict(file, none, down).ruling == "fails"
    split = verdict(file, up, down)
    assert (split.ruling, split.why) == ("open", "the paper's own results don't agree: a: holds; b: fails")


def test_a_claim_that_hangs_on_a_reading_is_open_and_says_on_which(file: Path) -> None:
    readings = {"plain": {}, "strict": {"above": 2}}
    one = verdict(file, offered("protocol", theirs=1), readings=readings)
    assert (one.ruling, report.words(one)) == ("open", "open: holds under plain, fails under strict")
    by = verdict(file, offered("other", smollm2=1), passed_by=("a sink", "a ramp"))
    assert (by.ruling, report.words(by)) == ("open", "open: passed (also where all is a sink, a ramp) on smollm2")
    assert verdict(file, offered("other", smollm2=-1), passed_by=("a sink",)).ruling == "fails"
    by = verdict(file, offered("other", smollm2=1), readings=readings, passed_by=("a sink",))
    assert report.words(by) == "open: passed under plain (also where all is a sink), fails under strict on smollm2"
    named = verdict(file, offered("protocol", theirs=1), models=("theirs", "absent"))
    assert (named.ruling, named.why) == ("not run", "protocol: nothing of absent; needs numbers")


def test_the_shipped_minis_are_told_by_their_names() -> None:
    assert is_mini("gpt2 weights=mini")
    assert not is_mini("gpt2 weights=published")
    assert not is_mini("gpt2 (mini)-smollm2")  # a pair, which names its own
    assert all(map(has_twin, ("bert", "smollm2", "minilm model.pooling=first")))
    assert not any(map(has_twin, ("glove", "bert weights=published", "")))
    trained, twin = Experiment(configured("bert")).encoder, untrained_encoder("bert")
    assert (twin.n_layers, twin.dim, twin.details["untrained"]) == (trained.n_layers, trained.dim, True)
    with pytest.raises(ConfigError, match="'random_words'"):
        untrained_encoder("random_words")


BOTH = "similarity in all dimensions", "in the wide ones"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("groeger_2026/scale-inflates", {"width": 16, "depth": 13}),
        ("mickus_2024/isotropy-costs-clusters", {"three clusters": 8, "at both ends of every axis": 0}),
        ("mickus_2024/isotropy-excludes-clusters", {"three clusters": 8, "at both ends of every axis": 0}),
        ("queipo_2025/entropy-bound", {"": 60}),
        ("queipo_2025/one-direction", {"": 60}),
        ("rudman_2022/cosine-is-no-isotropy", {"even, shifted": 12, "uneven, centred": 12}),
        ("timkey_2021/standardising-corrects", dict(zip(BOTH, (11, 8), strict=True))),
        ("timkey_2021/standardising-reveals", dict(zip(BOTH, (12, 0), strict=True))),
    ],
)
def test_what_follows_comes_out_as_often_as_the_papers_files_say(statement: str, expected: dict[str, int]) -> None:
    assert {case: k for case, (k, _) in counts(*statement.split("/")).items()} == expected


def test_what_follows_is_no_verdict() -> None:
    table = report.report([try_sources(papers(["mickus_2024"])[0], [])]).tables["follows"]
    assert table.numbers["statement_id"].tolist() == ["isotropy-excludes-clusters", "isotropy-costs-clusters"]
