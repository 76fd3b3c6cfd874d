"""The verb `probe`: the sweep that its words ask for."""

from __future__ import annotations

import pytest
from ctxexp_lab.probe import probe, probe_sweep


def test_a_model_by_name_is_measured_beside_its_twin() -> None:
    bert = ["-m", "model=bert", "metric.probe.labels=pos", "dataset=semcor", "weights=mini,untrained"]
    bert += ["control=none,alone", "metric=probe"]
    assert probe_sweep(["model=bert", "labels=pos", "dataset=semcor"]) == bert
    assert probe_sweep(["model=bert,minilm", "folds=3"]) == [
        "-m",
        "model=bert,minilm",
        "metric.probe.folds=3",
        "control=none,alone",
        "metric=probe",
    ]
    assert "control=none,alone" not in probe_sweep(["model=bert", "control=shuffled"])
    assert "weights=mini,untrained" not in probe_sweep(["model=gpt2", "weights=published"])


def test_a_model_without_its_key_and_the_default_one_have_their_twins_too() -> None:
    assert all("weights=mini,untrained" in probe_sweep(words) for words in ([], ["gpt2"], ["labels=pos"]))
    assert "weights=mini,untrained" not in probe_sweep(["minilm", "labels=pos"])


def test_help_names_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert probe("--help") == 0
    assert "labels" in capsys.readouterr().out
