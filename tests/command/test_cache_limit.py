"""What a config says of the cache."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ctxexp.command import Experiment
from ctxexp.vectors.cache import bytes_of
from tests.composed import composed


@pytest.mark.parametrize(
    ("given", "expected"), [("auto", 40 * 10**9), ("20", 20 * 10**9), ("0.5", 5 * 10**8), ("null", None)]
)
def test_a_number_stays_and_otherwise_the_disk_decides(
    given: str, expected: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**12, 0, 80 * 10**9))
    vectors = Experiment(composed(f"cache.folder={tmp_path}", f"cache.limit_gb={given}")).vectors
    assert (bytes_of(vectors.limit_bytes, vectors.cache), vectors.cache) == (expected, tmp_path)
    assert composed().cache.limit_gb == "auto"
