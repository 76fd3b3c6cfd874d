"""Planted runs come out as planted, both ways; the released figures give what they give; nothing else holds."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctxexp_papers.claims import court, report
from ctxexp_papers.claims.court import Trial
from ctxexp_papers.claims.evidence import Evidence, Family, measure_labels
from ctxexp_papers.claims.evidence import families as families_of
from ctxexp_papers.claims.source import LinkedResults, Source
from ctxexp_papers.claims.statistics.shares import wilson
from ctxexp_papers.claims.verdict import Finding, judge
from ctxexp_papers.claims.writing import page
from ctxexp_papers.papers import ethayarajh_2019
from ctxexp_papers.papers.ethayarajh_2019 import CLAIMS, released
from ctxexp_papers.papers.ethayarajh_2019.protocol import PROTOCOL, TEXT, WEIGHTS

from ctxexp import Results
from ctxexp.maths import mean_cosine, spearman
from ctxexp.maths.statistics import spearman_rows
from ctxexp.results import Estimates, Key
from tests.composed import run_command_line
from tests.made import results_with, saying, stated, told
from tests.shipped import Anisotropy, MaxExplainableVariance, SelfSimilarity
from tests.tracked import run_of, tracked

LAYERS = {"elmo": 3, "bert": 13, "gpt2": 13}
FORGED = {"weights_sha256": "0f" * 32}
METRICS = {
    "anisotropy": Anisotropy(),
    "self_similarity": SelfSimilarity(),
    "max_explainable_variance": MaxExplainableVariance(),
    "max_explainable_variance_centred": MaxExplainableVariance(definition="centred"),
    "max_explainable_variance_released": MaxExplainableVariance(definition="released"),
}
MEASURES = stated(**METRICS)


PAPER = ethayarajh_2019.paper()


def families(runs: Sequence[LinkedResults]) -> list[Family]:
    return families_of(runs, PROTOCOL)


def evaluate(family: Source) -> tuple[Finding, ...]:
    return court.evaluate(PAPER, family)


def tried(every: Sequence[Source]) -> Trial:
    """The paper's trial on these families, the released figures beside them."""
    return court.try_sources(PAPER, [*every, released.family()])


