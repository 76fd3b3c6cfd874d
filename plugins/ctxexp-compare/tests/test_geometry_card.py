"""The card says what the run's numbers say, and nothing else."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ctxexp_compare.model_card import card, write

from ctxexp import Results
from ctxexp.results import RunInfo
from tests.sample_results import results_with, run_info

MEASURES = {
    "anisotropy": {"name": "anisotropy", "main": "mean_cosine", "title": "Anisotropy", "unit": "cosine"},
    "self_similarity": {
        "name": "self_similarity",
        "main": "raw",
        "title": "Self-similarity",
        "unit": "cosine",
        "definition": "D1",
    },
    "mev_released": {"name": "max_explainable_variance", "title": "MEV", "unit": "share", "variant": "released"},
    "word_norm": {"name": "word_norm", "title": "Length of word vectors", "unit": "l2 norm"},
    "rogue": {"name": "rogue_dimensions", "title": "Rogue dimensions", "unit": "share"},
}
VALUES = np.array([0.5, 0.6, 0.3, 0.2])


def run(**info: Any) -> Results:
    rng = np.random.default_rng(0)
    cosine = np.array([0.1, 0.2, 0.55, 0.7])
    curves = {
        "anisotropy/mean_cosine": cosine, "self_similarity/raw": VALUES,
        "self_similarity/raw_ci_low": VALUES - 0.01, "self_similarity/raw_ci_high": VALUES + 0.01,
        "self_similarity/baseline": cosine, "mev_released/raw": np.array([0.1, 0.2, 0.3, 0.4]),
        "word_norm/raw": np.array([1.0, 1.1, 30.0, 1.0]), "word_norm/median": np.ones(4),
        "word_norm/sd": np.array([0.1, 0.1, 9.0, 0.1]), "rogue/top_1": np.array([0.1, 0.2, 0.93, 0.1]),
    }  # fmt: skip
    replicates = {"self_similarity/raw": VALUES[:, None] + 0.005 * rng.normal(size=(4, 200))}
    said = {"title": "tiny", "n_layers": 4, "measures": MEASURES, "n_words": 40, "n_resampled": 30}
    said |= {"resampled": "sentence", "unknown": 5, "pieces": 100, "dtype": "bfloat16"}
    return results_with(curves, replicates=replicates, info=run_info(**{**said, **info}))


def test_best_layers_have_intervals_and_a_lead_over_the_last() -> None:
    best = {line.partition(":")[0]: line for line in card(run()).extremes}
    assert "the last layer is the highest" in best["Anisotropy"]
    line = best["Self-similarity"]
    assert "highest in layer 1, 0.600 [0.590, 0.610], lowest in layer 3, 0.200 [0.190, 0.210]" in line
    assert "; 0.400 [0.3" in line
    assert line.endswith("] above the last")
    assert not any("MEV" in name for name in best)  # a variant: only in the JSON


def test_warnings_are_one_line_each_and_only_where_they_hold() -> None:
    said = card(run()).warnings
    assert "in layers 2 to 3 the cosine of unrelated words is 0.550 to 0.700: read a cosine only against that" in said
    starts = ("5.0% of the pieces are unknown", "only 40 words", "only 30 sentences", "computed in bfloat16", "a few")
    assert all(any(line.startswith(start) for line in said) for start in starts)
    quiet = run(n_words=500, n_resampled=500, unknown=0, dtype="float32")
    quiet.by_key[next(iter(quiet.by_key))].value[:] = 0.1
    quiet.by_key[next(key for key in quiet.by_key if key.statistic == "sd")].value[:] = 0.1
    assert card(quiet).warnings == []


def test_files_hold_every_curve_and_the_table_its_chance_levels(tmp_path: Path) -> None:
    made = card(run(), "my model")
    text, data, picture = write(made, tmp_path)
    shown = text.read_text()
    assert shown.startswith("## Geometry of the word vectors\n\n![Curves of my model by layer](card.svg)")
    assert "0.500 (0.100)" in shown
    held = json.loads(data.read_text())
    assert held["curves"]["self_similarity/raw"]["value"] == VALUES.tolist()
    assert held["curves"]["mev_released/raw"]["value"] == [0.1, 0.2, 0.3, 0.4]
    assert (held["format"], held["command"]) == (1, "")
    assert held["findings"] == made.findings
    assert made.findings[0].startswith("Self-similarity in my model: ")
    assert f"**In words**\n\n- {made.findings[0]}" in shown
    assert picture.read_text().startswith("<?xml")


def test_contextuality_leads_with_its_interval_and_range_beside_it() -> None:
    value = np.array([0.0, 0.2, 0.5, 0.4])
    curves = {"raw": value, "raw_ci_low": value - 0.01, "raw_ci_high": value + 0.01}
    curves |= {"lowest": value - 0.02, "highest": value + 0.03}
    mix = replace(RunInfo().mix, weights="bands", words=(12, 10, 3), filled=(True, True, False), wanted=1500)
    measure = {"name": "contextuality", "main": "raw", "title": "Contextuality", "unit": "share", "over": "word"}
    info = run_info(title="tiny", n_layers=4, measures={"contextuality": measure}, mix=mix)
    made = card(results_with({f"contextuality/{name}": curve for name, curve in curves.items()}, info=info))
    name = "Contextuality (2 of 3 bands)"
    shown = re.sub(" +", " ", made.markdown("card.svg"))
    assert f"| layer | {name} |" in shown
    assert "| 2 | 0.500 |" in shown
    assert made.extremes[0].startswith(f"{name}: highest in layer 2, 0.500 [0.490, 0.510], lowest in layer 0")
    assert any("2 of 3 bands" in line and "1,500 words more" in line for line in made.warnings)
    assert "2 of 3 bands" in made.findings[0]
    later = run(measures={**MEASURES, "contextuality": measure})  # typed behind others, it leads nevertheless
    both = results_with({**later.by_name, "contextuality/raw": value}, info=later.info)
    assert [key.measure for key in card(both).keys[:3]] == ["contextuality", "self_similarity", "anisotropy"]
