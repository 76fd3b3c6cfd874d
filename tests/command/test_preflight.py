"""What a run would fail at is said before torch or MLflow is loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ctxexp.command import Experiment
from ctxexp.errors import ConfigError
from ctxexp.models import options
from tests.composed import check_command, composed, registry_of


def test_what_can_run_has_no_problem() -> None:
    check_command([])
    check_command(["fit_on=train"])  # nothing is fitted
    check_command(["model=huggingface", "model.checkpoint=owner/name"])  # a hub id: not asked for here


@pytest.mark.parametrize("words", [["words.max_contexts=9"], ["one_pass.shards=4", "metric=self_similarity"]])
def test_a_text_beyond_memory_says_what_to_install(words: list[str]) -> None:
    """Without the plugin."""
    config = composed(*words, registry=registry_of())
    with pytest.raises(ConfigError, match=r"is for a text beyond memory; the plugin .*: in a clone pip install"):
        Experiment(config).check()


def test_a_device_that_cannot_be_is_refused_without_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def why(name: str) -> str:
        with pytest.raises(
            ConfigError, match=f"device={name}: this machine has none .*; use device=auto or device=cpu"
        ) as e:
            options.check_device(name)
        return str(e.value)

    monkeypatch.setattr(options, "version", lambda name: "2.13.0")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(options, "DEV", tmp_path)
    assert "there is no /dev/nvidia0 or its like" in why("cuda")
    assert "it is no Mac" in why("mps")
    (tmp_path / "nvidia0").touch()
    options.check_device("cuda:1")  # how many there are, torch says
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES hides them all" in why("cuda")
    monkeypatch.setattr(options, "version", lambda name: "2.13.0+cpu")
    assert "torch 2.13.0+cpu is built without CUDA" in why("cuda:1")
    monkeypatch.setattr(sys, "platform", "darwin")
    for name in ("mps", "cpu", "auto"):
        options.check_device(name)
