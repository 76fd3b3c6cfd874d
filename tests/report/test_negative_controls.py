"""One function gives the controls of a curve, to figures, cards and reports alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from ctxexp import Results
from ctxexp.report.reference_curves import control_lines, negative_controls, training_runs
from ctxexp.results import Key
from tests.sample_results import results_with, run_info

MEASURES = {
    "self_similarity": {"name": "self_similarity", "main": "raw", "title": "Self-similarity", "variant": ""},
    "anisotropy": {"name": "anisotropy", "main": "mean_cosine", "title": "Anisotropy"},
}
RAW = Key("self_similarity", "raw")


def run(*values: float, weights: str = "mini", control: str = "none", name: str = "m", **info: Any) -> Results:
    value = np.array(values)
    curves = {"self_similarity/raw": value, "anisotropy/mean_cosine": value / 2}
    curves |= {f"self_similarity/raw_ci_{end}": value + by for end, by in (("low", -0.01), ("high", 0.01))}
    said = {"n_layers": len(values), "measures": MEASURES, "corpus": "text", "fingerprint": "f", "encoder": weights}
    return results_with(curves, info=run_info(**{**said, "name": name, "weights": weights, "control": control, **info}))


def test_layer_0_and_a_vector_a_word_need_no_run() -> None:
    found = negative_controls(run(0.9, 0.5, 0.4), RAW)
    assert [one.name for one in found] == ["layer_0", "vector_a_word"]
    assert found[0].estimates.value.tolist() == [0.9] * 3
    assert found[0].estimates.low.tolist() == [0.89] * 3
    assert found[1].estimates.value.tolist() == [1.0] * 3
    assert [one.name for one in negative_controls(run(0.9, 0.5), Key("anisotropy", "mean_cosine"))] == ["layer_0"]
    assert [one.name for one in negative_controls(run(np.nan, 0.5), RAW)] == ["vector_a_word"]


def test_twin_and_shuffled_text_are_found_among_the_other_runs() -> None:
    one = run(0.9, 0.5)
    twin, shuffled = run(0.8, 0.7, weights="untrained"), run(0.9, 0.6, control="shuffled contexts", fingerprint="g")
    strangers = [
        run(0.1, 0.1, weights="untrained", name="other"), run(0.1, 0.1, weights="untrained", fingerprint="g"),
        run(0.1, 0.1, weights="untrained", transform="center"), run(0.1, 0.1, 0.1, weights="untrained"),
        run(0.1, 0.1, control="no first word"), run(0.1, 0.1, weights="published", control="shuffled contexts"),
    ]  # fmt: skip
    found = negative_controls(one, RAW, [*strangers, twin, shuffled])
    assert [control.name for control in found] == ["layer_0", "vector_a_word", "untrained", "shuffled"]
    assert found[2].estimates.value.tolist() == [0.8, 0.7]
    assert found[3].label == "shuffled contexts"
    assert [control.name for control in negative_controls(twin, RAW, [one])] == ["layer_0", "vector_a_word"]


def test_random_words_are_measured_where_nothing_is_exact() -> None:
    one, cosine = run(0.9, 0.5, 0.4), Key("anisotropy", "mean_cosine")
    words = run(0.9, name="random_words", weights="")
    strangers = [
        run(0.1, name="random_words", weights="", fingerprint="g"), run(0.1, name="random_words", transform="center"),
        run(0.1, name="random_words", control="shuffled contexts", fingerprint="g"), run(np.nan, name="random_words"),
    ]  # fmt: skip
    found = negative_controls(one, cosine, [*strangers, words, words])
    assert [(control.name, control.label) for control in found] == [
        ("layer_0", "layer 0"), ("vector_a_word", "a random vector a word")
    ]  # fmt: skip
    assert found[1].estimates.value.tolist() == [0.45] * 3
    exact = negative_controls(one, RAW, [words])[1]
    assert (exact.label, exact.estimates.value.tolist()) == ("one vector a word", [1.0] * 3)
    named = [("m", one), ("random_words", words)]
    assert [line.partition(",")[0] for line in control_lines(named)] == ["m", "m"]  # a control has no line of its own
    assert control_lines(named, ["anisotropy"])[0].endswith("; layer 0 0.450, a random vector a word 0.450")
    assert training_runs(named) == ""  # nothing trained the other one
