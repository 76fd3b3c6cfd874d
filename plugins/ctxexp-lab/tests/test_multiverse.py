"""Specifications by choice, their verdicts and weights; the figure and table say what they are; the sweep's configs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from ctxexp_lab.multiverse import joint, specifications
from ctxexp_lab.multiverse.specifications import CHOICES, differing_choices, frame, variance_share

from ctxexp import Results
from tests.composed import composed
from tests.sample_results import results_with, run_info

MEASURES = {
    "self_similarity": {"name": "self_similarity", "title": "Self-similarity"},
    "mev_centred": {"name": "max_explainable_variance", "title": "MEV", "variant": "centred"},
    "anisotropy": {"name": "anisotropy", "title": "Anisotropy"},
}
TRANSFORMS = {
    "none": {"name": "none"}, "center": {"name": "center"}, "unit_norm": {"name": "unit_norm", "centred": False},
    "unit_norm (centred=True)": {"name": "unit_norm", "centred": True},
}  # fmt: skip


def run(
    transform: str, control: str, pooling: str, weights: str = "mini", *, fall: float = 0.2, walk: int | None = None
) -> Results:
    """A run of five layers whose adjusted self-similarity falls by `fall`, by half of it where vectors are centred, and
    whose raw one rises as much; norms change neither. MEV stays. Sure to .01. `walk`: a random walk over layers that
    all measures have in common instead."""
    arguments = TRANSFORMS[transform]
    centred = bool(arguments.get("centred")) or transform == "center"
    own = 0.001 * (control != "none") + 0.002 * (pooling == "first")  # no two ways are quite the same
    fall = fall / 2 if centred else fall
    path = np.linspace(0, 1, 5) if walk is None else np.random.default_rng(walk).normal(size=5).cumsum()
    curves = {
        "self_similarity/raw": 0.9 + (fall + own) * path, "self_similarity/adjusted": 0.8 - (fall + own) * path,
        "mev_centred/size_matched_adjusted": 0.3 - (own + 0.0003 * list(TRANSFORMS).index(transform)) * path,
        "anisotropy/mean_cosine": 0.1 + 0.2 * path,
    }  # fmt: skip
    noise = 0.005 * np.random.default_rng(0).normal(size=(5, 200))
    replicates = {key: curve[:, None] + noise for key, curve in curves.items()}
    info = run_info(
        name="m", corpus="polysemy", n_layers=5, measures=MEASURES, control=control, details={"pooling": pooling},
        transform=transform, transform_arguments=arguments, weights=weights, n_resampled=200, resampled="document",
    )  # fmt: skip
    return results_with(curves, replicates=replicates, info=info)


def runs(weights: str = "mini", **planted: Any) -> list[tuple[str, Results]]:
    every = product(TRANSFORMS, ("none", "no first word"), ("mean", "first"))
    return [(" ".join((*chosen, weights)), run(*chosen, weights, **planted)) for chosen in every]


@pytest.mark.parametrize(("poolings", "n"), [(["mean"], 0), (["mean", "first"], 24)])
def test_runs_that_differ_in_three_choices_are_a_multiverse(poolings: list[str], n: int) -> None:
    every = product(["none", "center"], ["none", "no first word"], poolings)
    assert len(specifications([(" ".join(chosen), run(*chosen)) for chosen in every])) == n


def test_each_run_gives_a_specification_with_one_norm_under_cosines() -> None:
    found = specifications(runs())
    assert len(found) == 16 * 3 - 16
    assert sum(1 + len(one.also) for one in found) == 16 * 3
    assert [one.effect for one in found] == sorted(one.effect for one in found)
    counted = {kind: sum(one.verdict == kind for one in found) for kind in ("falls", "rises", "open")}
    assert counted == {"falls": 8, "rises": 8, "open": 16}  # adjusted, raw, MEV
    first = {name: found[0].options(name) for name in CHOICES}
    assert first["definition"] == ["Self-similarity"]
    assert first["baseline"] == ["as configured"]
    assert first["centring"] == ["as it is"]
    assert first["norm"] == ["as it is", "normalized"]
    assert found[0].effect == pytest.approx(-0.203)
    assert found[0].low < -0.203 < found[0].high
    assert set(differing_choices(found)) == {
        "definition",
        "centring",
        "norm",
        "first position",
        "pieces of a word",
        "baseline",
    }
    assert differing_choices(found)["centring"] == ["as it is", "centred"]
    assert frame(found).norm[0] == "as it is or normalized"


def test_numbers_that_differ_a_little_are_kept_apart() -> None:
    a, b = run("none", "none", "mean"), run("unit_norm", "none", "mean")
    b.by_key[next(iter(b.by_key))].value[0] += 1e-4
    rest = [("x", run("center", "no first word", "first"))]
    assert len(specifications([("a", a), ("b", b), *rest])) == 3 * 3 - 1


def test_a_choices_weight_is_its_share_of_variance() -> None:
    found = [one for one in specifications(runs()) if one.choices[-1] == "as configured"]
    assert variance_share(found, "centring") == pytest.approx(1, abs=1e-3)
    assert variance_share(found, "norm") == pytest.approx(0, abs=1e-9)
    assert np.isnan(variance_share(found[:1], "definition"))


def test_a_finding_exceeds_shuffled_layers_and_the_twin() -> None:
    """Raw self-similarity left out, every curve falls steadily: no other of the 20 pairs of layers falls as much."""
    down = [(label, without_raw(results)) for label, results in runs()]
    twins = [(label, without_raw(results)) for label, results in runs("untrained", fall=0.001)]
    found = joint([*down, *twins])
    median, share, against, share_against = found.statistics
    effects = [one.effect for one in specifications(down)]
    assert median.value == pytest.approx(np.median(effects))
    assert (median.p, median.draws) == (1 / 20, 20)
    assert median.low < median.value < median.high
    assert share.value == pytest.approx(8 / 24)
    assert share.p == pytest.approx(10 / 20)  # as many fall between any two layers
    assert against.null == "untrained twin"
    assert against.expected == pytest.approx(np.median([one.effect for one in specifications(twins, untrained=True)]))
    assert share_against.expected == 0
    assert found.null.shape == (20, 24)
    assert found.null[0] == pytest.approx(sorted(effects))


@pytest.mark.nightly
def test_equivalent_ways_count_as_one_finding() -> None:
    """All ways following one random walk over five layers, .05 is reached in 5% of walks, or a little more (layers
    beside each other are alike, as the note says): not in the half that fall."""
    few = [label for label, _ in runs()][:6]
    found = []
    for seed in range(60):
        together = joint([(label, without_raw(results)) for label, results in runs(walk=seed) if label in few])
        found.append((together.statistics[0].value < 0, together.statistics[0].p <= 0.05))
    falls, certain = np.mean(found, axis=0)
    assert falls > 0.3
    assert certain < 0.25
    alike = joint([*runs(), *runs("untrained")])
    assert alike.statistics[2].p == 1  # never below its twin


def without_raw(results: Results) -> Results:
    kept = (results.frame.measure != "self_similarity") | (results.frame.statistic != "raw")
    return replace(results, frame=results.frame[kept])


def test_the_experiment_composes_and_sweeps_over_the_choices() -> None:
    config = composed("experiment=multiverse", "transform=center_unit_norm")
    assert set(config.metric) == {
        "self_similarity", "max_explainable_variance", "max_explainable_variance_centred",
        "max_explainable_variance_released",
    }  # fmt: skip
    assert (config.transform.name, config.transform.arguments) == ("unit_norm", {"centred": True})
    assert not config.sink
    variances = [config.metric[name].arguments for name in config.metric if name.startswith("max_")]
    assert [told["baselines"] for told in variances] == [["run", "size_matched"]] * 3
