"""Planted runs come out as planted, both ways; the released figures give what they give; nothing else holds."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from ctxexp import claims
from ctxexp.claims import CLAIMS, Evidence, Family, Finding, evaluate, families, released, report
from ctxexp.claims.__main__ import main
from ctxexp.claims.evidence import measured
from ctxexp.claims.words import wilson
from ctxexp.described import describe
from ctxexp.metrics.anisotropy import Anisotropy
from ctxexp.metrics.intra_sentence_similarity import IntraSentenceSimilarity
from ctxexp.metrics.max_explainable_variance import MaxExplainableVariance
from ctxexp.metrics.self_similarity import SelfSimilarity
from ctxexp.metrics.static_vectors import StaticVectors
from ctxexp.results import Results

BENCHMARKS = ("simlex999", "men", "ws353", "rw", "google", "msr", "semeval2012", "bless", "ap")
LAYERS = {"elmo": 3, "bert": 13, "gpt2": 13}
EXPECTED = {"bert": 0.3, "elmo": 0.2, "gpt2": 0.1}  # static vectors of layer 1
STOP_WORDS = ("the", "of", "to", "and", "a")
METRICS = {
    "anisotropy": Anisotropy(),
    "self_similarity": SelfSimilarity(),
    "intra_sentence_similarity": IntraSentenceSimilarity(),
    "max_explainable_variance": MaxExplainableVariance(),
    "max_explainable_variance_centred": MaxExplainableVariance(definition="centred"),
    "max_explainable_variance_released": MaxExplainableVariance(definition="released"),
    "static_vectors": StaticVectors(benchmarks=[]),
}
MEASURES = {label: describe(label, metric) for label, metric in METRICS.items()}


def line(first: float, last: float, n: int) -> np.ndarray:
    return np.linspace(first, last, n)


def as_claimed(model: str, **changes: np.ndarray | None) -> Results:
    """A run in which every claim comes out under every reading; `changes` replace curves (`/` written `__`)."""
    n = LAYERS[model]
    similar = {"elmo": line(0.9, 0.6, n), "bert": line(0.95, 0.57, n), "gpt2": line(0.5, 0.01, n)}[model]
    if model == "bert":
        similar[2] = 0.9
    sentence = {"elmo": line(0.3, 0.5, n), "bert": line(0.5, 0.3, n), "gpt2": np.full(n, 0.05)}[model]
    variance = np.full(n, {"elmo": 0.03, "bert": 0.02, "gpt2": 0.3}[model])
    curves = {"anisotropy/mean_cosine": line(0.1, 0.6, n)}
    for level in ("raw", "adjusted"):
        curves[f"self_similarity/{level}"] = similar
        curves[f"intra_sentence_similarity/{level}"] = sentence
    curves["intra_sentence_similarity/size_matched_adjusted"] = sentence
    for definition in ("", "_centred", "_released"):
        measure = f"max_explainable_variance{definition}"
        curves |= {f"{measure}/raw": variance}
        curves |= {f"{measure}/{name}": np.full(n, 0.01) for name in ("adjusted", "size_matched_adjusted")}
    curves |= {key.replace("__", "/"): curve for key, curve in changes.items() if curve is not None}
    for key in [key.replace("__", "/") for key, curve in changes.items() if curve is None]:
        del curves[key]
    for key, curve in list(curves.items()):
        curves[f"{key}_ci_low"], curves[f"{key}_ci_high"] = curve - 0.004, curve + 0.004
        curves[f"{key.rpartition('/')[0]}/n"] = np.full(n, 500.0)
    for name in BENCHMARKS:
        curves.setdefault(f"static_vectors/{name}", EXPECTED[model] - 0.005 * np.arange(n))
    info: dict[str, object] = {
        "name": model,
        "model": model,
        "weights": "published",
        "corpus": "sts_2012_2016",
        "fingerprint": "f",
    }
    info["measures"] = MEASURES
    return Results(curves=curves, info={**info, "n_layers": n, "transform": "none"})


def tables(model: str, *, below: float = 0.5, lowest: bool = True) -> dict[str, dict[str, list[str]]]:
    """Word tables: a share of words below the baseline in every layer; the stop words at one end."""
    count = 400
    words = [*STOP_WORDS, *(f"word{i}" for i in range(count - 5))]
    mean = [0.1 if word in STOP_WORDS else 0.5 for word in words] if lowest else [0.9] * 5 + [0.5] * (count - 5)
    adjusted = [-0.1] * int(below * count) + [0.1] * (count - int(below * count))
    layers = {f"adjusted_{i}": [str(v) for v in adjusted] for i in range(1, LAYERS[model])}
    variance = {"word": words, "adjusted_0": [""] * count, **layers}
    made = {f"max_explainable_variance{d}": variance for d in ("", "_centred", "_released")}
    return {**made, "self_similarity": {"word": words, "mean": [str(v) for v in mean]}}


def vectors(name: str, score: float) -> Results:
    curves = {f"static_vectors/{b}": np.array([score]) for b in BENCHMARKS}
    info = {"name": "word_vectors", "model": f"word_vectors {name}", "weights": name, "measures": MEASURES}
    return Results(curves=curves, info=info)


def planted(
    changes: Mapping[str, Mapping[str, np.ndarray | None]] | None = None,
    *,
    info: Mapping[str, object] | None = None,
    below: float = 0.5,
    lowest: bool = True,
) -> list[Family]:
    found = []
    for model in LAYERS:
        results = as_claimed(model, **(changes or {}).get(model, {}))
        results.info |= info or {}
        words = tables(model, below=below, lowest=lowest)
        found.append((results, f"http://store/{model}", words.get))
    files = [(vectors(n, 0.25), "", lambda name: None) for n in ("glove.6B.300d.txt", "wiki-news-300d-1M.vec")]
    return families([*found, *files])


def finding(family: Family, claim: str) -> Finding:
    return next(found for found in evaluate(family) if found.claim.id == claim)


def test_a_run_of_the_papers_weights_in_which_all_is_so_confirms_every_claim() -> None:
    (family,) = planted()
    assert family.kind == "published"
    assert {f.claim.id: f.words for f in evaluate(family)} == {claim.id: "holds" for claim in CLAIMS}
    assert all(check.link.startswith("http://store/") for found in evaluate(family) for check in found.checks)
    (check, *_) = finding(family, "anisotropic").checks
    assert (check.low, check.effect, check.high) == pytest.approx((0.346, 0.35, 0.354))
    assert check.n == 500


UP, DOWN = line(0.3, 0.6, 13), line(0.6, 0.3, 13)
BROKEN: dict[str, dict[str, dict[str, np.ndarray | None]]] = {
    "anisotropic": {"gpt2": {"anisotropy__mean_cosine": np.r_[line(0.1, 0.5, 12), 0.003]}},
    "anisotropy-rises": {"bert": {"anisotropy__mean_cosine": DOWN}},
    "same-word-closer": {"elmo": {"self_similarity__adjusted": np.array([0.9, 0.5, 0.002])}},
    "self-similarity-falls": {"bert": {"self_similarity__adjusted": UP}},
    "gpt2-most-contextual": {"gpt2": {"self_similarity__adjusted": line(0.5, 0.58, 13)}},
    "gpt2-last-layer": {"gpt2": {"self_similarity__adjusted": line(0.5, 0.048, 13)}},
    "static-beats-glove": {"bert": {f"static_vectors__{name}": np.full(13, 0.2) for name in BENCHMARKS[:5]}},
    "static-bert-1-best": {"elmo": {f"static_vectors__{name}": np.full(3, 0.9) for name in BENCHMARKS[4:]}},
    "static-lower-better": {"gpt2": {f"static_vectors__{name}": line(0.0, 0.1, 13) for name in BENCHMARKS[:6]}},
    "static-gpt2-worst": {"gpt2": {f"static_vectors__{name}": np.full(13, 0.25) for name in BENCHMARKS[:6]}},
    "static-middle-between": {
        "bert": {f"static_vectors__{name}": np.r_[line(0.4, 0.3, 6), 0.9, line(0.3, 0.2, 6)] for name in BENCHMARKS[:5]}
    },
    "elmo-sentence-rises": {"elmo": {f"intra_sentence_similarity__{s}": np.array([0.5, 0.4, 0.3])
                                     for s in ("adjusted", "size_matched_adjusted")}},
    "bert-sentence-falls": {"bert": {f"intra_sentence_similarity__{s}": UP
                                     for s in ("adjusted", "size_matched_adjusted")}},
    "gpt2-sentence-none": {"gpt2": {f"intra_sentence_similarity__{s}": np.r_[np.zeros(12), -0.3]
                                    for s in ("adjusted", "size_matched_adjusted")}},
    "sentence-above-line": {"bert": {f"intra_sentence_similarity__{s}": np.r_[np.full(11, 0.5), 0.1, 0.201]
                                     for s in ("adjusted", "size_matched_adjusted")}},
    "bert-last-below-elmo-2": {"bert": {f"self_similarity__{s}": line(0.95, 0.7, 13) for s in ("raw", "adjusted")}},
    "bert-last-close-to-elmo-2": {"bert": {f"self_similarity__{s}": line(0.95, 0.54, 13) for s in ("raw", "adjusted")}},
    "elmo-2-below-bert-2": {"elmo": {f"self_similarity__{s}": np.array([1, 0.95, 0.92]) for s in ("raw", "adjusted")}},
    "variance-below-5": {"elmo": {f"max_explainable_variance{d}__{s}": np.array([np.nan, 0.01, 0.048])
                                  for d in ("", "_centred", "_released")
                                  for s in ("adjusted", "size_matched_adjusted")}},
    "variance-raw": {"gpt2": {f"max_explainable_variance{d}__raw": np.full(13, 0.6)
                              for d in ("", "_centred", "_released")}},
}  # fmt: skip


@pytest.mark.parametrize("claim", list(BROKEN))
def test_a_planted_counterexample_in_one_model_makes_the_claim_fail(claim: str) -> None:
    (family,) = planted(BROKEN[claim])
    assert finding(family, claim).words == "fails"


def test_claims_on_single_words_fail_where_words_say_otherwise() -> None:
    (family,) = planted(below=0.05, lowest=False)
    assert finding(family, "variance-below-baseline").words == "fails"
    assert finding(family, "stop-words-lowest").words == "fails"
    (family,) = planted(below=0.12)
    share = next(c for c in finding(family, "variance-below-baseline").checks if c.model == "elmo")
    assert share.effect == pytest.approx(0.12)
    assert share.passed is False  # the share is above 10%, its interval isn't


def test_a_claim_under_some_readings_only_names_them_and_what_rests_on_it_follows() -> None:
    others = {
        f"max_explainable_variance{d}__{s}": np.full(13, 0.5)
        for d in ("", "_centred")
        for s in ("adjusted", "size_matched_adjusted")
    }
    others["max_explainable_variance_released__size_matched_adjusted"] = np.full(13, 0.5)
    (family,) = planted({"bert": others})
    expected = "holds only under the released code, sampled baseline"
    assert finding(family, "variance-below-5").words == expected
    assert finding(family, "finite-senses").words == expected
    assert "an inference from variance-below-5" in finding(family, "finite-senses").why
    (family,) = planted({"bert": {"intra_sentence_similarity__size_matched_adjusted": UP}})
    assert finding(family, "bert-sentence-falls").words == "holds only under the paper's baseline"
    (family,) = planted({"bert": {"self_similarity__raw": line(0.95, 0.7, 13)}})
    assert finding(family, "bert-last-below-elmo-2").words == "holds only under adjusted"


def test_what_was_not_measured_is_not_run_and_says_why() -> None:
    (family,) = planted({"bert": {"anisotropy__mean_cosine": None}})
    found = finding(family, "anisotropic")
    assert found.words == "not run"
    assert found.why == "bert: no anisotropy/mean_cosine in its runs"
    family.members = [m for m in family.members if m.model not in ("elmo", "glove")]
    assert finding(family, "self-similarity-falls").why == "elmo: no run"
    assert finding(family, "elmo-2-below-bert-2").why == (
        "bert, elmo: needs self_similarity/raw of each; bert, elmo: needs self_similarity/adjusted of each"
    )
    assert finding(family, "self-similarity-falls").words == "not run"
    assert "no static_vectors scores of glove" in finding(family, "static-beats-glove").why
    (family,) = planted({"bert": {"intra_sentence_similarity__size_matched_adjusted": None}})
    found = finding(family, "bert-sentence-falls")
    assert found.words == "holds only under the paper's baseline (1 other reading not run)"
    assert found.why == "bert: no intra_sentence_similarity/size_matched_adjusted in its runs"


def test_a_layer_without_a_value_decides_nothing() -> None:
    """A bound in every layer isn't met by those that have a value, nor a trend by a part of the layers."""
    hole = line(0.1, 0.6, 13)
    hole[5] = np.nan
    (family,) = planted({"gpt2": {"anisotropy__mean_cosine": hole, "max_explainable_variance__raw": hole}})
    for claim in ("anisotropic", "anisotropy-rises"):
        found = finding(family, claim)
        assert found.words == "not run"
        assert found.why == "gpt2: anisotropy/mean_cosine is undefined in layer 5"
    found = finding(family, "variance-raw")
    assert "holds only under" in found.words
    assert "1 other reading not run" in found.words
    assert found.why == "gpt2: max_explainable_variance/raw is undefined in some of layers 2 to 11"


