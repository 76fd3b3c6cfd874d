"""Verdicts on offered models, of which a paper speaks in general: told and counted apart from those on its protocol."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from ctxexp_papers.claims import report
from ctxexp_papers.claims.checks import Check
from ctxexp_papers.claims.court import Trial, try_sources
from ctxexp_papers.claims.paper import Claim, Paper
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.source import Source, has_twin, is_mini, untrained_encoder
from ctxexp_papers.claims.writing import as_json, page

from ctxexp.command import Built, configured
from ctxexp.errors import ConfigError
from tests.composed import run_command_line


@dataclass
class Numbers(Source):
    values: dict[str, bool | None] = field(default_factory=dict)


def checks(source: Numbers) -> list[Check]:
    return [Check(model, "", side, 1.0, 0.5, 1.5, brief="1.0") for model, side in source.values.items()]


CLAIM = Claim(
    id="positive", section="1", statement="Numbers are positive.", quote="q", quote_source="s", test="t", null="0",
    reason="0", reversal="no",
    check=checks, on=(Numbers,), evidence="numbers",
)  # fmt: skip


def trial(*sources: Source, **changes: object) -> Trial:
    claim = replace(CLAIM, **changes)
    paper = Paper(
        name="mine_2026", title="Mine", citation="Me", url="https://example.org", protocol=Protocol("any"),
        claims=(claim,), sources=lambda inputs: (),
    )  # fmt: skip
    return try_sources(paper, sources)


def offered(**values: bool | None) -> Numbers:
    return Numbers("other", "the run's text", {model: ["not its own"] for model in values}, values=values)


def test_a_claim_on_models_in_general_is_decided_on_an_offered_one_and_counted_apart() -> None:
    made = trial(offered(smollm2=False, gpt2=True), general="decoders")
    (verdict,) = made.verdicts
    assert verdict.ruling == "not run"
    assert (verdict.ruling_on_models, verdict.finding) == ("fails", None)
    assert verdict.on_models is not None
    assert verdict.on_models.on_models == "fails on smollm2, gpt2 (mini)"
    assert made.counts() == {"holds": 0, "fails": 0, "open": 0, "not run": 1}
    assert made.counts_on_models() == {"holds": 0, "fails": 1, "open": 0}
    said = report.text(made)
    assert "on your models, counted apart: fails on smollm2, gpt2 (mini)" in said
    assert "measured here, not a verdict" not in said
    table = report.table([made])
    assert "0 of 1 claims, of 0 papers, are decided on the paper's own protocol" in table
    assert "1 more, of 1 papers, on the offered models alone" in table
    assert "fails on smollm2, gpt2 (mini)" in report.markdown([made])
    assert 'class="fails">on models: fails<' in page([made])
    (claim,) = json.loads(as_json([made]))[0]["claims"]
    assert (claim["verdict"], claim["verdict_on_models"], claim["general"]) == ("not run", "fails", "decoders")


def test_minis_are_no_instances_of_large_models() -> None:
    made = trial(offered(smollm2=True, gpt2=False), general="large models", minis=False)
    on_models = made.verdicts[0].on_models
    assert on_models is not None
    assert on_models.on_models == "holds on smollm2"
    assert trial(offered(gpt2=False), general="large models", minis=False).verdicts[0].ruling_on_models == ""
    assert is_mini("gpt2 weights=mini")
    assert not is_mini("gpt2 weights=published")
    assert not is_mini("gpt2 (mini)-smollm2")  # a pair, which names its own
    assert all(map(has_twin, ("bert", "smollm2", "minilm model.pooling=first")))
    assert not any(map(has_twin, ("glove", "bert weights=published", "")))


def test_an_untrained_twin_is_the_same_network_with_other_weights() -> None:
    trained, twin = (Built(configured("bert", None, ())).encoder, untrained_encoder("bert"))
    assert (twin.n_layers, twin.dim, twin.details["untrained"]) == (trained.n_layers, trained.dim, True)
    assert twin.name != trained.name
    assert untrained_encoder("bert").name == twin.name  # its seed is fixed
    with pytest.raises(ConfigError, match="'random_words'"):
        untrained_encoder("random_words")


def test_a_claim_on_the_papers_models_alone_is_never_decided_on_others() -> None:
    made = trial(offered(smollm2=True))
    assert made.verdicts[0].ruling_on_models == ""
    assert "measured here, not a verdict: as claimed" in report.text(made)


def test_a_verdict_on_the_protocol_goes_before() -> None:
    own = Numbers("protocol", "its own", values={"theirs": False})
    made = trial(own, offered(smollm2=True), general="decoders")
    assert (made.verdicts[0].ruling, made.verdicts[0].ruling_on_models) == ("fails", "")
    assert sum(made.counts_on_models().values()) == 0
    silent = trial(offered(smollm2=None), general="decoders")
    assert silent.verdicts[0].ruling_on_models == "open"


def test_a_listing_draws_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    from ctxexp_papers.papers import rudman_2022, timkey_2021

    def draw() -> None:
        raise AssertionError("drawn")

    for module in (rudman_2022, timkey_2021):
        monkeypatch.setattr(module, "drawn", draw)
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["claims"]) == 0
    said = capsys.readouterr().out
    assert report.NOT_DRAWN in said
    counts = [line.split()[2:5] for line in said.splitlines() if "_20" in line.split(" ")[0]]
    assert len(counts) >= 19
    assert np.array(counts, int).sum() == 0
    with pytest.raises(AssertionError, match="drawn"):
        run_command_line(["claims", "paper=rudman_2022"])
