"""What a run would fail at is said before torch or MLflow is loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ctxexp.errors import ConfigError
from ctxexp.models import choices
from tests.composed import check_command


def problems(*overrides: str, multirun: bool = False) -> list[str]:
    return check_command(overrides, multirun=multirun)


def test_what_can_run_has_no_problem() -> None:
    assert problems() == []
    assert problems("fit_on=train") == []  # nothing is fitted
    assert problems("model=huggingface", "model.checkpoint=owner/name") == []  # a hub id: not asked for here


def test_every_job_of_a_sweep_has_its_own() -> None:
    assert [p[:16] for p in problems("baseline.size=-5,100,-6", multirun=True)] == [
        "baseline size=-5",
        "baseline size=-6",
    ]


def test_a_device_that_cannot_be_is_refused_without_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def why(name: str) -> str:
        with pytest.raises(
            ConfigError, match=f"device={name}: this machine has none .*; use device=auto or device=cpu"
        ) as e:
            choices.check_device(name)
        return str(e.value)

    monkeypatch.setattr(choices, "version", lambda name: "2.13.0")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(choices, "DEV", tmp_path)
    assert "there is no /dev/nvidia0 or its like" in why("cuda")
    assert "it is no Mac" in why("mps")
    (tmp_path / "nvidia0").touch()
    choices.check_device("cuda:1")  # how many there are, torch says
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES hides them all" in why("cuda")
    monkeypatch.setattr(choices, "version", lambda name: "2.13.0+cpu")
    assert "torch 2.13.0+cpu is built without CUDA" in why("cuda:1")
    monkeypatch.setattr(sys, "platform", "darwin")
    for name in ("mps", "cpu", "auto"):
        choices.check_device(name)


def test_choices_that_no_model_takes_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    assert problems("model=bert,random_words", "weights=mini,untrained", "dtype=bfloat16", multirun=True) == []
    end = "= changes nothing for model 'random_words', which doesn't take it: jobs that differ in it alone are the same"
    assert sorted(caplog.messages) == [f"dtype{end}", f"weights{end}"]
    caplog.clear()
    assert problems("model=random_words", "device=cpu", "dtype=float32") == []
    assert caplog.messages == []
