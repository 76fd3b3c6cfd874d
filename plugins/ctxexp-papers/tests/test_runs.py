"""Finished runs as evidence: only the paper's own weights, text and choices give a verdict."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctxexp_papers.claims import report
from ctxexp_papers.claims.evidence import Inputs, Source
from ctxexp_papers.claims.paper import papers
from ctxexp_papers.claims.runs import of_runs
from ctxexp_papers.claims.verdict import Finding, judge, try_sources

from ctxexp import Results
from tests.composed import run_command_line
from tests.sample_results import measure_infos, results_with, run_info, with_info
from tests.shipped import Anisotropy, MaxExplainableVariance, SelfSimilarity

LAYERS = {"elmo": 3, "bert": 13, "gpt2": 13}
FORGED = {"weights_sha256": "0f" * 32}
METRICS = {
    "anisotropy": Anisotropy(),
    "self_similarity": SelfSimilarity(),
    "max_explainable_variance": MaxExplainableVariance(),
    "max_explainable_variance_centred": MaxExplainableVariance(definition="centred"),
    "max_explainable_variance_released": MaxExplainableVariance(definition="released"),
}
MEASURES = measure_infos(**METRICS)
(PAPER,) = papers(["ethayarajh_2019"])
PROTOCOL = {**PAPER.evidence["runs"]}
WEIGHTS = {**PROTOCOL["weights"], "elmo": "e1" * 32}  # as if the SHA-256 of ELMo's file were on record, which it isn't
CURVES = [claim.id for claim in PAPER.claims if claim.id != "variety-not-polysemy"]  # that needs senses


def sources(runs: Sequence[Results], weights: Mapping[str, str] = WEIGHTS) -> list[Source]:
    inputs = Inputs({f"{i} {results.info.model.name}": results for i, results in enumerate(runs)})
    return of_runs(inputs, {"runs": PROTOCOL | {"weights": weights}}, PAPER.measurements())


def line(first: float, last: float, n: int) -> np.ndarray:
    return np.linspace(first, last, n)


def similarity(curve: np.ndarray) -> dict[str, np.ndarray]:
    return {f"self_similarity__{s}": curve for s in ("raw", "adjusted", "share_of_room")}


def explained(curve: np.ndarray) -> dict[str, np.ndarray]:
    """An adjusted explainable variance under all readings."""
    definitions, levels = ("", "_centred", "_released"), ("adjusted", "size_matched_adjusted")
    return {f"max_explainable_variance{d}__{s}": curve for d in definitions for s in levels}


def as_claimed(model: str, **changes: np.ndarray | None) -> Results:
    """A run in which every claim comes out under every reading; `changes` replace curves (`/` written `__`)."""
    n = LAYERS[model]
    similar = {"elmo": line(0.9, 0.6, n), "bert": line(0.95, 0.57, n), "gpt2": line(0.5, 0.01, n)}[model]
    cosine = {"anisotropy__mean_cosine": line(0.01 if model == "elmo" else 0.1, 0.6, n)}
    planted = {**cosine, **similarity(similar), **explained(np.full(n, 0.01)), **changes}
    curves = {key.replace("__", "/"): curve for key, curve in planted.items() if curve is not None}
    for key, curve in list(curves.items()):
        curves[f"{key}_ci_low"], curves[f"{key}_ci_high"] = curve - 0.004, curve + 0.004
        curves[f"{key.rpartition('/')[0]}/n"] = np.full(n, 500.0)
    said = {"name": model, "title": model, "weights": "published", "corpus": "sts_2012_2016"}
    said["fingerprint"] = PROTOCOL["fingerprint"]
    details = {"weights_sha256": WEIGHTS[model]}
    return results_with(curves, info=run_info(**said, n_layers=n, measures=MEASURES, min_contexts=5, details=details))


def planted(
    changes: Mapping[str, Mapping[str, np.ndarray | None]] | None = None, *, info: Mapping[str, object] | None = None
) -> list[Source]:
    return sources([with_info(as_claimed(m, **(changes or {}).get(m, {})), **info or {}) for m in LAYERS])


def finding(source: Source, claim: str) -> Finding:
    return judge(PAPER.claim(claim), source)


UP = line(0.3, 0.6, 13)
BROKEN: dict[str, dict[str, dict[str, np.ndarray | None]]] = {
    "anisotropic": {"gpt2": {"anisotropy__mean_cosine": np.r_[line(0.1, 0.5, 12), 0.003]}},
    "same-word-closer": {"elmo": {"self_similarity__adjusted": np.array([0.9, 0.5, -0.006])}},
    "self-similarity-falls": {"bert": similarity(UP)},
    "upper-more-contextual": {"elmo": similarity(line(0.5, 0.9, 3))},
    "variance-below-5": {"elmo": explained(np.array([np.nan, 0.01, 0.06]))},
}


def test_a_faithful_run_confirms_every_claim_and_a_counterexample_in_one_model_refutes_each() -> None:
    (source,) = planted()
    assert source.kind == "protocol"
    assert {claim: finding(source, claim).ruling for claim in CURVES} == dict.fromkeys(CURVES, "holds")
    assert finding(source, "variety-not-polysemy").ruling == "not run"
    (check, *_) = finding(source, "anisotropic").checks
    assert (check.low, check.effect, check.high) == pytest.approx((0.301, 0.305, 0.309))
    assert (check.n, check.link) == (500, "0 elmo")
    for claim, changes in BROKEN.items():
        assert finding(planted(changes)[0], claim).ruling == "fails", claim


def test_what_was_not_measured_is_not_run_and_says_why() -> None:
    (source,) = planted({"bert": {"anisotropy__mean_cosine": None}})
    found = finding(source, "anisotropic")
    assert (found.ruling, found.why) == ("not run", "bert: no anisotropy/mean_cosine")
    source.members = [m for m in source.members if m.model != "elmo"]
    assert finding(source, "same-word-closer").why == "nothing of elmo"
    hole = line(0.1, 0.6, 13)
    hole[5] = np.nan
    found = finding(planted({"gpt2": {"anisotropy__mean_cosine": hole}})[0], "anisotropic")
    assert (found.ruling, found.why) == ("not run", "gpt2: anisotropy/mean_cosine is undefined in layer 5")


def test_a_measure_is_known_by_what_it_says_it_is_of_whatever_its_label() -> None:
    """What a run's prose says decides nothing: here it says what the claims are about."""
    label, other = "max_explainable_variance", MaxExplainableVariance(definition="centred")
    other.definition = METRICS[label].definition
    (source,) = planted(info={"measures": {**MEASURES, **measure_infos(**{label: other})}})
    assert finding(source, "variance-below-5").ruling != "holds"
    assert finding(source, "anisotropic").ruling == "holds"
    renamed = {f"my {label}": replace(about, definition="words of no meaning") for label, about in MEASURES.items()}
    (source,) = sources([relabelled(as_claimed(model), renamed) for model in LAYERS])
    assert [claim for claim in CURVES if finding(source, claim).ruling == "holds"] == CURVES
    older = {label: replace(about, variant=None) for label, about in MEASURES.items()}
    (source,) = planted(info={"measures": older})  # which don't say it
    assert {finding(source, claim).ruling for claim in CURVES} == {"not run"}


