"""What stands first: runs that differ in it, what is said of their numbers, the figure, the sweep's configs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ctxexp_lab.first_word import words
from ctxexp_lab.first_word.effects import AS_TOKENIZED, NO_FIRST, UNIT_NORM, condition_of, effects, frame

from ctxexp import Results
from tests.composed import composed
from tests.sample_results import results_with, run_info

ISS, STS = "intra_sentence_similarity", "sts"
SAID = {
    ISS: {"name": ISS, "variant": "", "title": "Intra-sentence similarity", "unit": "cosine", "definition": "cosine"},
    STS: {"name": STS, "variant": "", "title": "STS", "unit": "Spearman × 100", "main": "all", "definition": "rho"},
}
CONDITIONS: dict[str, dict[str, Any]] = {
    AS_TOKENIZED: {},
    "BOS first": {"prefix": "bos"},
    "a dot first": {"prefix": "."},
    UNIT_NORM: {"transform": "unit_norm"},
    NO_FIRST: {"control": "no first word"},
}


def made(measure: str, curve: list[float], condition: str = AS_TOKENIZED, *, model: str = "smol") -> Results:
    """A run of one measure: its curve, .2 less against the length-matched level, and replicates whose noise all runs
    share but for .01."""
    said = {
        "n_layers": len(curve), "measures": {measure: SAID[measure]}, "name": model, "title": model, "seed": 0,
        "fingerprint": measure, "bootstrap": 50, "corpus": "sts_b" if measure == STS else "polysemy",
    }  # fmt: skip
    choices = dict(CONDITIONS[condition])
    prefix = choices.pop("prefix", "as_tokenizer")
    said |= {"details": {"prefix": prefix, "checkpoint": model}, "encoder": f"{model} {prefix}", **choices}
    key = f"{measure}/{'all' if measure == STS else 'adjusted'}"
    noise = 5 * np.random.default_rng(1).normal(size=50)  # the same sentences are drawn in each
    own = 0.01 * np.random.default_rng(len(condition)).normal(size=50)
    replicates = {key: (np.array(curve)[:, None] + noise + own).astype(np.float32)}
    curves = {key: np.array(curve)}
    if measure == ISS:
        curves[f"{ISS}/size_matched_adjusted"] = np.array(curve) - 0.2
    return results_with(curves, {}, replicates=replicates, info=run_info(**said))


def runs(*, sunk: bool = True) -> list[tuple[str, Results]]:
    """smol's words are unlike in layers 1 and 2 as tokenized alone (if `sunk`), its sentences in layer 1; nothing moves
    plain; alone has one run."""
    found = [made(ISS, [0.3, 0.0, -0.01, 0.3] if sunk else [0.3, 0.21, 0.24, 0.31])]
    rest = {"BOS first": 0.0, "a dot first": -0.01, UNIT_NORM: 0.01, NO_FIRST: 0.005}
    found += [made(ISS, [0.3, 0.21 + by, 0.24 + by, 0.31], name) for name, by in rest.items()]
    found += [
        made(STS, [50, 9.9, 50, 36]),
        made(STS, [50, 51.5, 50, 36], NO_FIRST),
        made(STS, [50, 9.9, 50, 36], UNIT_NORM),
    ]
    found += [made(ISS, [0.2, 0.2], model="plain"), made(ISS, [0.2, 0.21], "BOS first", model="plain")]
    found.append(made(ISS, [0.2, 0.2], model="alone"))
    return [(f"{results.info.title} {i}", results) for i, results in enumerate(found)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"details": {"prefix": "bos"}, "control": "no first word"}, ""),  # two things at once
        ({"transform": "center"}, ""),
        ({"transform": "unit_norm (centred=True)", "transform_arguments": {"name": "unit_norm", "centred": True}}, ""),
        ({"details": {"prefix": "none"}}, "nothing first"),
        ({"details": {"prefix": "The"}}, "'The' first"),
    ],
)
def test_other_runs_are_other_conditions_or_none(options: dict[str, Any], expected: str) -> None:
    assert condition_of(run_info(**options)) == expected


def test_conditions_are_compared_with_untreated_text_on_shared_resamples() -> None:
    found = effects(runs())
    assert [(e.metric, e.model, e.condition) for e in found] == [
        *((ISS, "smol", condition) for condition in CONDITIONS),
        (ISS, "plain", AS_TOKENIZED), (ISS, "plain", "BOS first"),
        (STS, "smol", AS_TOKENIZED), (STS, "smol", NO_FIRST),  # a cosine of sentences sees no norm
    ]  # fmt: skip
    numbers = frame(found)
    assert numbers.columns.tolist() == [
        "measure", "model", "corpus", "condition", "layer", "value", "matched", "difference", "low", "high",
    ]  # fmt: skip
    bos = numbers[(numbers.condition == "BOS first") & (numbers.model == "smol")]
    np.testing.assert_allclose(bos.difference, [0, 0.21, 0.25, 0.01], atol=1e-6)
    np.testing.assert_allclose(bos.matched, bos.value - 0.2)
    assert (bos.high - bos.low).max() < 0.1  # the noise of 5 that both share is gone


def test_a_sink_is_named_where_untreated_text_differs() -> None:
    numbers = frame(effects(runs()))
    own = numbers[(numbers.model == "smol") & (numbers.measure == ISS)]
    assert words.sink_layers(own) == [1, 2]
    assert words.title(numbers) == "A known attention sink, not the words, moves the paper's measure in smol"
    apart = own.copy()
    apart.loc[apart.condition == NO_FIRST, "value"] += 0.1  # then leaving the word out does more than a prefix
    assert words.sink_layers(apart) == []
    assert words.title(apart) == "What stands first moves intra-sentence similarity of smol"
    still = frame(effects(runs(sunk=False)))
    assert words.title(still[still.measure == ISS]) == "What stands first moves no curve by more than .05"


@pytest.mark.parametrize(("dataset", "metric"), [("polysemy", ISS), ("sts_b_given", STS)])
def test_the_experiment_measures_what_its_data_has(
    dataset: str, metric: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STS", str(tmp_path))
    config = composed("experiment=first_word", f"dataset={dataset}", "model=bert")
    assert list(config.metric) == [metric]
    assert config.dataset.arguments.get("path") == (str(tmp_path) if metric == STS else None)