def test_word_tables_by_another_baseline_are_no_reading_of_the_paper() -> None:
    for baseline, passed in ((None, True), ("uniform", True), ("size_matched", None), ("frequency_matched", None)):
        (family,) = planted(info={"baseline": baseline})
        checks = finding(family, "variance-below-baseline").checks
        assert {check.passed for check in checks} == {passed}
        assert finding(family, "stop-words-lowest").words == "holds"  # raw values, whatever the baseline
    assert checks[0].said == "no word table max_explainable_variance_released.csv by a sampled baseline in its runs"


@pytest.mark.parametrize(
    ("measure", "other", "claim"),
    [
        ("max_explainable_variance", MaxExplainableVariance(definition="centred"), "variance-below-baseline"),
        ("static_vectors", StaticVectors(vector="mean", benchmarks=[]), "static-beats-glove"),
        ("intra_sentence_similarity", IntraSentenceSimilarity(unit_norm=True), "bert-sentence-falls"),
    ],
)
def test_a_measure_with_other_options_is_another_measure_whatever_its_words(
    measure: str, other: MaxExplainableVariance, claim: str
) -> None:
    """What a run's prose says decides nothing: here it says what the claims are about."""
    other.definition = METRICS[measure].definition
    (family,) = planted(info={"measures": {**MEASURES, measure: describe(measure, other)}})
    assert not any(key.startswith(f"{measure}/") for m in family.members if m.model == "bert" for key in m.curves)
    assert finding(family, claim).words != "holds"
    assert finding(family, "anisotropic").words == "holds"


