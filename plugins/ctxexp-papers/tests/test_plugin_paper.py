"""A paper in a file of one's own, and how two of a paper's sources that disagree leave a claim open."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ctxexp_papers.claims.court import try_sources
from ctxexp_papers.claims.verdict import Verdict

from tests.composed import forget_plugin_files, run_command_line

FILE = """
from dataclasses import dataclass
import numpy as np
import ctxexp
from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.source import Source
from ctxexp_papers.claims.statistics.paired import paired_difference

@dataclass
class Numbers(Source):
    values: tuple = ()

def check(source):
    span = paired_difference(np.array(source.values))
    return [Check("all", "", span.above(), *span, brief=f"{span.value:.2f}")]

def paper():
    claim = Claim(id="positive", section="1", statement="Numbers are positive.", quote="All are positive",
                  quote_source="its abstract", test="t", null="0", reason="0", reversal="negative ones",
                  check=check, on=(Numbers,), evidence="numbers")
    values = (1.0, 2, 3, 2, 1.5, 2)
    return Paper(name="mine_2026", title="Mine", citation="Me (2026)", url="https://example.org",
                 protocol=Protocol("any"), claims=(claim,),
                 sources=lambda inputs: [Numbers("protocol", "my numbers", values=values)])

@ctxexp.hookimpl(optionalhook=True)
def register_papers(register):
    register("mine_2026", paper)
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A plugin's file; afterwards the registry is without it."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(FILE, encoding="utf-8")
    yield path
    forget_plugin_files()


def test_a_plugin_file_adds_a_paper(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([f"plugins=[{file}]", "claims", "paper=mine_2026", f"out={tmp_path}"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"positive +holds +Numbers are positive", said)
    assert "all        yes    1.917 [1.219, 2.614]     n 6" in said
    ((paper,),) = (json.loads((tmp_path / "claims.json").read_text(encoding="utf-8")),)
    (claim,) = paper["claims"]
    assert (paper["counts"]["holds"], claim["verdict"], claim["quote_checked_against"]) == (1, "holds", "its abstract")
    assert claim["decided_by"]["checks"][0]["effect"] == pytest.approx(11.5 / 6)


def test_own_sources_that_disagree_leave_a_claim_open(file: Path) -> None:
    mine: dict[str, object] = {}
    exec(compile(FILE, str(file), "exec", dont_inherit=True), mine)  # the module that a plugin file is
    numbers, paper = mine["Numbers"], mine["paper"]()  # type: ignore[operator]

    def verdict(**kinds: tuple[float, ...]) -> Verdict:
        sources = [numbers(kind.partition("_")[0], kind, values=v) for kind, v in kinds.items()]  # type: ignore[operator]
        return try_sources(paper, sources).verdicts[0]

    up, down, wide = (1.0, 2.0, 1.0, 2.0, 1.5), (-1.0, -2.0, -1.0, -2.0, -1.5), (-9.0, 9.0, 1.0, -1.0, 0.5)
    assert verdict(protocol_a=up, protocol_b=up).ruling == "holds"
    assert verdict(protocol_a=wide, protocol_b=down).ruling == "fails"
    split = verdict(protocol_a=up, protocol_b=down)
    assert (split.ruling, split.words) == ("open", "open")
    assert split.why == "the paper's own results don't agree: protocol_a: holds; protocol_b: fails"
    off = verdict(other=down)
    assert (off.ruling, off.finding, off.why) == ("not run", None, "needs numbers")
    assert [finding.words for finding in off.beside] == ["not as claimed"]
    assert verdict(other=down, protocol=up).ruling == "holds"
