"""What a config says of the cache, and what a sweep keeps in it while it runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from ctxexp.command import Experiment
from ctxexp.command.application import SweepCallback
from ctxexp.vectors.cache import note_read, running_sweep_keys
from tests.composed import composed


@pytest.mark.parametrize(
    ("given", "expected"), [("auto", 40 * 10**9), ("20", 20 * 10**9), ("0.5", 5 * 10**8), ("null", None)]
)
def test_a_number_stays_and_otherwise_the_disk_decides(
    given: str, expected: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**12, 0, 80 * 10**9))
    vectors = Experiment(composed(f"cache.folder={tmp_path}", f"cache.limit_gb={given}", "tracking.sweep=s1")).vectors
    assert (vectors.limit_bytes, vectors.cache, vectors.sweep) == (expected, tmp_path, "s1")
    assert composed().cache.limit_gb == "auto"


def test_vectors_are_kept_while_the_sweep_runs(tmp_path: Path) -> None:
    """By the process that drives it, though no process of a job lives on."""
    config = OmegaConf.create(
        {
            "cache": {"folder": str(tmp_path / "cache")},
            "tracking": {"folder": str(tmp_path / "runs"), "sweep": "s1"},
            "sink": {},
            "hydra": {"job": {}, "overrides": {"task": [], "hydra": []}, "sweep": {"dir": str(tmp_path / "sweep")}},
        }
    )
    callback = SweepCallback()
    callback.on_multirun_start(config)
    note_read(tmp_path / "cache", "s1", "a" * 32)
    assert running_sweep_keys(tmp_path / "cache") == {"a" * 32}
    callback.on_multirun_end(config)
    assert running_sweep_keys(tmp_path / "cache") == set()