def test_a_measure_is_found_under_any_label() -> None:
    renamed = {f"my {label}": {**about, "definition": "words of no meaning"} for label, about in MEASURES.items()}
    (family,) = families([(one(as_claimed("bert"), renamed), "", tables("bert").get)])
    held = {claim.id for claim in CLAIMS if finding(family, claim.id).outcome == "pass"}
    assert {"bert-sentence-falls"} <= held
    assert finding(family, "variance-below-baseline").checks[1].passed is None  # tables have the labels' names
    (family,) = families([(one(as_claimed("bert"), renamed), "", lambda name: tables("bert").get(name[3:]))])
    assert finding(family, "variance-below-baseline").checks[1].passed


def one(results: Results, measures: dict[str, dict[str, object]]) -> Results:
    """The results under other labels: `my <label>`."""
    curves = {f"my {key}": curve for key, curve in results.curves.items()}
    return Results(curves=curves, info={**results.info, "measures": measures})


def test_a_run_that_says_no_variants_is_no_evidence_and_of_two_labels_the_plain_one_counts() -> None:
    older = {label: {k: v for k, v in about.items() if k != "variant"} for label, about in MEASURES.items()}
    (family,) = planted(info={"measures": older})
    assert {f.words for f in evaluate(family)} == {"not run"}
    same = MEASURES["self_similarity"]
    assert measured(Results(info={"measures": {"a": same, "b": same}})) == {"self_similarity": "a"}
    both = {"a": same, "self_similarity": same, "b": same}
    assert measured(Results(info={"measures": both})) == {"self_similarity": "self_similarity"}


