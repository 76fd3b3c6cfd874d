"""Findings: planted curves give the sentence that they support, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ctxexp.maths.chance import chance_corrected
from ctxexp.metrics.anisotropy import Anisotropy
from ctxexp.metrics.self_similarity import SelfSimilarity
from ctxexp.metrics.sts import STS
from ctxexp.metrics.word_norm import WordNorm
from ctxexp.report.findings import chart_finding, comparison_finding, finding, findings
from ctxexp.report.findings.trend import layer_changes
from ctxexp.results import Results
from ctxexp.results.metric_metadata import describe
from ctxexp.results.values import Estimates, Key
from tests.made import results_with, told

MEASURES = {
    "self_similarity": describe("self_similarity", SelfSimilarity(), "exact"),
    "anisotropy": describe("anisotropy", Anisotropy()),
    "word_norm": describe("word_norm", WordNorm()),
}


def run(raw: list[float], chance: float = 0.25, half: float | None = 0.02, **facts: Any) -> Results:
    y = np.array(raw)
    curves: dict[str, Any] = {"self_similarity/raw": y, "self_similarity/baseline": np.full(len(y), chance)}
    curves["self_similarity/adjusted"] = y - chance
    if half is not None:
        curves |= {f"self_similarity/adjusted_ci_{end}": y - chance + s * half for end, s in (("low", -1), ("high", 1))}
    return results_with(curves, info=told(**{"title": "bert", "measures": MEASURES, **facts}))


def test_what_falls_rises_or_turns_is_said_with_its_numbers() -> None:
    assert finding(run([0.95, 0.8, 0.7, 0.55])) == (
        "In bert, words grow more context-specific up to the last layer, 3 (0.70 above chance at layer 0, 0.30 at "
        "layer 3); at layer 3 the cosine is 0.55, of which chance alone gives 0.25."
    )
    assert finding(run([0.95, 0.5, 0.502, 0.8])) == (
        "In bert, words grow more context-specific up to layer 1, then less context-specific up to the last layer, 3 "
        "(0.70 above chance at layer 0, 0.25 at layer 1, 0.55 at layer 3); at layer 1 the cosine is 0.50, of "
        "which chance alone gives 0.25."
    )
    assert "less context-specific up to layer 1 (" in finding(run([0.3, 0.9, 0.895]))
    assert "up to layer 1 at least (0.70" in finding(run([0.95, 0.5, 0.49], half=0.01))


def test_nothing_is_said_of_noise() -> None:
    assert finding(run([0.95, 0.8, 0.7, 0.55], half=0.4)) == (
        "Self-similarity of words in bert: no change over layers 0 to 3 that these data can show (0.70 above chance at "
        "layer 0, 0.30 at layer 3); at layer 3 the cosine of 0.55 can't be told from chance (0.25)."
    )


@pytest.mark.parametrize("level", [0.55, 0.25, -0.05])
def test_chance_is_beside_the_value(level: float) -> None:
    said = finding(run([0.3, 0.3], chance=level))
    assert (
        said.partition("; at layer 1 ")[2]
        == {
            0.55: "the cosine of 0.30 is below the 0.55 that chance alone gives.",
            0.25: "the cosine is 0.30, of which chance alone gives 0.25.",
            -0.05: "the cosine is 0.30, and chance alone gives -0.05.",
        }[level]
    )
    assert ("0.25 below chance at layer 0" in said) == (level == 0.55)


def test_one_layer_none_and_no_interval() -> None:
    assert finding(run([0.5])).startswith(
        "Self-similarity of words in bert: one layer, 0 (0.25 above chance at layer 0);"
    )
    assert finding(run([np.nan, np.nan])) == "Self-similarity of words in bert: undefined in every layer."
    bare = "Self-similarity of words in bert: without an interval no change is claimed (0.70 above chance at layer 0"
    assert finding(run([0.95, 0.3], half=None)).startswith(bare)
    assert finding(run([0.95, 0.3], seeds=(0, 1))).startswith(bare)  # a spread over seeds is no interval
    assert finding(Results()) == ""
    assert findings(Results()) == []


def test_each_measure_has_its_own_direction_and_name() -> None:
    y = np.array([0.1, 0.5])
    curves = {"anisotropy/mean_cosine": y, "anisotropy/mean_cosine_ci_low": y - 0.01, "word_norm/raw": 30 * y}
    curves |= {"anisotropy/mean_cosine_ci_high": y + 0.01, "mine/raw": -y}
    curves |= {"mine/raw_ci_low": -y - 0.01, "mine/raw_ci_high": -y + 0.01}
    results = results_with(curves, info=told(measures=MEASURES))
    assert findings(results, "gpt2") == [
        "In gpt2, unrelated words grow more alike up to the last layer, 1 (0.10 at layer 0, 0.50 at layer 1).",
        "Length of word vectors in gpt2: without an interval no change is claimed (3.0 at layer 0, 15.0 at layer 1).",
        "Mine in gpt2: a fall up to the last layer, 1 (-0.10 at layer 0, -0.50 at layer 1).",
    ]
    assert finding(results_with(curves, info=told(measures=MEASURES))).startswith("In this run, unrelated words")


def test_curves_without_intervals_have_their_ranges() -> None:
    key = Key("word_norm", "raw")
    runs = [
        ("a", results_with({"word_norm/raw": np.array([1.904, 244.06])}, info=told(measures=MEASURES))),
        ("b", results_with({"word_norm/raw": np.array([np.nan])}, info=told(measures=MEASURES))),
    ]
    assert chart_finding(runs, key) == (
        "Length of word vectors: 1.9 to 244.1 in a, undefined in b; without intervals no change is claimed."
    )


def test_variants_and_tasks_are_told_apart() -> None:
    y = np.array([0.9, 0.5])
    ends = {"low": y - 0.01, "high": y + 0.01}
    curves = {"mine/raw": y, **{f"mine/raw_ci_{end}": values for end, values in ends.items()}}
    curves |= {f"sts/STS12/{name.partition('/')[2].replace('raw', 'all')}": values for name, values in curves.items()}
    info = {"mine": replace(MEASURES["self_similarity"], variant="centred"), "sts": describe("sts", STS())}
    assert [said.partition(" grow ")[0] for said in findings(results_with(curves, info=told(measures=info)), "a")] == [
        "In a, words (centred)",
        "In a, similarities of sentences (STS12)",
    ]


def test_models_are_ordered_only_where_intervals_allow() -> None:
    one, two, three = run([0.9, 0.4]), run([0.9, 0.6]), run([0.9, 0.41])
    assert comparison_finding([("a", one), ("b", two), ("c", three)]) == (
        "At the last measured layer (Self-similarity of words, less chance) words are more context-specific in a "
        "(0.15) than in b (0.35); these data can't tell c (0.16) from it."
    )
    assert comparison_finding([("a", one), ("c", three)]) == (
        "At the last measured layer (Self-similarity of words, less chance) these data can't tell the models apart: "
        "a (0.15) and c (0.16)."
    )
    bare = [(label, run(raw, half=None)) for label, raw in (("a", [0.9, 0.4]), ("b", [0.9, 0.6]))]
    assert "without intervals no order of models is claimed" in comparison_finding(bare)
    control = run([0.9, 0.2], weights="untrained")
    assert comparison_finding([("a", one), ("twin", control)]) == ""
    assert comparison_finding([("a", one), ("a", two), ("twin", control)]).count("twin") == 0


def test_many_models_are_counted_and_not_named() -> None:
    many = [(f"m{i}", run([0.9, 0.6 + i / 100])) for i in range(7)]
    near = [(f"n{i}", run([0.9, 0.401 + i / 1000])) for i in range(7)]
    low = ("a", run([0.9, 0.4]))
    opening = "At the last measured layer (Self-similarity of words, less chance) "
    assert comparison_finding([low, *many]) == (
        f"{opening}words are more context-specific in a (0.15) than in 7 others (0.35 to 0.41)."
    )
    assert comparison_finding([low, *many[:1], *near]) == (
        f"{opening}words are more context-specific in a (0.150) than in m0 (0.350); these data can't tell 7 others "
        "(0.151 to 0.157) from it."
    )
    assert comparison_finding([low, *near]) == (
        f"{opening}these data can't tell the models apart: 8 runs (0.150 to 0.157)."
    )
    narrow = ("a", share_run([0.9, 0.99], [0.2, 0.9]))
    wide = [(f"w{i}", share_run([0.9, 0.6 + i / 1000], [0.2, 0.2])) for i in range(7)]
    assert comparison_finding([narrow, *wide]).endswith(f"{SHARE}the differences from 7 of them go the other way.")


def test_shared_resamples_order_models_that_intervals_cannot() -> None:
    rng = np.random.default_rng(0)
    common = rng.normal(size=400)

    def resampled(last: float) -> Results:
        results = run([0.9, last], half=2.0)
        draws = np.array([[0.65], [last - 0.25]]) + common + 0.01 * rng.normal(size=(2, 400))
        key = next(key for key in results.by_key if key.statistic == "adjusted")
        return Results(results.frame, {}, {key: draws.astype(np.float32)}, results.info)

    assert "can't tell" in comparison_finding([("a", run([0.9, 0.4], half=2.0)), ("b", run([0.9, 0.6], half=2.0))])
    assert "in a (0.15) than in b (0.35)" in comparison_finding([("a", resampled(0.4)), ("b", resampled(0.6))])
    assert "grow more context-specific" in finding(resampled(0.4))


SHARE = " As a share of the room above chance, "


def share_run(raw: list[float], chance: list[float], half: float = 0.02, **facts: Any) -> Results:
    """A run with the share of the room above chance; `half`: half the length of its intervals."""
    y, level = np.array(raw), np.array(chance)
    curves = {"raw": y, "baseline": level, "adjusted": y - level, "share_of_room": chance_corrected(y - level, level)}
    for name, width in (("adjusted", 0.02), ("share_of_room", half)):
        curves |= {f"{name}_ci_low": curves[name] - width, f"{name}_ci_high": curves[name] + width}
    info = told(**{"title": "gpt2", "measures": MEASURES, **facts})
    return results_with({f"self_similarity/{name}": values for name, values in curves.items()}, info=info)


def doubt(results: Results) -> str:
    """What the finding says of the share; the empty text: nothing."""
    return finding(results).partition(SHARE)[2]


def test_a_change_that_the_share_of_the_room_contradicts_is_said_so() -> None:
    rises = share_run([0.7, 0.96], [0.2, 0.9])  # adjusted .5, .06: it falls; of the room .625, .6
    assert finding(rises) == (
        "In gpt2, words grow more context-specific up to the last layer, 1 (0.50 above chance at layer 0, 0.06 at "
        "layer 1); at layer 1 the cosine is 0.96, of which chance alone gives 0.90. As a share of the room above "
        "chance, the change from layer 0 to 1 is uncertain."
    )
    assert doubt(share_run([0.7, 0.99], [0.2, 0.9])) == "the change from layer 0 to 1 goes the other way."
    assert doubt(share_run([0.7, 0.92], [0.2, 0.9])) == ""
    turn = share_run([0.7, 0.99, 0.7], [0.2, 0.9, 0.2])
    assert doubt(turn) == "the changes from layer 0 to 1 and 1 to 2 go the other way."
    assert doubt(share_run([0.7, 0.99, 0.99], [0.2, 0.9, 0.2])) == "the change from layer 0 to 1 goes the other way."
    mixed = share_run([0.7, 0.99, 0.95], [0.2, 0.9, 0.3])
    assert doubt(mixed) == (
        "the change from layer 0 to 1 goes the other way; the change from layer 1 to 2 is uncertain."
    )
    assert chart_finding([("a", rises), ("b", turn), ("c", mixed)], Key("self_similarity", "adjusted")) == (
        "In a, words grow more context-specific up to the last layer, 1. In b, words grow more context-specific up to "
        "layer 1, then less context-specific up to the last layer, 2. In c, words grow more context-specific up to "
        f"layer 1, then less context-specific up to the last layer, 2.{SHARE}the changes from layer 0 to 1 in b, 1 to "
        "2 in b and 0 to 1 in c go the other way; the changes from layer 0 to 1 in a and 1 to 2 in c are uncertain."
    )


def test_the_share_is_asked_at_the_layers_of_the_change() -> None:
    nan = np.nan
    assert doubt(share_run([nan, 0.7, nan, 0.99], [nan, 0.2, nan, 0.9])) == (
        "the change from layer 1 to 3 goes the other way."
    )
    assert doubt(share_run([nan, 0.7, nan, 0.5], [nan, 0.2, nan, 0.2])) == ""
    assert doubt(share_run([0.7, 1.0], [0.2, 1.0])) == "the change from layer 0 to 1 is uncertain."  # no room at 1


def test_layers_without_a_value_are_not_among_the_pairs() -> None:
    y = np.array([1.0, *[np.nan] * 30, 0.93])
    signs = layer_changes(Estimates(y, y - 0.02, y + 0.02))
    assert (signs[0, -1], signs[-1, 0], np.abs(signs).sum()) == (-1, 1, 2)
    flat = np.nan_to_num(y, nan=0.96)
    assert not layer_changes(Estimates(flat, flat - 0.02, flat + 0.02))[0, -1]
    assert not layer_changes(Estimates(*np.full((3, 4), np.nan))).any()


def test_the_share_is_only_asked_where_a_change_less_chance_is_claimed() -> None:
    rises = share_run([0.7, 0.99], [0.2, 0.9], half=2.0)
    assert doubt(rises) == "the change from layer 0 to 1 is uncertain."
    assert SHARE not in finding(share_run([0.7, 0.99], [0.2, 0.9], seeds=(0, 1)))  # a spread is no interval
    assert SHARE not in finding(share_run([0.7, 0.7], [0.2, 0.21]))
    raw = results_with({f"anisotropy/mean_cosine{end}": np.array([0.1, 0.5]) for end in ("", "_ci_low", "_ci_high")})
    assert SHARE not in finding(raw)


def test_an_order_of_models_that_the_share_of_the_room_does_not_show_is_said_so() -> None:
    narrow = share_run([0.9, 0.99], [0.2, 0.9])  # .09 above chance, .9 of the room
    wide, like, agrees = (share_run([0.9, at], [0.2, level]) for at, level in ((0.6, 0.2), (0.92, 0.2), (0.99, 0.5)))
    assert comparison_finding([("a", narrow), ("b", wide)]) == (
        "At the last measured layer (Self-similarity of words, less chance) words are more context-specific in a "
        f"(0.09) than in b (0.40).{SHARE}the difference from b goes the other way."
    )
    assert comparison_finding([("a", narrow), ("b", wide), ("c", wide), ("d", like)]).endswith(
        f"{SHARE}the differences from b and c go the other way; the difference from d is uncertain."
    )
    assert comparison_finding([("a", narrow), ("b", agrees)]).endswith("than in b (0.49).")
    assert comparison_finding([("a", narrow), ("b", run([0.9, 0.65]))]).endswith("than in b (0.40).")  # has no share
