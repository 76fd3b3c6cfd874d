"""Hub names, folders and files in place of a group's names: read as the option that takes them, and as nothing else."""

from __future__ import annotations

import json
import logging
import os
import shutil
from pathlib import Path

import pytest

from ctxexp.command import configured
from ctxexp.command.compose import as_override
from ctxexp.command.options import find_location
from ctxexp.jobs import sweep
from tests.composed import config_of, run_command_line
from tests.shipped import mini

SENTENCES = ["The bank of the river was wet.", "The bank raised the rate.", "A river runs past the old bank."]
FAST = ["metric=anisotropy", "min_contexts=2", "bootstrap=0", "device=cpu", "sink=none"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a model, whose files each test links."""
    return shutil.copytree(mini("gpt2"), tmp_path_factory.mktemp("model") / "gpt2")


@pytest.fixture
def folder(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a text, a table and two folders of models in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    (tmp_path / "mine.txt").write_text("\n".join(SENTENCES))
    (tmp_path / "rows.jsonl").write_text(json.dumps({"text": SENTENCES[0]}))
    (tmp_path / "texts").mkdir()
    shutil.copy(tmp_path / "mine.txt", tmp_path / "texts")
    for name in ("gpt", "gpt \u00fc:7", "b\u00e9rt, 2"):
        shutil.copytree(model, tmp_path / name, copy_function=os.link)
    (tmp_path / "results").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("group", "text", "option"),
    [
        ("model", "bert-base-uncased", "huggingface"), ("model", "gpt2-xl", "huggingface"),
        ("model", "HuggingFaceTB/SmolLM2-135M", "huggingface"), ("model", "gpt", "huggingface"),
        ("model", "./gpt", "huggingface"), ("model", "a.gguf", "huggingface"), ("model", "~/model", "huggingface"),
        ("model", "b\u00e9rt, 2", "huggingface"),
        ("model", "minilm-l6", "huggingface"), ("model", "no/such/model", "huggingface"),
        ("dataset", "mine.txt", "text"), ("dataset", "nope.txt", "text"), ("dataset", "texts", "text"),
        ("dataset", "a/b.text.gz", "text"), ("dataset", "/no/where", "text"), ("dataset", "~/x.txt", "text"),
        ("dataset", "rows.jsonl", "text"), ("dataset", "Salesforce/wikitext", "huggingface"),
        ("dataset", "a.csv.gz", "text"), ("dataset", "my-corpus", "huggingface"),
        # names, and what is nearly one
        ("model", "bert", ""), ("model", "bret", ""), ("model", "gpt-2", ""), ("model", "BERT", ""),
        ("model", "random-words", ""), ("model", "word-vector", ""),
        ("model", "nothing", ""), ("model", "", ""), ("model", "a b-c", ""), ("model", "model=x", ""),
        ("dataset", "sts-b", ""), ("dataset", "sick-r", ""), ("dataset", "polysmy", ""), ("dataset", "nope", ""),
        ("metric", "a/b", ""), ("transform", "mine.txt", ""),
    ],
)  # fmt: skip
def test_what_is_a_location(group: str, text: str, option: str, folder: Path) -> None:
    assert find_location(group, text) == option


@pytest.mark.parametrize(
    ("word", "override"),
    [
        ("bert", "model=bert"), ("bert-base-uncased", "model=bert-base-uncased"), ("gpt", "model=gpt"),
        ("bert,gpt2-medium", "model=bert,gpt2-medium"), ("b\u00e9rt, 2", "model='b\u00e9rt, 2'"),
        ("mine.txt", "dataset=mine.txt"), ("rows.jsonl", "dataset=rows.jsonl"), ("texts", "dataset=texts"),
        ("a/nope.txt", "dataset=a/nope.txt"), ("org/name", "model=org/name"), ("~/x.txt", "dataset='~/x.txt'"),
        *((word, word) for word in ("bret", "results", "polysemy", "seed=1", "~seed", "+a=1", "whitening", "",
                                    "a=b.txt", "bert,mine.txt", "\udcff", "~no-such-user/x", "hydra/launcher=joblib")),
    ],
)  # fmt: skip
def test_a_word_of_its_own(word: str, override: str, folder: Path) -> None:
    assert as_override(word) == override


def test_a_location_is_its_long_form(folder: Path) -> None:
    for place in ("./gpt \u00fc:7", "b\u00e9rt, 2", "~/gpt", "a/b"):
        for model in (config_of([place, "mine.txt"]).model, configured(place, "mine.txt").model):
            assert (model.name, model.arguments["checkpoint"]) == ("huggingface", place), place


def test_a_sweep_takes_names_and_folders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "write_summary", lambda *a, **k: [])
    assert run_command_line(["-m", "model=bert,'./gpt \u00fc:7'", "mine.txt", "tracking.folder=a", *FAST]) == 0
    jobs = sorted((folder / "a/results").glob("*/0*"))
    runs = [json.loads((job / "run.json").read_text()) for job in jobs]
    assert [run["name"].partition(" (")[0] for run in runs] == ["bert", "gpt \u00fc:7"]
    assert [run["overrides"][0] for run in runs] == ["model=bert", "model='./gpt \u00fc:7'"]


def test_a_run_says_what_a_location_is_read_as(
    folder: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("ctxexp"), "handlers", [caplog.handler])  # whatever command came before
    with caplog.at_level(logging.INFO, "ctxexp"):
        assert run_command_line(["bert-base-uncased", "--cfg", "job"]) == 0
    assert "bert-base-uncased is read as model=huggingface model.checkpoint=bert-base-uncased" in caplog.messages
    assert "checkpoint: bert-base-uncased" in capsys.readouterr().out