@pytest.fixture(autouse=True)
def elmo_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the SHA-256 of ELMo's file were on record, which it isn't."""
    monkeypatch.setitem(WEIGHTS, "elmo", replace(WEIGHTS["elmo"], sha256="e1" * 32))


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
    said = {"name": model, "title": model, "weights": "published", "corpus": "sts_2012_2016", "fingerprint": TEXT}
    details = {"weights_sha256": WEIGHTS[model].sha256}
    return results_with(curves, info=told(**said, n_layers=n, measures=MEASURES, min_contexts=5, details=details))


def planted(
    changes: Mapping[str, Mapping[str, np.ndarray | None]] | None = None,
    *,
    info: Mapping[str, object] | None = None,
) -> list[Family]:
    found = []
    for model in LAYERS:
        results = saying(as_claimed(model, **(changes or {}).get(model, {})), **info or {})
        found.append((results, f"http://store/{model}"))
    return families(found)


def finding(family: Family, claim: str) -> Finding:
    return judge(PAPER.claim(claim), family)


def test_a_faithful_run_confirms_every_claim() -> None:
    (family,) = planted()
    assert family.kind == "protocol"
    words = {f.claim.id: f.words for f in evaluate(family)}
    assert words.pop("variety-not-polysemy") == "not run"  # needs senses
    assert words == {claim.id: "holds" for claim in CLAIMS if claim.id in words}
    assert len(words) == len(CLAIMS) - 1
    assert all(
        check.link.startswith("http://store/")
        for found in evaluate(family)
        for check in found.checks
        if check.is_measured
    )
    (check, *_) = finding(family, "anisotropic").checks
    assert (check.low, check.effect, check.high) == pytest.approx((0.301, 0.305, 0.309))
    assert check.n == 500


UP = line(0.3, 0.6, 13)


BROKEN: dict[str, dict[str, dict[str, np.ndarray | None]]] = {
    "anisotropic": {"gpt2": {"anisotropy__mean_cosine": np.r_[line(0.1, 0.5, 12), 0.003]}},
    "same-word-closer": {"elmo": {"self_similarity__adjusted": np.array([0.9, 0.5, -0.006])}},
    "self-similarity-falls": {"bert": similarity(UP)},
    "upper-more-contextual": {"elmo": similarity(line(0.5, 0.9, 3))},
    "variance-below-5": {"elmo": explained(np.array([np.nan, 0.01, 0.06]))},
}


@pytest.mark.parametrize("claim", list(BROKEN))
def test_a_planted_counterexample_in_one_model_makes_the_claim_fail(claim: str) -> None:
    (family,) = planted(BROKEN[claim])
    assert finding(family, claim).words == "fails"


def test_readings_that_support_a_claim_are_named() -> None:
    others = {
        f"max_explainable_variance{d}__{s}": np.full(13, 0.5)
        for d in ("", "_centred")
        for s in ("adjusted", "size_matched_adjusted")
    }
    others["max_explainable_variance_released__size_matched_adjusted"] = np.full(13, 0.5)
    (family,) = planted({"bert": others})
    expected = "open: holds only under the released code, sampled baseline"
    assert finding(family, "variance-below-5").words == expected
    (family,) = planted({"bert": {"self_similarity__share_of_room": UP}})
    assert finding(family, "upper-more-contextual").words == "open: holds only under adjusted"


def test_what_was_not_measured_is_not_run_and_says_why() -> None:
    (family,) = planted({"bert": {"anisotropy__mean_cosine": None}})
    found = finding(family, "anisotropic")
    assert found.words == "not run"
    assert found.why == "bert: no anisotropy/mean_cosine in its runs"
    family.members = [m for m in family.members if m.model != "elmo"]
    assert finding(family, "same-word-closer").why == "elmo: no run"
    assert finding(family, "same-word-closer").words == "not run"
    (family,) = planted({"bert": {"self_similarity__share_of_room": None}})
    found = finding(family, "self-similarity-falls")
    assert found.words == "open: holds only under adjusted (1 other reading open or not measured)"
    assert found.why == "bert: no self_similarity/share_of_room in its runs"


def test_a_layer_without_a_value_decides_nothing() -> None:
    """A bound in every layer isn't met by those that have a value, nor a trend by a part of the layers."""
    hole = line(0.1, 0.6, 13)
    hole[5] = np.nan
    changed = {"anisotropy__mean_cosine": hole, "self_similarity__adjusted": hole}
    (family,) = planted({"gpt2": changed})
    found = finding(family, "anisotropic")
    assert found.words == "not run"
    assert found.why == "gpt2: anisotropy/mean_cosine is undefined in layer 5"
    found = finding(family, "self-similarity-falls")
    assert found.words == "open: holds only under chance-corrected (1 other reading open or not measured)"
    assert found.why.startswith("gpt2: self_similarity/adjusted is undefined in layer 5")


def test_options_tell_measures_of_one_label_apart() -> None:
    """What a run's prose says decides nothing: here it says what the claims are about."""
    label, other = "max_explainable_variance", MaxExplainableVariance(definition="centred")
    other.definition = METRICS[label].definition
    (family,) = planted(info={"measures": {**MEASURES, **stated(**{label: other})}})
    assert not any(key.measure == label for m in family.members if m.model == "bert" for key in m.by_key)
    assert finding(family, "variance-below-5").words != "holds"
    assert finding(family, "anisotropic").words == "holds"


def test_a_measure_is_found_under_any_label() -> None:
    renamed = {f"my {label}": replace(about, definition="words of no meaning") for label, about in MEASURES.items()}
    (family,) = families([(one(as_claimed(model), renamed), "") for model in LAYERS])
    held = [claim.id for claim in CLAIMS if finding(family, claim.id).outcome == "pass"]
    assert held == list(FIGURES)[:-1]


def one(results: Results, measures: dict[str, Any]) -> Results:
    """The results under other labels: `my <label>`."""
    frame = results.frame.assign(measure="my " + results.frame["measure"])
    return Results(frame, info=replace(results.info, measures=measures))