def relabelled(results: Results, measures: dict[str, Any]) -> Results:
    """The results under other labels: `my <label>`."""
    frame = results.frame.assign(measure="my " + results.frame["measure"])
    return Results(frame, info=replace(results.info, measures=measures))


@pytest.mark.parametrize(
    "info",
    [
        {"weights": "mini", "details": FORGED}, {"weights": "untrained"}, {"transform": "center"},
        {"control": "shuffled contexts"}, {"details": {"weights_sha256": ""}}, {"details": FORGED},
        {"fingerprint": "another text"}, {"min_contexts": 3}, {"details": {"kwargs": "int8"}},
        {"details": {"pooling": "first"}}, {"choices": {"fold_case": "True"}}, {"choices": {"weights": "bands"}},
        {"details": {"warnings": "not used: pad_token_id=7"}},
    ],
    ids=lambda info: " ".join(map(str, info.values()))[:40],
)  # fmt: skip
def test_nothing_holds_without_the_papers_own_weights_text_and_choices(info: dict[str, object]) -> None:
    every = planted(info=info)
    assert all(source.kind == "other" for source in every)
    trial = try_sources(PAPER, every)
    assert {verdict.ruling for verdict in trial.verdicts} == {"not run"}
    words = report.words(trial.verdicts[0])
    assert any(reason in words for reason in ("the paper's", "weights not verified"))
    assert "; measured here, not a verdict: holds on " in words


def test_weights_are_known_by_their_content_alone() -> None:
    assert planted(info={"weights": "my copy"})[0].kind == "protocol"
    (unknown,) = sources([as_claimed("elmo")], PROTOCOL["weights"])
    assert unknown.departures["elmo"] == ["weights not verified (no SHA-256 of the paper's elmo is on record)"]


def test_only_the_papers_level_makes_an_adjusted_curve_evidence() -> None:
    def metrics(**said: object) -> set[str]:
        (source,) = sources([with_info(as_claimed("bert"), **said)])
        return {json.loads(key)["metric"] for key in source.members[0].curves}

    assert "self_similarity/adjusted" in metrics()
    matched = metrics(baseline="size_matched")
    assert "self_similarity/adjusted" not in matched
    assert "max_explainable_variance/size_matched_adjusted" in matched
    assert not [m for m in metrics(baseline="position_matched") if m.endswith("/adjusted")]


def finished_folder(folder: Path, *, status: str = "FINISHED", **said: object) -> None:
    """What jobs leave behind: results, how they ended."""
    for number, model in enumerate(LAYERS):
        place = folder / "results" / "20260101-000000-abc" / f"{number:03d}_{model}"
        with_info(as_claimed(model), **said).save(place)
        (place / "status.json").write_text(json.dumps({"status": status}), encoding="utf-8")


def test_the_command_reports_on_finished_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished_folder(tmp_path, weights="mini", details=FORGED)
    command = ["claims", "paper=ethayarajh_2019", f"folder={tmp_path}", "json=true"]
    assert run_command_line([*command, "model=bert, elmo"]) == 0
    tables = json.loads(capsys.readouterr().out)["tables"]
    assert {row["model"] for row in tables["tests"]["rows"]} == {"elmo", "bert"}
    assert {row["ruling"] for row in tables["claims"]["rows"]} == {"not run"}
    shutil.rmtree(tmp_path / "results")
    finished_folder(tmp_path, status="FAILED")
    assert run_command_line(command) == 0
    assert "tests" not in json.loads(capsys.readouterr().out)["tables"]  # runs that failed are no evidence
