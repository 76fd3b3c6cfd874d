"""Archives of arrays: one that isn't as long as it says is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ctxexp import Results
from ctxexp.errors import TrackingError
from ctxexp.files import read_npz
from tests.sample_results import results_with


def test_it_reads_what_numpy_writes(tmp_path: Path) -> None:
    arrays = {"a": np.arange(12.0).reshape(3, 4), "keys": np.array([["x", "yz"]]), "none": np.zeros((0, 5), np.int8)}
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "a.npz", **arrays)
        held = read_npz(tmp_path / "a.npz")
        assert held.keys() == arrays.keys()
        for name, array in arrays.items():
            np.testing.assert_array_equal(held[name], array)
            assert held[name].dtype == array.dtype


@pytest.mark.parametrize("damage", ["a short one", "no archive"])
def test_results_with_it_are_refused(tmp_path: Path, damage: str) -> None:
    results_with({"self_similarity/raw": np.arange(3.0)}, replicates={"self_similarity/raw": np.ones((3, 2))}).save(
        tmp_path
    )
    assert Results.load(tmp_path).replicates
    for path in tmp_path.glob("files.json"):
        path.unlink()
    path = tmp_path / "replicates.npz"
    path.write_bytes(b"PK" if damage == "no archive" else path.read_bytes()[:-9])
    with pytest.raises(TrackingError, match=r"no results.json in|is not a results file of ctxexp: .*replicates.npz: "):
        Results.load(tmp_path)