def test_a_run_without_variants_is_no_evidence() -> None:
    older = {label: replace(about, variant=None) for label, about in MEASURES.items()}
    (family,) = planted(info={"measures": older})
    assert {f.words for f in evaluate(family)} == {"not run"}
    same = MEASURES["self_similarity"]
    assert measure_labels(results_with(info=told(measures={"a": same, "b": same}))) == {"self_similarity": "a"}
    both = {"a": same, "self_similarity": same, "b": same}
    assert measure_labels(results_with(info=told(measures=both))) == {"self_similarity": "self_similarity"}


def test_a_curve_without_an_interval_decides_nothing() -> None:
    (family,) = planted()
    for i, member in enumerate(family.members):
        bare = {
            key: Estimates(held.value, held.value * np.nan, held.value * np.nan) for key, held in member.by_key.items()
        }
        family.members[i] = replace(member, by_key=bare)
    found = {f.claim.id: f for f in evaluate(family)}
    for claim in ("anisotropic", "self-similarity-falls", "upper-more-contextual", "variance-below-5"):
        assert found[claim].words == "not run"
    assert "has no interval: run with bootstrap and baseline redraws" in found["anisotropic"].why


@pytest.mark.parametrize(
    "info",
    [
        {"weights": "mini", "details": FORGED}, {"weights": "untrained"},
        {"weights": "untrained gpt2", "details": FORGED},
        {"transform": "center"}, {"control": "shuffled contexts"}, {"weights": "gpt2", "details": FORGED},
        {"details": {"weights_sha256": ""}}, {"details": FORGED}, {"fingerprint": "another text"}, {"min_contexts": 3},
        {"details": {"kwargs": "int8"}}, {"details": {"pooling": "first"}}, {"details": {"dtype": "bfloat16"}},
        {"choices": {"fold_case": "True"}}, {"choices": {"weights": "bands"}},
        {"details": {"warnings": "not used: pad_token_id=7"}},
    ],
    ids=lambda info: " ".join(map(str, info.values()))[:40],
)  # fmt: skip
def test_nothing_holds_without_the_papers_own_weights(info: dict[str, object]) -> None:
    every = planted(info=info)
    assert all(family.kind == "other" for family in every)
    made = tried(every)
    assert {verdict.words for verdict in made.verdicts} == {"not run"}
    assert made.counts() == {"holds": 0, "fails": 0, "open": 0, "not run": len(CLAIMS)}
    why = report.lacks(made, made.verdicts[0])
    assert any(reason in why for reason in ("the paper's", "weights not verified"))
    assert report.beside(PAPER, made.verdicts[0]).startswith("as claimed (weights ")
    for text in (report.text(made), report.markdown([made]), page([made])):
        assert not re.search(r"\| holds \| (?!fails)|\bholds  |>holds<", text)
        assert "as claimed" in text
        assert "weights=published" in text


def test_the_papers_weights_are_recognised_by_their_content() -> None:
    for model in LAYERS:
        assert families([(saying(as_claimed(model), weights="my copy"), "")])[0].kind == "protocol"
        (forged,) = families([(saying(as_claimed(model), details=FORGED), "")])
        assert forged.kind == "other"
        assert forged.departures[model][0].startswith("not the paper's weights (SHA-256 0f0f0f0f0f0f..., the paper's ")