def test_a_curve_without_an_interval_decides_nothing() -> None:
    (family,) = planted()
    for member in family.members:
        member.curves.update({k: np.full_like(v, np.nan) for k, v in member.curves.items() if "_ci_" in k})  # type: ignore[attr-defined]
    found = {f.claim.id: f for f in evaluate(family)}
    for claim in ("anisotropic", "self-similarity-falls", "gpt2-most-contextual", "variance-below-5"):
        assert found[claim].words == "not run"
    assert "has no interval: run with bootstrap and baseline redraws" in found["anisotropic"].why


@pytest.mark.parametrize(
    "info",
    [
        {"weights": "mini"}, {"weights": "untrained"}, {"weights": "untrained gpt2"}, {"weights": "my-finetuned"},
        {"transform": "center"}, {"control": {"name": "shuffled"}}, {"weights": "gpt2", "dim": 12},
    ],
    ids=lambda info: " ".join(map(str, info.values())),
)  # fmt: skip
def test_nothing_holds_without_the_papers_own_weights(info: dict[str, object]) -> None:
    every = planted(info=info)
    assert all(family.kind == "other" for family in every)
    made = report.build(every)
    assert {words for _, words, _ in made.verdicts} == {"not run"}
    for text in (report.text(made), report.markdown(made), report.page(made)):
        assert not re.search(r"\bholds\b", text)
        assert "as claimed" in text
        assert "weights=published" in text


