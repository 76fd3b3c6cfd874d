"""Findings: planted curves give the sentence that they support, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ctxexp
from ctxexp import Results
from ctxexp.datasets import polysemy
from ctxexp.metrics.contextuality import VARIANTS
from ctxexp.report.changes import claimed_steps, layer_changes
from ctxexp.report.findings import comparison_finding
from ctxexp.results import Estimates, Key, RunInfo
from tests.sample_results import measure_infos, results_with, run_info
from tests.shipped import Anisotropy, Contextuality, SelfSimilarity, WordNorm

BANDS = (1 / 3000, 1 / 1000, 1 / 300, 1.0)

MEASURES = {
    **measure_infos("exact", self_similarity=SelfSimilarity()),
    **measure_infos(anisotropy=Anisotropy(), word_norm=WordNorm(), contextuality=Contextuality()),
}  # fmt: skip


FULL, SHORT, BARE = (
    replace(RunInfo().mix, weights="bands", bands=BANDS, filled=filled, wanted=wanted)
    for filled, wanted in (((True,) * 3, 0), ((False, True, True), 12345), ((False,) * 3, 23456))
)
OPENING = "On this text, at the last layer (Self-similarity of words), "
RAW = Key("self_similarity", "raw")


def run(
    raw: list[float],
    half: float | None = 0.02,
    *,
    parts: dict[str, list[float]] | None = None,
    filled: str = "1 1 1",
    **facts: Any,
) -> Results:
    """A run with this self-similarity; `half`: half the length of its intervals; `parts`: the same in halves of the
    text, by the bands that both fill."""
    y = np.array(raw)
    curves = {"raw": y, "baseline": np.full(len(y), 0.25), "adjusted": y - 0.25}
    if half is not None:
        curves |= {"raw_ci_low": y - half, "raw_ci_high": y + half}
    tables = {}
    if parts:
        column = {"measure": "self_similarity", "task": "", "statistic": "raw", "filled": filled, "words": 9}
        frames = [
            pd.DataFrame({**column, "part": part, "layer": range(len(values)), "value": values})
            for part, values in parts.items()
        ]
        tables = {"parts_of_the_text": pd.concat(frames)}
    info = run_info(**{"title": "bert", "measures": MEASURES, "mix": FULL, **facts})
    return results_with({f"self_similarity/{name}": v for name, v in curves.items()}, tables=tables, info=info)


def contextual(raw: list[float], half: float = 0.01, **others: list[float]) -> Results:
    """A run with this contextuality and statistics beside it."""
    y, ends = np.array(raw), np.array([raw, *(others[name] for name in VARIANTS if name in others)])
    curves = {"raw": y, "raw_ci_low": y - half, "raw_ci_high": y + half}
    curves |= {"lowest": ends.min(axis=0), "highest": ends.max(axis=0), **{n: np.array(v) for n, v in others.items()}}
    info = run_info(title="gpt2", measures=MEASURES, mix=FULL)
    return results_with({f"contextuality/{name}": v for name, v in curves.items()}, info=info)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ([0.95, 0.8, 0.7, 0.55], "falls from 0.95 at the input to 0.55 at the last layer, 3."),
        ([0.95, 0.5, 0.502, 0.8], "falls from 0.95 at the input to 0.50 at layer 1, then grows to 0.80 at the last "
         "layer, 3."),
        ([0.3, 0.9, 0.895], "grows from 0.30 at the input to 0.90 at layer 1."),
        ([0.5, 0.51, 0.2], "is lower, 0.20 at the last layer, 2, than 0.51 at layer 1."),  # where a fall begins is open
    ],
)  # fmt: skip
def test_what_falls_rises_or_turns_is_said_with_its_numbers(raw: list[float], says: str) -> None:
    assert run(raw).sentence == f"In bert, self-similarity of words {says}"


def test_a_step_or_an_order_that_one_variant_reverses_is_not_claimed() -> None:
    steady = {"no_cut": [0.3, 0.4], "no_first": [np.nan, np.nan]}  # undefined: it says nothing
    assert " grows " in contextual([0.3, 0.4], **steady).sentence
    reversed_ = contextual([0.3, 0.4], **steady, by_dimension=[0.35, 0.34]).sentence
    assert "no change over layers 0 to 1 that these data and all variants show" in reversed_
    low, high = contextual([0.0, 0.3], no_cut=[0.0, 0.31]), contextual([0.0, 0.4], no_cut=[0.0, 0.39])
    assert "words are less contextual in a (0.30) than in b (0.40)" in comparison_finding([("a", low), ("b", high)])
    wide = contextual([0.0, 0.4], no_cut=[0.0, 0.305])
    assert "can't tell the models apart" in comparison_finding([("a", low), ("b", wide)])


def test_what_makes_contextuality_shaky_is_said() -> None:
    sound = {"n": [900.0] * 2, "loudest": [0.1, 0.2], "all_places": [0.0, 0.42]}
    assert contextual([0.0, 0.4], **sound).doubts == []
    said = contextual([0.0, 0.4], **sound | {"loudest": [0.1, 0.48], "all_places": [0.0, 0.5]}).doubts
    words = ("48% of the variance in layer 1", "any two places it is 0.50")
    assert [word in sentence for word, sentence in zip(words, said, strict=True)] == [True] * 2
    assert "undefined" in contextual([np.nan] * 2).doubts[0]
    assert run([0.5, 0.4]).doubts == []


def test_known_artefacts_stand_in_the_first_sentence_with_what_shows_the_curve_without() -> None:
    y = [0.1, 0.2, 0.3, 0.4]
    loud = contextual(y, loudest=[0.6, 0.1, 0.97, 0.9], no_near_duplicates=[0.1, 0.2, 0.3, 0.5])
    words = ["The", "the", "bank"]
    loud = replace(loud, tables={"contextuality": pd.DataFrame({"word": words})})
    info = replace(loud.info, model=replace(loud.info.model, details={"lower_cases": True}))
    assert replace(loud, info=info).sentence.partition("0.40 at the last layer, 3; ")[2] == (
        "one direction holds up to 97% of the variance in layers 0 and 2 to 3: transform=all_but_the_top takes it off; "
        "the text repeats sentences: contextuality/no_near_duplicates ends at 0.50; the tokenizer lower-cases: "
        "'The' and 'the' are one string to it, two words here (1 such pairs), which words.fold_case=true joins."
    )
    causal = replace(loud, info=replace(info, model=replace(info.model, causal=True, details={}))).sentence
    assert "control=no_first leaves first words out" in causal
    assert "lower-cases" not in causal
    curves = {"self_similarity/raw": np.array([0.9, 0.2]), "self_similarity/share_of_room": np.array([0.8, -0.3])}
    below = results_with(curves, info=run([0.9, 0.2]).info)
    assert "self-similarity of words lies below chance (-0.30) in layer 1, as where few long" in below.sentence


def test_nothing_is_said_of_noise_of_small_steps_and_of_what_one_half_shows() -> None:
    noise = run([0.95, 0.8, 0.7, 0.55], half=0.4).sentence
    assert noise.startswith("Self-similarity of words in bert: no change over layers 0 to 3 that these data can show")
    small = run([0.50, 0.519, 0.501], half=0.0001)  # certain, and of no weight
    assert small.sentence.startswith("Self-similarity of words in bert: flat over layers 0 to 2 (")
    curve = [0.9, 0.5]
    both, one = ({"half": curve, "other half": other} for other in (curve, [0.5, 0.6]))
    assert " falls " in run(curve, parts=both).sentence
    assert " falls " in run(curve, parts=both, filled="0 1 1").sentence  # judged by what both halves fill
    assert " falls " in run(curve, parts=both, filled="0 0 0").sentence  # or by all of a half's words
    assert " falls " not in run(curve, parts=one).sentence


def test_a_text_that_lacks_bands_says_so_and_what_it_rests_on() -> None:
    assert run([0.9, 0.5], mix=SHORT).sentence.startswith("In bert, self-similarity of words (2 of 3 bands) falls ")
    n = {"self_similarity/n": np.array([7.0, 7.0]), "self_similarity/raw": np.array([0.9, 0.5])}
    facts = {"title": "bert", "measures": MEASURES, "n_sentences": 89, "resampled": "sentence"}
    assert results_with(n, info=run_info(mix=BARE, **facts)).doubts == [
        "It rests on 7 words in 89 sentences, which intervals take as independent; the text fills 0 of 3 bands of word "
        "frequency; about 23,456 words more would fill all."
    ]
    files = results_with(n, info=run_info(mix=FULL, choices={"documents": "none"}, **facts)).doubts
    assert files == ["It rests on 7 words in 89 sentences, which intervals take as independent (one running text? "
                     "add dataset.documents=blank)."]  # fmt: skip
    info = run_info(mix=FULL, **facts)
    documents = replace(info, resampled=replace(info.resampled, unit="document", n=5))
    assert results_with(n, info=documents).doubts[0].endswith("in 89 sentences, of which intervals draw 5 documents.")
    said = comparison_finding([("a", run([0.9, 0.4])), ("b", run([0.9, 0.6], mix=SHORT))])
    assert said.endswith("these data can't tell the models apart: a (0.40) and b (2 of 3 bands) (0.60).")


def test_what_is_claimed_of_a_text_is_claimed_of_every_longer_one() -> None:
    sentences = [sentence.text for sentence in polysemy().sentences]
    rng = np.random.default_rng(0)
    text = [sentences[i] for i in rng.permutation(len(sentences)).tolist()]
    claims = {}
    for n in (8, 30, 100, 300):
        results = ctxexp.measure("bert", text[:n], metrics=["self_similarity", "anisotropy"])
        for key, legs in claims.items():
            signs = claimed_steps(results, key)
            assert [leg for leg in legs if signs[leg.start, leg.end] != leg.sign] == [], (n, key)
        claims = {key: results.finding(key).legs for key in results.main_keys}
        assert all(claims[key] for key in claims if np.isfinite(results.by_key[key].value).any())  # something is said
        assert str(n) in results.doubts[0]


def test_a_negative_control_has_no_direction() -> None:
    for facts in ({"weights": "untrained"}, {"name": "random_words"}, {"control": "shuffled"}):
        assert "a negative control, of which no direction is claimed" in run([0.9, 0.2], **facts).sentence


def test_one_layer_none_and_no_interval() -> None:
    assert run([0.5]).sentence.startswith("Self-similarity of words in bert: one layer, 0 (")
    assert run([np.nan, np.nan]).sentence == "Self-similarity of words in bert: undefined in every layer."
    bare = "Self-similarity of words in bert: without an interval no change is claimed ("
    assert run([0.95, 0.3], half=None).sentence.startswith(bare)
    assert run([0.95, 0.3], seeds=(0, 1)).sentence.startswith(bare)  # a spread over seeds is no interval
    assert Results().sentence == ""
    assert Results().findings() == []


def test_each_measure_has_its_own_direction_and_name() -> None:
    y = np.array([0.1, 0.5])
    curves = {"anisotropy/mean_cosine": y, "anisotropy/mean_cosine_ci_low": y - 0.01, "word_norm/raw": 30 * y}
    curves |= {"anisotropy/mean_cosine_ci_high": y + 0.01, "mine/raw": -y}
    curves |= {"mine/raw_ci_low": -y - 0.01, "mine/raw_ci_high": -y + 0.01}
    results = results_with(curves, info=run_info(measures=MEASURES))
    assert results.findings("gpt2") == [
        "In gpt2, anisotropy grows from 0.10 at the input to 0.50 at the last layer, 1.",
        "Length of word vectors in gpt2: without an interval no change is claimed (3.0, 15.0 at layers 0, 1).",
        "Mine in gpt2: a fall from -0.10 at the input to -0.50 at the last layer, 1.",
    ]
    assert results_with(curves, info=run_info(measures=MEASURES)).sentence.startswith("In this run, anisotropy")


def test_models_are_ordered_only_where_intervals_allow() -> None:
    one, two, three = run([0.9, 0.4]), run([0.9, 0.6]), run([0.9, 0.41])
    assert comparison_finding([("a", one), ("b", two), ("c", three)]) == (
        f"{OPENING}words are more context-specific in a "
        "(0.40) than in b (0.60); these data can't tell c (0.41) from it."
    )
    assert comparison_finding([("a", one), ("c", three)]) == (
        f"{OPENING}these data can't tell the models apart: a (0.40) and c (0.41)."
    )
    bare = [(label, run(raw, half=None)) for label, raw in (("a", [0.9, 0.4]), ("b", [0.9, 0.6]))]
    assert "no order of models is claimed without intervals" in comparison_finding(bare)
    control = run([0.9, 0.2], weights="untrained")
    assert comparison_finding([("a", one), ("twin", control)]) == ""
    assert comparison_finding([("a", one), ("a", two), ("twin", control)]).count("twin") == 0


def test_shared_resamples_order_models_that_intervals_cannot() -> None:
    rng = np.random.default_rng(0)
    common = rng.normal(size=400)

    def resampled(last: float) -> Results:
        results = run([0.9, last], half=2.0)
        draws = np.array([[0.9], [last]]) + common + 0.01 * rng.normal(size=(2, 400))
        return Results(results.frame, {}, {RAW: draws.astype(np.float32)}, results.info)

    assert "can't tell" in comparison_finding([("a", run([0.9, 0.4], half=2.0)), ("b", run([0.9, 0.6], half=2.0))])
    assert "in a (0.40) than in b (0.60)" in comparison_finding([("a", resampled(0.4)), ("b", resampled(0.6))])
    assert " falls " in resampled(0.4).sentence


def test_layers_without_a_value_are_not_among_the_pairs() -> None:
    y = np.array([1.0, *[np.nan] * 30, 0.93])
    signs = layer_changes(Estimates(y, y - 0.02, y + 0.02))
    assert (signs[0, -1], signs[-1, 0], np.abs(signs).sum()) == (-1, 1, 2)
    flat = np.nan_to_num(y, nan=0.96)
    assert not layer_changes(Estimates(flat, flat - 0.02, flat + 0.02))[0, -1]
    assert not layer_changes(Estimates(*np.full((3, 4), np.nan))).any()