def test_forged_weights_under_the_pinned_snapshots_names_give_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other weights in the hub's cache, the file named by the SHA-256 that the paper's own has."""
    from huggingface_hub import constants

    from tests.shipped import bert, mini

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    repository = tmp_path / "models--google-bert--bert-base-cased"
    snapshot = repository / "snapshots" / "cd5ef92a9fb2f889e972770a36d4ed042daf221e"
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir()
    for file in mini("bert").iterdir():
        if file.name == "model.safetensors":
            blob = repository / "blobs" / WEIGHTS["bert"].sha256
            shutil.copyfile(file, blob)
            (snapshot / file.name).symlink_to(blob)
        elif file.is_file():
            shutil.copyfile(file, snapshot / file.name)
    encoder = bert(weights="published", device="cpu")
    assert encoder.details["revision"] == "cd5ef92a9fb2f889e972770a36d4ed042daf221e"
    runs = [(saying(as_claimed("bert"), details=dict(encoder.details)), ""), (as_claimed("gpt2"), "")]
    every = families(runs)
    assert [family.kind for family in every] == ["protocol", "other"]
    assert every[1].departures["bert"][0].startswith("not the paper's weights (SHA-256 ")
    verdicts = {verdict.claim.id: verdict for verdict in tried(every).verdicts}
    verdict = verdicts["self-similarity-falls"]
    assert report.lacks(tried(every), verdict).startswith("bert: not the paper's weights (SHA-256 ")
    assert not [v.claim.id for v in verdicts.values() if v.outcome != "none"]


def test_elmos_weights_cannot_be_verified_and_the_verdict_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WEIGHTS, "elmo", replace(WEIGHTS["elmo"], sha256=""))
    runs = [(as_claimed(model), "") for model in ("bert", "gpt2")]
    runs.append((saying(as_claimed("elmo"), details={"weights_sha256": "e1" * 32}), ""))
    trial = tried(families(runs))
    made = {verdict.claim.id: verdict for verdict in trial.verdicts}
    assert report.lacks(trial, made["anisotropic"]).startswith("elmo: weights not verified (no SHA-256 of elmo_2x4096")
    assert made["self-similarity-falls"].words == "holds"  # on BERT and GPT-2, which are verified


def test_a_missing_record_is_asked_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub on this machine that says the LFS digest of a file at a revision."""
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from ctxexp_papers.claims.protocol import PinnedWeights, from_hub
    from huggingface_hub import constants

    class Hub(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            lfs = {"sha256": "ab" * 32, "size": 4, "pointerSize": 134}
            file = {"rfilename": "model.safetensors", "size": 4, "blobId": "1", "lfs": lfs}
            found = self.path.startswith("/api/models/me/tiny/revision/r1")
            body = json.dumps({"id": "me/tiny", "sha": "r1", "siblings": [file]} if found else {}).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    pinned = PinnedWeights("model.safetensors", "", "", "me/tiny", "r1")
    try:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        assert from_hub(pinned) == ""
        from_hub.cache_clear()
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        assert from_hub(pinned) == "ab" * 32
        assert from_hub(replace(pinned, file="other.safetensors")) == ""
        assert from_hub(replace(pinned, revision="r2")) == ""
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        from_hub.cache_clear()


def test_families_never_mix_corpora_and_prefer_the_newest_run() -> None:
    runs = []
    for corpus, first in (("polysemy", 0.5), ("sts_2012_2016", 0.2), ("sts_2012_2016", 0.3)):
        results = as_claimed("elmo", anisotropy__mean_cosine=np.array([0.0, first, first + 0.1]))
        runs.append((saying(results, corpus=corpus, fingerprint=TEXT if corpus == "sts_2012_2016" else corpus), corpus))
    every = families(runs)
    assert [family.corpus for family in every] == ["sts_2012_2016", "polysemy"]
    assert [family.kind for family in every] == ["protocol", "other"]
    assert finding(every[0], "anisotropic").checks[0].effect == 0.2
    made = tried(every[1:])
    assert report.lacks(made, made.verdicts[0]).startswith(
        "elmo: not the paper's text (corpus polysemy; the paper's is dataset=sts_2012_2016)"
    )


def test_with_size_matched_baselines_adjusted_is_that_reading() -> None:
    results = as_claimed("bert")
    plain = replace(results, frame=results.frame[~results.frame["statistic"].str.startswith("size_matched")])
    (family,) = families([(saying(plain, baseline="size_matched"), "")])
    found = [check for check in finding(family, "variance-below-5").checks if check.model == "bert"]
    assert [check.passed for check in found] == [None, True] * 3
    assert found[0].text == "no max_explainable_variance_released/adjusted in its runs"
    (other,) = families([(saying(plain, baseline="position_matched"), "")])
    assert {c.passed for c in finding(other, "variance-below-5").checks} == {None}
    assert {c.passed for c in finding(other, "anisotropic").checks if c.model == "bert"} == {True}


def test_a_size_matched_measure_is_a_reading_of_its_own() -> None:
    """As maximum explainable variance is by default: its adjusted curve."""
    sized = {
        label: replace(about, level="size-matched") if label.startswith("max_") else about
        for label, about in MEASURES.items()
    }
    every = []
    for model in LAYERS:
        results = saying(as_claimed(model), measures=sized, baseline="one_per_sentence")
        beside = results.frame["measure"].str.startswith("max_") & results.frame["statistic"].str.startswith("size_")
        every.append((replace(results, frame=results.frame[~beside]), ""))
    (family,) = families(every)
    readings = {check.variant: check.passed for check in finding(family, "variance-below-5").checks}
    assert {passed for reading, passed in readings.items() if reading.endswith("size-matched baseline")} == {True}
    assert {passed for reading, passed in readings.items() if reading.endswith("sampled baseline")} == {None}


def test_a_trend_needs_order_and_size_and_tells_its_p() -> None:
    for curve, passed in (
        (line(0.301, 0.30, 13), False),  # certain to be too small, whatever its order
        (line(0.35, 0.30, 13), None),  # the least change is within its interval
        (line(0.50, 0.30, 13), True),
    ):
        (family,) = planted({"gpt2": similarity(curve)})
        check = next(c for c in finding(family, "self-similarity-falls").checks if c.model == "gpt2")
        assert check.effect == pytest.approx(-1)
        assert check.passed is passed
        assert check.low <= check.effect
    assert "; under 0.05% of walks go as far" in check.text
    elmo = finding(family, "self-similarity-falls").checks[0]
    assert "50.0% of walks go as far: no more than chance" in elmo.text  # three layers
    assert elmo.passed is None


def test_a_random_walk_against_depth_gives_no_verdict() -> None:
    """How often there is one of any kind where every curve of bert is drawn anew, and there is no gpt2."""
    wanted = replace(PAPER.claim("self-similarity-falls"), models=("bert",))
    rng, verdicts = np.random.default_rng(5), 0
    for _ in range(400):
        c = 0.5 + 0.05 * rng.normal(size=13).cumsum()
        span = Estimates(c, c - 0.002, c + 0.002)
        drawn = {Key("self_similarity", level): span for level in ("adjusted", "share_of_room")}
        made = judge(wanted, Family("protocol", "", members=[Evidence("bert", drawn)]))
        verdicts += made.outcome not in ("open", "none")
    assert verdicts / 400 <= 0.07


def test_the_untrained_twin_stands_beside_what_a_trained_model_shows() -> None:
    flat = similarity(line(0.95, 0.85, 13)) | {"anisotropy__mean_cosine": line(0.1, 0.2, 13)}
    trained, untrained = as_claimed("bert"), as_claimed("bert", **flat)
    untrained = saying(untrained, weights="untrained")
    other = saying(as_claimed("bert"), weights="untrained", fingerprint="another text")
    every = families([(results, "") for results in (other, trained, untrained)])
    (family,) = (f for f in every if f.kind == "protocol")
    check = next(c for c in finding(family, "anisotropic").checks if c.model == "bert")
    assert "; less its untrained twin +0.033 [+0.028, +0.039]" in check.text
    assert check.passed  # of the paper's claim, which speaks of no twin
    check = next(c for c in finding(family, "self-similarity-falls").checks if c.model == "bert")
    assert check.text.endswith("the untrained twin's change -0.100")
    (told,) = (said for said in family.controls if said.startswith("bert, anisotropy/mean_cosine"))
    assert "; layer 0 0.100 [0.096, 0.104], untrained twin 0.200 [0.196, 0.204]" in told
    made = tried(every)
    assert f"  without context\n    {family.controls[0]}\n" in report.text(made)
    assert f"- {told}\n" in report.markdown([made])
    assert f"<li>{told}</li>" in page([made])
    other_level = saying(untrained, baseline="b1k")  # a twin against another level is none
    (no_twin, _) = families([(trained, ""), (other_level, "")])
    assert no_twin.members[0].twin is None
    alone = next(f for f in every if f.members[0].info.corpus.fingerprint == "another text")
    assert all("twin" not in c.text for c in finding(alone, "anisotropic").checks)


def test_differences_use_the_same_resamples_where_runs_share_them() -> None:
    """Layers that move together differ by a certain amount, however wide each one's interval is."""
    rng = np.random.default_rng(0)
    together = rng.normal(0, 0.1, 400)
    runs, key = [], Key("anisotropy", "mean_cosine")
    for seed in (0, 0, 1):
        results = as_claimed("bert")
        drawn = (results.by_key[key].value[:, None] + together).astype(np.float32)
        runs.append(saying(replace(results, replicates={key: drawn}), seed=seed, bootstrap=400))
    (family,) = families([(results, "") for results in runs])
    one, same, other = family.members
    effect, low, high = one.less(same, key, 2, 1)
    assert (low, high) == pytest.approx((effect, effect), abs=1e-6)
    assert one.less(other, key, 2, 1)[1:] == pytest.approx((effect - 0.004 * 2**0.5, effect + 0.004 * 2**0.5))


def test_spearman_by_rows_is_that_of_each_row() -> None:
    rng = np.random.default_rng(3)
    values, layers = rng.normal(size=(20, 9)).round(1), np.arange(9)  # with ties
    assert spearman_rows(values, layers) == pytest.approx([spearman(row, layers) for row in values])
    assert spearman_rows(values, values[::-1]) == pytest.approx(
        [spearman(a, b) for a, b in zip(values, values[::-1], strict=True)]
    )
    assert np.isnan(spearman_rows(np.ones((1, 4)), np.arange(4))).all()
    assert np.isnan(spearman_rows(values[:, :2], np.arange(2))).all()


def test_wilson_interval_is_that_of_the_textbook() -> None:
    from scipy.stats import binomtest

    for count, n in ((0, 20), (3, 20), (20, 20), (130, 700)):
        low, high = binomtest(count, n).proportion_ci(method="wilson")
        assert wilson(count, n) == pytest.approx((low, high), abs=1e-6)


# --- the released figures: Ethayarajh 2019, github.com/kawine/contextual, to their three decimals -------------------


FIGURES = {  # claim -> (on which side, in how many layers and how much) of the first reading
    "anisotropic": ("agree", "ELMo: 2 of 2; BERT: 12 of 12; GPT-2: 12 of 12"),
    "same-word-closer": ("agree", "ELMo: 2 of 2; BERT: 12 of 12; GPT-2: 12 of 12"),
    "self-similarity-falls": (
        "open", "ELMo: -1.00 (72.0% of walks); BERT: -0.96 (37.0% of walks); GPT-2: -0.94 (60.8% of walks)"),
    "upper-more-contextual": ("agree", "ELMo: -0.081; BERT: -0.265; GPT-2: -0.115"),
    "variance-below-5": ("agree only under the released code, sampled baseline (5 other readings open or not measured)",
                         "ELMo: 2 of 2; BERT: 12 of 12; GPT-2: 12 of 12"),
    "variety-not-polysemy": ("not released", ""),
}  # fmt: skip


def test_the_released_figures_say_what_they_say() -> None:
    """Counted from the released per-layer figures, claim by claim."""
    found = {f.claim.id: f for f in evaluate(released.family())}
    said = {claim: (f.words.removeprefix("figures "), report.says(PAPER, f)) for claim, f in found.items()}
    assert said == FIGURES
    assert all(math.isnan(check.low) for f in found.values() for check in f.checks)
    assert found["anisotropic"].checks[0].text == "2 of 2 layers, 0 not; layer 2 decides"
    falls = found["self-similarity-falls"].checks[0]
    assert falls.text == ("rho, every step agrees; change -0.486; 72.0% of walks go as far: no more than chance")


def test_the_docs_quote_what_the_released_figures_give() -> None:
    page = Path(__file__).parents[3] / "docs" / "measures" / "claims.md"
    if not page.exists():
        pytest.skip("the distribution by itself has no docs")
    text = " ".join(page.read_text(encoding="utf-8").split())
    briefs = {}
    for found in evaluate(released.family()):
        for check in found.checks:
            if check.is_measured:
                briefs.setdefault((found.claim.id, check.model, check.variant), []).append(check.brief)
    falls = "self-similarity-falls"
    walks = {m: re.search(r"[\d.]+%", briefs[falls, m, "adjusted"][0]).group() for m in ("bert", "gpt2")}
    assert f"(walks as far: BERT {walks['bert']}, GPT-2 {walks['gpt2']})" in text


def test_every_claim_says_where_it_stands_in_the_paper() -> None:
    assert {claim.section for claim in CLAIMS} == {"abstract", "4.1", "4.2", "4.3"}
    assert "self-similarity falls with depth. (section 4.2)" in report.text(tried([]))


def test_what_follows_from_the_released_figures() -> None:
    found = {d.id: d for d in released.derivations()}
    assert found["definition"].numbers == pytest.approx({"elmo bound": 0.642, "bert bound": 0.731}, abs=0.0006)
    assert "GPT-2's lengths differ greatly" in found["definition"].text
    assert found["vacuous"].numbers["gpt2 adjusted"] == pytest.approx((-0.70, -0.63), abs=0.005)
    assert found["vacuous"].numbers["gpt2 baseline"] == pytest.approx((0.969, 0.998), abs=0.0006)
    assert found["vacuous"].numbers["largest adjusted"] == pytest.approx(0.035, abs=0.001)
    assert "BERT layers 6 to 7, 11 to 12" in found["steps"].text


def test_the_bound_on_definition_3_holds_for_unit_vectors() -> None:
    def explained(x: np.ndarray) -> float:
        squares = np.square(np.linalg.svd(x, compute_uv=False))
        return float(squares[0] / squares.sum())

    rng = np.random.default_rng(0)
    for n, shift in ((5, 0.0), (8, 1.0), (50, 3.0)):
        x = rng.normal(size=(n, 30)) + shift
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        s = np.array(float(mean_cosine(x)))
        share = explained(x)
        assert share >= released.least_variance(s, n) - 1e-9
        assert share - released.least_variance(s, n) < (0.3 if shift < 3 else 0.01)
        assert released.least_variance(s, n) > released.least_variance(s)
    # Of unequal lengths cosines count by them: one long row against many alike ones pulls the share below.
    x = np.array([[3.0, 0, 0]] + [[0, 1, 0.1 * i] for i in range(7)])
    share = explained(x)
    assert share < released.least_variance(np.array(float(mean_cosine(x))), len(x))
    assert share >= (x.sum(0) ** 2).sum() / (len(x) * (x**2).sum())


# --- the command ----------------------------------------------------------------------------------------------------


CLAIMS_OF = ("claims", "paper=ethayarajh_2019")


def finished_folder(folder: Path, *, status: str = "FINISHED", **said: object) -> None:
    """What jobs leave behind: results, how they ended."""
    for number, model in enumerate(LAYERS):
        place = folder / "results" / "20260101-000000-abc" / f"{number:03d}_{model}"
        saying(as_claimed(model), **said).save(place)
        state = {"status": status, "link": f"http://store/<{model}>"}
        (place / "status.json").write_text(json.dumps(state), encoding="utf-8")


def test_the_command_reports_on_finished_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished_folder(tmp_path)
    assert run_command_line([*CLAIMS_OF, f"folder={tmp_path}", f"out={tmp_path / 'new' / 'out'}"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"anisotropic\* +holds +Representations are", said)
    assert re.search(r"variety-not-polysemy +not run", said)  # needs senses
    assert "gpt2: http://store/<gpt2>" in said
    assert re.search(r"^  not released: variety-not-polysemy$", said, flags=re.MULTILINE)
    assert "Definition 3 as printed can't be below 5%" in said
    notes = (tmp_path / "new" / "out" / "claims.md").read_text(encoding="utf-8")
    assert "[run](http://store/<gpt2>)" in notes
    page = (tmp_path / "new" / "out" / "claims.html").read_text(encoding="utf-8")
    assert 'href="http://store/&lt;gpt2&gt;"' in page
    assert "<gpt2>" not in page
    assert "@@" not in page
    assert not re.search(r'src="|href="(?!http://store|https://aclanthology)', page)  # nothing is fetched
    for claim in CLAIMS:
        assert claim.id in said
        assert f"`{claim.id}`" in notes
        assert f"<code>{claim.id}</code>" in page
    columns = [row.count(" | ") for row in notes.splitlines() if row.startswith("| `") and "[run]" in row]
    assert set(columns) == {9}
    assert "| ELMo: 2 of 2; BERT: 12 of 12; GPT-2: 12 of 12 |" in notes


def test_the_released_figures_need_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line([*CLAIMS_OF]) == 0
    said = capsys.readouterr().out
    assert re.search(r"anisotropic +figures agree", said)
    assert "released figures: ELMo: 2 of 2; BERT: 12 of 12; GPT-2: 12 of 12" in said
    assert "(needs runs of the paper's weights on its text (python -m ctxexp -m experiment=ethayarajh_2019" in said
    assert not re.search(r"\bholds  ", said)
    assert not list(tmp_path.iterdir())


def test_models_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished_folder(tmp_path, weights="mini", details=FORGED)
    assert run_command_line([*CLAIMS_OF, f"folder={tmp_path}", "model=bert, elmo"]) == 0
    said = capsys.readouterr().out
    assert "the same tests on weights mini, corpus sts_2012_2016: elmo, bert (each model is one training run)\n" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["folder={folder}/none"], "no folder {folder}/none (folder=): expected a tracking folder"),
        (["paper=skaen_2025"], "no paper 'skaen_2025'; did you mean 'skean_2025'"),
        (["model=gpt-2"], "no model 'gpt-2'; did you mean 'gpt2'?"),
        (["released={folder}/none"], "no folder {folder}/none (released=): expected a clone of a paper's repository"),
        (["uri=sqlite:///{folder}/none.db"], "no tracking store at {folder}/none.db (uri=)"),
        (
            ["out={folder}/file/below"],
            "cannot write {folder}/file/below: Not a directory; choose a writable place (out=)",
        ),
    ],
    ids=["no folder", "unknown paper", "unknown model", "no released folder", "no store", "unwritable"],
)
def test_what_cannot_be_reported_is_said_in_a_line(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished_folder(tmp_path / "failed", status="FAILED")
    (tmp_path / "file").touch()
    assert run_command_line(["claims", f"folder={tmp_path}", *(w.format(folder=tmp_path) for w in words)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {message.format(folder=tmp_path)}")
    assert error.count("\n") == 1


def test_runs_that_failed_are_no_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished_folder(tmp_path, status="FAILED")
    assert run_command_line(["claims", f"folder={tmp_path}"]) == 0
    assert re.search(r"ethayarajh_2019 +6 +0 +0 +0 +6\n", capsys.readouterr().out)


def test_runs_are_read_from_mlflow_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.shipped import MlflowSink

    sink = MlflowSink()
    uri = sink.prepare_jobs(tmp_path)["uri"]
    place = tmp_path / "results" / "one" / "run"
    run = run_of(place, tmp_path, "elmo")
    with tracked(run, mlflow=sink) as running:
        running.log(as_claimed("elmo"))
    shutil.rmtree(place)  # the store has it
    assert run_command_line([*CLAIMS_OF, f"uri={uri}"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"elmo +yes +0.305 .*2 of 2 layers, 0 not; layer 1 decides", said)
    assert f"/runs/{sink.run_id}" in said
    assert run_command_line(["claims", f"uri={uri}", "experiment=other"]) == 2
    assert "no experiment 'other' in sqlite:///" in capsys.readouterr().err


def test_evidence_without_curves_says_so() -> None:
    empty = Family("other", "nothing", members=[Evidence("bert", {})])
    assert all(f.outcome == "none" for f in evaluate(empty))
    assert finding(empty, "anisotropic").words == "not measured"