def test_the_authors_files_by_name_and_size_are_their_weights() -> None:
    given = {"elmo": ("elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5", 1024), "bert": ("bert-base-cased", 768)}
    for model, (name, dim) in given.items():
        results = as_claimed(model)
        results.info |= {"weights": name, "dim": dim}
        assert families([(results, "", lambda name: None)])[0].kind == "published"


def test_families_never_mix_corpora_and_prefer_the_papers_text_and_the_newest_run() -> None:
    runs = []
    for corpus, first in (("polysemy", 0.5), ("sts_2012_2016", 0.2), ("sts_2012_2016", 0.3)):
        results = as_claimed("elmo", anisotropy__mean_cosine=np.array([0.0, first, first + 0.1]))
        results.info |= {"corpus": corpus, "fingerprint": corpus}
        runs.append((results, corpus, lambda name: None))
    every = families(runs)
    assert [family.corpus for family in every] == ["sts_2012_2016", "polysemy"]
    assert claims.own_weights(every) is every[0]
    assert finding(every[0], "anisotropic").checks[0].effect == 0.2
    made = report.build(every[1:])
    assert made.verdicts[0][2].startswith("on polysemy, not the paper's text; ")


def test_with_size_matched_baselines_adjusted_is_that_reading() -> None:
    results = as_claimed("bert")
    results.info["baseline"] = "size_matched"
    for key in [k for k in results.curves if "/size_matched_" in k]:
        del results.curves[key]
    (family,) = families([(results, "", lambda name: None)])
    readings = {c.variant: c.passed for c in finding(family, "bert-sentence-falls").checks}
    assert readings == {"the paper's baseline": None, "the length-matched baseline": True}
    results.info["baseline"] = "position_matched"
    (other,) = families([(results, "", lambda name: None)])
    assert {c.passed for c in finding(other, "bert-sentence-falls").checks} == {None}
    assert {c.passed for c in finding(other, "anisotropy-rises").checks if c.model == "bert"} == {True}
    assert (
        finding(family, "variance-below-5").checks[1].said
        == "no max_explainable_variance_released/adjusted in its runs"
    )


def test_static_vectors_say_what_of_the_benchmarks_they_cover() -> None:
    nothing = {f"static_vectors__{name}": np.full(13, np.nan) for name in ("rw", "ap")}
    shares = {f"static_vectors__{name}_covered": np.full(13, 0.01 * (i + 1)) for i, name in enumerate(BENCHMARKS)}
    (family,) = planted({"bert": nothing | shares})
    (check,) = finding(family, "static-beats-glove").checks
    assert (
        check.said == "7 of 7 benchmarks above GloVe and fastText; not: none; no score: rw, ap; covered: 1.0% to 8.0%"
    )
    assert check.n == 7


