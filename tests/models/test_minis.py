"""The small models that ship: whole, small, of like size, and knowing more than counts."""

from __future__ import annotations

import json

import pytest

from ctxexp.errors import ModelError
from ctxexp.models import minis


def test_folder_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(minis.FILES, "elmo", ("options.json", "gone.hdf5"))
    with pytest.raises(ModelError, match=r"mini 'elmo' lacks gone.hdf5 in .*: reinstall ctxexp, or train it with"):
        minis.folder("elmo")


@pytest.mark.parametrize("name", minis.FILES)
def test_shipped_models_are_small_and_know_more_than_counts(name: str) -> None:
    folder = minis.folder(name)
    assert max(p.stat().st_size for p in folder.iterdir()) <= 16 * 2**20
    held_out = json.loads((folder / "run.json").read_text())["held_out"]
    assert held_out["loss"] < held_out["unigram"] - 1.0


def test_shipped_models_store_as_many_parameters_within_five_percent() -> None:
    import h5py
    from safetensors.numpy import load_file

    counts = [sum(a.size for a in load_file(minis.folder(n) / "model.safetensors").values()) for n in ("bert", "gpt2")]
    sizes: list[int] = []
    with h5py.File(minis.folder("elmo") / "weights.hdf5") as file:
        file.visititems(lambda _, item: sizes.append(item.size) if isinstance(item, h5py.Dataset) else None)
    counts.append(sum(sizes))
    assert max(counts) / min(counts) < 1.05
