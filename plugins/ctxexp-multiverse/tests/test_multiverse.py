"""Specifications by choice, their verdicts and weights; the figure and table say what they are; the sweep's configs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from ctxexp_multiverse import UnitNorm, specifications
from ctxexp_multiverse.figure import figure, title
from ctxexp_multiverse.specifications import CHOICES, frame, varied, weight
from ctxexp_multiverse.table import table

from ctxexp.results import Results
from ctxexp.testing import check_transform
from tests.composed import composed
from tests.made import results_with, told

MEASURES = {
    "self_similarity": {"name": "self_similarity", "title": "Self-similarity"},
    "mev_centred": {"name": "max_explainable_variance", "title": "MEV", "variant": "centred"},
    "anisotropy": {"name": "anisotropy", "title": "Anisotropy"},
}
TRANSFORMS = {
    "none": {"name": "none"}, "center": {"name": "center"}, "unit_norm": {"name": "unit_norm", "centred": False},
    "unit_norm (centred=True)": {"name": "unit_norm", "centred": True},
}  # fmt: skip


def run(transform: str, control: str, pooling: str) -> Results:
    """A run whose self-similarity falls by 0.2, by 0.1 where vectors are centred, and whose MEV stays; sure to 0.01."""
    rng = np.random.default_rng(len(transform) + 7 * len(control))
    fall = 0.1 if TRANSFORMS[transform].get("centred") or transform == "center" else 0.2
    curves = {
        "self_similarity/raw": [0.9, 0.5, 0.9 + fall], "self_similarity/adjusted": [0.8, 0.5, 0.8 - fall],
        "mev_centred/size_matched_adjusted": [0.3, 0.4, 0.3], "anisotropy/mean_cosine": [0.1, 0.2, 0.3],
    }  # fmt: skip
    replicates = {key: np.array(curve)[:, None] + 0.005 * rng.normal(size=(3, 200)) for key, curve in curves.items()}
    info = told(
        name="m", corpus="polysemy", n_layers=3, measures=MEASURES, control=control, details={"pooling": pooling},
        transform=transform, transform_arguments=TRANSFORMS[transform],
    )  # fmt: skip
    return results_with({key: np.array(curve) for key, curve in curves.items()}, replicates=replicates, info=info)


def runs() -> list[tuple[str, Results]]:
    every = product(TRANSFORMS, ("none", "no first word"), ("mean", "first"))
    return [(" ".join(chosen), run(*chosen)) for chosen in every]


def test_each_run_gives_a_specification_a_definition_and_baseline() -> None:
    found = specifications(runs())
    assert len(found) == 16 * 3
    assert [one.effect for one in found] == sorted(one.effect for one in found)
    counted = {kind: sum(one.verdict == kind for one in found) for kind in ("falls", "rises", "open")}
    assert counted["falls"] == 16  # adjusted self-similarity
    assert counted["rises"] == 16  # raw
    assert counted["open"] == 16  # MEV
    first = dict(zip(CHOICES, found[0].choices, strict=True))
    assert first["definition"] == "Self-similarity"
    assert first["baseline"] == "as configured"
    assert first["centring"] == "as it is"
    assert found[0].effect == pytest.approx(-0.2)
    assert found[0].low < -0.2 < found[0].high
    assert set(varied(found)) == {"definition", "centring", "norm", "first position", "unit", "baseline"}
    assert varied(found)["centring"] == ["as it is", "centred"]


def test_a_choice_s_weight_is_its_share_of_the_effects_variance() -> None:
    found = [one for one in specifications(runs()) if one.choices[-1] == "as configured"]
    assert weight(found, "centring") == pytest.approx(1)
    assert weight(found, "norm") == pytest.approx(0, abs=1e-9)
    assert np.isnan(weight(found[:1], "norm"))


def test_few_choices_are_no_multiverse() -> None:
    plain = [(label, results) for label, results in runs() if "first word" not in label and "mean" in label]
    assert specifications(plain[:3]) == []
    assert figure(plain[:2]) is None
    assert table(plain[:2]) is None


def test_figure_title_and_table_count_the_same() -> None:
    found = specifications(runs())
    said = "to the last in 16 of 48 defensible ways to measure it, rises in 16, 16 leave it open"
    assert title(found).endswith(said)
    drawn = figure(runs())
    assert drawn is not None
    assert len(drawn.axes[0].lines) == 2 * 48 + 1
    shown = table(runs())
    assert shown is not None
    assert shown.title == title(found)
    pd.testing.assert_frame_equal(shown.numbers, frame(found))
    row = next(row for row in shown.shown if row[:2] == ["definition", "MEV, centred"])
    assert row[2:5] == ["0", "16", "0"]
    for choice in varied(found):
        assert sum(sum(map(int, row[2:5])) for row in shown.shown if row[0] == choice) == 48


def test_unit_norm_keeps_the_contract_and_makes_lengths_one() -> None:
    for centred in (False, True):
        check_transform(lambda centred=centred: UnitNorm(centred=centred))
        x = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32) + 2
        y = UnitNorm(centred=centred).fit(x).apply(x)
        expected = x - x.mean(0) if centred else x
        assert y == pytest.approx(expected / np.linalg.norm(expected, axis=1, keepdims=True), abs=1e-6)
        assert not UnitNorm().fit(x).apply(np.zeros((2, 4), np.float32)).any()


def test_the_experiment_composes_and_sweeps_over_the_choices() -> None:
    config = composed("experiment=multiverse", "transform=center_unit_norm")
    assert set(config.metric) == {
        "self_similarity", "max_explainable_variance", "max_explainable_variance_centred",
        "max_explainable_variance_released",
    }  # fmt: skip
    assert (config.transform.name, config.transform.arguments) == ("unit_norm", {"centred": True})
    assert not config.sink
    variances = [config.metric[name].arguments for name in config.metric if name.startswith("max_")]
    assert [(told["baseline"], told["size_matched"]) for told in variances] == [("run", True)] * 3