def test_rho_and_its_interval() -> None:
    noisy = line(0.300, 0.301, 13)  # a rise that is nothing beside its errors
    (family,) = planted({"gpt2": {"anisotropy__mean_cosine": noisy}})
    check = next(c for c in finding(family, "anisotropy-rises").checks if c.model == "gpt2")
    assert check.effect == pytest.approx(1)
    assert check.low < 0 < check.high
    assert check.passed is False


def test_wilson_interval_is_that_of_the_textbook() -> None:
    from scipy.stats import binomtest

    for count, n in ((0, 20), (3, 20), (20, 20), (130, 700)):
        low, high = binomtest(count, n).proportion_ci(method="wilson")
        assert wilson(count, n) == pytest.approx((low, high), abs=1e-6)


# --- the released figures: Ethayarajh 2019, github.com/kawine/contextual, to their three decimals -------------------


RELEASED = {
    "anisotropic": "as claimed", "anisotropy-rises": "as claimed", "same-word-closer": "as claimed",
    "self-similarity-falls": "as claimed", "gpt2-most-contextual": "as claimed", "gpt2-last-layer": "as claimed",
    "elmo-sentence-rises": "as claimed",
    "bert-sentence-falls": "as claimed only under the paper's baseline",
    "gpt2-sentence-none": "as claimed only under the paper's baseline",
    "sentence-above-line": "as claimed only under the paper's baseline",
    "bert-last-below-elmo-2": "as claimed only under adjusted", "bert-last-close-to-elmo-2": "not as claimed",
    "elmo-2-below-bert-2": "as claimed",
    "variance-below-5": "as claimed only under the released code, sampled baseline (5 other readings not measured)",
    "variance-raw": "as claimed only under the released code (2 other readings not measured)",
    "variance-below-baseline": "not measured",
    "finite-senses": "as claimed only under the released code, sampled baseline (5 other readings not measured)",
    "stop-words-lowest": "not measured",
    "static-beats-glove": "as claimed", "static-bert-1-best": "as claimed", "static-lower-better": "as claimed",
    "static-gpt2-worst": "as claimed", "static-middle-between": "not measured",
}  # fmt: skip


def test_the_released_figures_come_out_as_they_do() -> None:
    found = {f.claim.id: f for f in evaluate(released.family())}
    assert {claim: f.words for claim, f in found.items()} == RELEASED
    assert "has no single words" in found["stop-words-lowest"].why
    effects = {c.model: c.effect for c in found["anisotropy-rises"].checks}
    assert effects == pytest.approx({"elmo": 0.5, "bert": 0.951, "gpt2": 0.401}, abs=0.001)
    wins = {c: found[c].checks[0].effect * 9 for c in ("static-beats-glove", "static-bert-1-best", "static-gpt2-worst")}
    assert wins == pytest.approx({"static-beats-glove": 6, "static-bert-1-best": 5, "static-gpt2-worst": 8})
    assert [round(c.effect * 9) for c in found["static-lower-better"].checks] == [7, 9, 8]
    literal = [c for c in found["sentence-above-line"].checks if c.variant == "the paper's baseline"]
    assert [c.said for c in literal] == [
        "nearest to the bound: layer 1 (spared: layer 0)", "nearest to the bound: layer 10 (spared: layer 11)",
    ]  # fmt: skip


