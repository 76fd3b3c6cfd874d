"""What a file names is bounded before memory is asked for: layers, datasets, lines, widths, and splits before files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from ctxexp import CtxexpError, Results
from ctxexp.models import ElmoNetwork, WordVectors
from ctxexp.models.elmo.files import layout, read_weights, write_weights
from tests import tiny_models
from tests.bounded import UnboundedError, bounded
from tests.made import results_with, told
from tests.shipped import text

ELMO = tiny_models.elmo_options(filters=((1, 3),), n_layers=1)


def test_a_call_without_bounds_is_noticed() -> None:
    bounded(lambda: bytes(1 << 20))
    with pytest.raises(UnboundedError, match="MemoryError"):
        bounded(lambda: bytes(1 << 40))
    with pytest.raises(UnboundedError, match=r"\d s of a processor|worked on and on"):
        bounded(lambda: sum(range(10**7)), seconds=0.05)


def test_a_few_measured_layers_are_still_read(tmp_path: Path) -> None:
    info = told(n_layers=3, layers=(0, 2))
    results_with({"self_similarity/raw": np.array([0.1, np.nan, 0.3])}, info=info).save(tmp_path)
    np.testing.assert_array_equal(Results.load(tmp_path).by_name["self_similarity/raw"], [0.1, np.nan, 0.3])


@pytest.mark.parametrize("how", ["nothing", "chunks"])
def test_weights_that_an_elmo_file_does_not_hold_are_refused(tmp_path: Path, how: str) -> None:
    """The declared 20 GB would be asked for, and read as noughts."""
    path, name = tmp_path / "weights.hdf5", "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"
    write_weights(path, ElmoNetwork(ELMO).state_dict(), ELMO)
    options = replace(ELMO, cells=12_500, projection=50_000)
    with h5py.File(path, "a") as file:
        for each, shape in layout(options).items():
            if each in file and file[each].shape == shape:
                continue
            if each in file:
                del file[each]
            file.create_dataset(each, shape, "<f4", chunks=how == "chunks" or None)
        assert name in file
    with pytest.raises(CtxexpError, match=r"weights.hdf5 doesn't hold the [\d,]+ bytes of .*; copy"):
        bounded(lambda: read_weights(path, options))


def test_packed_weights_are_read(tmp_path: Path) -> None:
    path = tmp_path / "weights.hdf5"
    write_weights(path, {k: 0 * v for k, v in ElmoNetwork(ELMO).state_dict().items()}, ELMO)
    with h5py.File(path, "a") as file:
        for name, shape in layout(ELMO).items():
            del file[name]
            file.create_dataset(name, data=np.zeros(shape, np.float32), compression="gzip", compression_opts=9)
    assert all(not value.any() for value in read_weights(path, ELMO).values())


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    """A gigabyte in one line: a hole in a file."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"the 1\n")
    os.truncate(path, 1 << 30)
    with pytest.raises(CtxexpError, match="line 2: this looks like UTF-16, or like no text"):
        bounded(lambda: text(path=str(path)), memory=1 << 28)
    with pytest.raises(CtxexpError, match=r"line 2 has more than 67,108,864 bytes|line 2: expected a word and 1 num"):
        bounded(lambda: WordVectors.read(path), memory=1 << 28)


@pytest.mark.parametrize("head", ["2 99999999999999999", f"2 {'9' * 5000}", f"{'9' * 5000} 3", "2 10000001"])
def test_a_header_of_absurd_numbers_is_refused(tmp_path: Path, head: str) -> None:
    (tmp_path / "v.txt").write_text(f"{head}\nriver 1 2 3\nbank 1 2 3\n")
    with pytest.raises(CtxexpError, match=r"v.txt: line 1: the header says '[\d ]+'; expected 1 to"):
        bounded(lambda: WordVectors.read(tmp_path / "v.txt"))
