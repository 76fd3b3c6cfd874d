"""`ctxexp models`: what can be typed, with its size, and whether it is here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from huggingface_hub import constants

from ctxexp.command import registry
from ctxexp.models.listing import cached_models
from ctxexp.models.transformer.checkpoint import PUBLISHED_CHECKPOINTS
from tests.composed import run_command_line
from tests.hub_cache import put
from tests.shipped import mini

ORIGINAL = "elmo_2x4096_512_2048cnn_2xhighway"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "hub"


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    assert run_command_line(["models"]) == 0
    lines = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    assert max(map(len, lines)) <= 160
    cells = [re.split(r" {2,}", line.strip()) for line in lines if re.match(r"  \w", line)]  # not what is folded
    return {first: rest for first, *rest in cells}


def test_models_that_ship_and_those_of_papers(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = listed(capsys)
    assert {*registry().names("model")} == {typed.partition(" ")[0] for typed in lines}
    assert lines["bert"][1:] == ["here", "a small model that ships with ctxexp"]
    assert re.fullmatch(r"7\.\d MB", lines["bert"][0])
    assert lines["gpt2 weights=published"][:2] == ["548.0 MB", "not here"]
    assert lines["huggingface model.checkpoint=..."][0].startswith("All layers of any transformers")
    files = list(mini("bert").iterdir())
    paper = PUBLISHED_CHECKPOINTS["bert"]
    put(cache, paper.ids[0], paper.revision, *files)
    original = put(cache, "someone/elmo", "a" * 40)
    for part in ("options.json", "weights.hdf5"):
        (original / f"{ORIGINAL}_{part}").write_bytes(bytes(1500))
    put(cache, "someone/bert", "b" * 40, *files)
    put(cache, "someone/tokenizer", "c" * 40, *(file for file in files if "tokenizer" in file.name))
    lines = listed(capsys)
    assert lines["bert weights=published"] == [lines["bert"][0], "here", "google-bert/bert-base-cased of the hub"]
    assert lines["elmo weights=published"][:2] == ["1.5 kB", "here"]
    assert lines["someone/bert"][1:] == ["here", "in the hub's cache"]
    assert "someone/tokenizer" not in lines  # without weights it can't be measured
    assert [model.typed for model in cached_models()] == ["google-bert/bert-base-cased", "someone/bert"]