def test_what_follows_from_the_released_figures() -> None:
    found = {d.id: d for d in released.derivations()}
    assert found["definition"].numbers == pytest.approx({"elmo bound": 0.642, "bert bound": 0.731}, abs=0.0006)
    assert "GPT-2's lengths differ greatly" in found["definition"].said
    assert found["vacuous"].numbers["gpt2 adjusted"] == pytest.approx((-0.70, -0.63), abs=0.005)
    assert found["vacuous"].numbers["gpt2 baseline"] == pytest.approx((0.969, 0.998), abs=0.0006)
    assert found["vacuous"].numbers["largest adjusted"] == pytest.approx(0.035, abs=0.001)
    elmo, bert, gpt2 = (found[f"length, {m}"].numbers for m in ("elmo", "bert", "gpt2"))
    assert [elmo[f"layer {i}"][0] for i in range(3)] == pytest.approx([0.00, 0.10, 0.16], abs=0.005)  # type: ignore[index]
    assert bert["all layers"] == pytest.approx((0.00, 0.06), abs=0.005)
    assert max(range(13), key=lambda i: bert[f"layer {i}"][1]) == 12  # type: ignore[index]
    middle = np.array([gpt2[f"layer {i}"] for i in range(2, 12)])
    assert (middle.min(), middle.max()) == pytest.approx((-0.26, -0.11), abs=0.005)
    for i in (0, 1, 12):
        assert gpt2[f"layer {i}"] == pytest.approx((0, 0), abs=0.01)
    assert found["elmo and bert"].numbers == pytest.approx(
        {"elmo 2, raw": 0.642, "bert last, raw": 0.755, "bert 2, raw": 0.871,
         "elmo 2, adjusted": 0.506, "bert last, adjusted": 0.278, "bert 2, adjusted": 0.652}, abs=0.0011,
    )  # fmt: skip
    assert "BERT layers 6 to 7, 11 to 12" in found["steps"].said
    assert "no single words" in found["single words"].said


def test_the_bound_on_definition_3_holds_and_is_near_for_any_unit_vectors() -> None:
    from ctxexp.geometry import explained_variance, mean_cosine

    rng = np.random.default_rng(0)
    for n, shift in ((5, 0.0), (8, 1.0), (50, 3.0)):
        x = rng.normal(size=(n, 30)) + shift
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        s = np.array(float(mean_cosine(x)))
        share = float(explained_variance(x[None], definition="uncentred")[0])
        assert share >= released.least_variance(s, n) - 1e-9
        assert share - released.least_variance(s, n) < (0.3 if shift < 3 else 0.01)
        assert released.least_variance(s, n) > released.least_variance(s)
    # Of unequal lengths cosines count by them: one long row against many alike ones pulls the share below.
    x = np.array([[3.0, 0, 0]] + [[0, 1, 0.1 * i] for i in range(7)])
    share = float(explained_variance(x[None])[0])
    assert share < released.least_variance(np.array(float(mean_cosine(x))), len(x))
    assert share >= (x.sum(0) ** 2).sum() / (len(x) * (x**2).sum())


def test_the_length_level_is_that_of_unrelated_words() -> None:
    from ctxexp.geometry import mean_cosine, mean_cosine_to_mean

    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 12, 300)) + 0.4  # sentences of unrelated words in a cone
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    everything = np.array(float(mean_cosine(x[:, 0])))
    assert float(mean_cosine_to_mean(x, unit_norm=True).mean()) == pytest.approx(
        float(released.length_null(everything, 12)), abs=0.002
    )
    assert float(released.length_null(np.array(0.0), 10.7)) == pytest.approx(0.31, abs=0.005)


# --- the command ----------------------------------------------------------------------------------------------------


def finished_folder(folder: Path, *, weights: str = "published", status: str = "FINISHED") -> None:
    """What jobs leave behind: results, tables, how they ended."""
    for number, model in enumerate(LAYERS):
        place = folder / "results" / "20260101-000000-abc" / f"{number:03d}_{model}"
        results = as_claimed(model)
        results.info["weights"] = weights
        results.save(place)
        for name, table in tables(model).items():
            with (place / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(table)
                writer.writerows(zip(*table.values(), strict=True))
        state = {"status": status, "link": f"http://store/<{model}>"}
        (place / "status.json").write_text(json.dumps(state), encoding="utf-8")


def test_the_command_reports_on_finished_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished_folder(tmp_path)
    assert main(["--folder", str(tmp_path), "--out", str(tmp_path / "new" / "out")]) == 0
    said = capsys.readouterr().out
    assert re.search(r"anisotropic\* +holds +Representations are", said)
    assert re.search(r"stop-words-lowest +holds", said)
    assert re.search(r"static-beats-glove +not run", said)  # no file of word vectors
    assert "gpt2: http://store/<gpt2>" in said
    assert re.search(r"^  not measured: [a-z0-9-]+, [a-z0-9-]+", said, flags=re.MULTILINE)  # one list
    assert not re.search(r"^  [a-z0-9-]+ +not measured$", said, flags=re.MULTILINE)
    assert "what follows from the released figures" in said
    notes = (tmp_path / "new" / "out" / "claims.md").read_text(encoding="utf-8")
    assert "[run](http://store/<gpt2>)" in notes
    page = (tmp_path / "new" / "out" / "claims.html").read_text(encoding="utf-8")
    assert 'href="http://store/&lt;gpt2&gt;"' in page
    assert "<gpt2>" not in page
    assert "@@" not in page
    assert not re.search(r'(src|href)="(?!http://store)', page)  # nothing is fetched
    for claim in CLAIMS:
        assert claim.id in said
        assert f"`{claim.id}`" in notes
        assert f"<code>{claim.id}</code>" in page
    columns = [row.count(" | ") for row in notes.splitlines() if row.startswith("| `") and "[run]" in row]
    assert set(columns) == {9}


def test_the_released_figures_need_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--released", "--folder", str(tmp_path / "none")]) == 0
    said = capsys.readouterr().out
    assert "not as claimed" in said
    assert not re.search(r"\bholds\b", said)
    assert not list(tmp_path.iterdir())


def test_models_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished_folder(tmp_path, weights="mini")
    assert main(["--folder", str(tmp_path), "--model", "bert, elmo"]) == 0
    said = capsys.readouterr().out
    assert "the same tests on weights mini, corpus sts_2012_2016: elmo, bert\n" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no finished run of elmo, bert, gpt2 in {folder}/results; make some (python -m ctxexp -m model=elmo,bert"),
        (["--model", "gpt-2"], "no model with claims 'gpt-2'; did you mean 'gpt2'? (bert, elmo, gpt2)"),
        (["--uri", "sqlite:///{folder}/none.db"], "no tracking store at {folder}/none.db (--uri)"),
        (
            ["--released", "--out", "{folder}/file/below"],
            "cannot write {folder}/file/below/claims.md: Not a directory; choose a writable place (--out)",
        ),
    ],
    ids=["no runs", "unknown model", "no store", "unwritable"],
)
def test_what_cannot_be_reported_is_said_in_a_line(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished_folder(tmp_path / "failed", status="FAILED")
    (tmp_path / "file").touch()
    assert main(["--folder", str(tmp_path), *(w.format(folder=tmp_path) for w in words)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {message.format(folder=tmp_path)}")
    assert error.count("\n") == 1


def test_runs_that_failed_are_no_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finished_folder(tmp_path, status="FAILED")
    assert main(["--folder", str(tmp_path)]) == 2
    assert "no finished run" in capsys.readouterr().err


@pytest.mark.slow
def test_runs_are_read_from_mlflow_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ctxexp.tracking import MlflowSink, job, prepare

    uri = prepare(tmp_path)
    place = tmp_path / "results" / "one" / "run"
    with job(
        lambda: MlflowSink(uri, "ctxexp", place, store=tmp_path), place, name="elmo", key="k", params={}, config=""
    ) as running:
        results = as_claimed("elmo")
        words = place / "self_similarity.csv"
        running.save(results)
        words.write_text("word,mean\nthe,0.1\n" + "".join(f"w{i},0.5\n" for i in range(300)), encoding="utf-8")
        running.log(results)
    words.unlink()  # the store has it
    assert main(["--uri", uri]) == 0
    said = capsys.readouterr().out
    assert re.search(r"elmo +yes +0.000 .*words below: the 0.0%", said)
    assert f"/runs/{running.run_id}" in said
    assert main(["--uri", uri, "--experiment", "other"]) == 2
    assert "no experiment 'other' in sqlite:///" in capsys.readouterr().err


def test_evidence_without_curves_says_so() -> None:
    empty = Family("other", "nothing", members=[Evidence("bert", {})])
    assert all(f.outcome == "none" for f in evaluate(empty))
    assert finding(empty, "anisotropic").words == "not measured"
