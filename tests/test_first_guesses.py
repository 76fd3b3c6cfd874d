"""What someone types who has read the README alone: each guess does the thing, or a line of the answer names it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from functools import cache as computed_once
from functools import partial
from pathlib import Path

import pytest

import ctxexp
from ctxexp.command.cli import run_command_line
from ctxexp.errors import CtxexpError
from ctxexp.jobs import execute, sweep
from ctxexp.models import minis

SENTENCES = ["The bank of the river was wet.", "The bank raised the rate.", "A river runs past the old bank."]
FAST = ["metric=anisotropy", "min_contexts=2", "bootstrap=0", "device=cpu", "sink=none"]

DONE = [  # the words, and what is printed
    ("bert mine.txt", "bert, mine.txt: layers 0 to 4"),
    ("mine.txt", "bert, mine.txt: layers 0 to 4"),
    ("dataset=mine.txt", "bert, mine.txt: layers 0 to 4"),
    ("dataset.path=mine.txt", "bert, mine.txt: layers 0 to 4"),
    ("dataset.path=~/mine.txt", "bert, mine.txt: layers 0 to 4"),
    ("path/to/model mine.txt", "model, mine.txt: layers 0 to 4"),
    ("run model=path/to/model texts", "model, texts: layers 0 to 4"),
    ("-m bert,path/to/model mine.txt", "  model"),
    ("models", "ctxexp OWNER/NAME, any other of the hub"),
    ("gpt2 --help", "model=gpt2   All layers of GPT-2"),
    ("bert-base-uncased --help", "bert-base-uncased is read as model=huggingface model.checkpoint=bert-base-uncased"),
]
NAMED = [  # the words, and what the answer names
    ("bert-base-uncased mine.txt", "no checkpoint bert-base-uncased"),
    ("model=bert-base-uncased mine.txt", "not in the hub's cache"),
    ("HuggingFaceTB/SmolLM2-135M mine.txt", "no checkpoint HuggingFaceTB/SmolLM2-135M"),
    ("https://huggingface.co/roberta-base mine.txt", "no checkpoint roberta-base"),
    ("model=distilgpt2", "model=huggingface model.checkpoint=distilgpt2"),
    ("bret", "did you mean model=bert"),
    ("nope.txt", "no such file or folder: nope.txt"),
    ("bert no/such/model", "model is given twice"),
    ("mine.txt texts", "two of one dataset; leave one out"),
    ("bert gpt2", "sweep with -m model=NAME,NAME"),
    ("model=bert model=gpt2", "sweep with -m model=NAME,NAME"),
    ("model=bert,gpt2", "a sweep needs -m"),
    ("--model bert", "did you mean model=NAME?"),
    ("--text mine.txt", "did you mean dataset=FILE?"),
    ("text=mine.txt", "did you mean dataset=FILE?"),
    ("bert output=here", "did you mean tracking.folder=FOLDER?"),
    ("bert layers=[0]", "did you mean 'model.layers'?"),
    ("bert metric=self-similarity", "did you mean 'self_similarity'"),
    ("bert untrained", "did you mean weights=untrained?"),
    ("dataset=imdb", "dataset=huggingface dataset.path=imdb"),
    ("datasets", "ctxexp --help dataset lists them"),
    ("measure bert", "did you mean ctxexp run?"),
    ("list", "did you mean ctxexp models?"),
    ("version", "did you mean ctxexp --version?"),
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a model, whose files each test links."""
    return shutil.copytree(minis.folder("gpt2"), tmp_path_factory.mktemp("model") / "gpt2")


@pytest.fixture(autouse=True)
def folder(cache: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, a home too: a text, a folder of texts and one of a model; no hub, and nothing is drawn."""
    from huggingface_hub import constants

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CTXEXP_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    for module, name in ((execute, "run_figures"), (execute, "write_report"), (sweep, "write_summary")):
        monkeypatch.setattr(module, name, lambda *args, **keywords: [])
    (tmp_path / "texts").mkdir()
    for place in (tmp_path, tmp_path / "texts"):
        (place / "mine.txt").write_text("\n".join(SENTENCES))
    (tmp_path / "path" / "to").mkdir(parents=True)
    shutil.copytree(model, tmp_path / "path" / "to" / "model", copy_function=os.link)
    return tmp_path


@pytest.mark.parametrize(("words", "printed"), DONE)
def test_it_is_done(words: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    verbs = words == "models" or "--help" in words
    assert run_command_line([*words.split(), *([] if verbs else FAST)]) == 0
    out = capsys.readouterr().out
    assert printed in out
    assert verbs or "mean_cosine" in out


@pytest.mark.parametrize(("words", "named"), NAMED)
def test_it_is_named(words: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([*words.split(), *FAST]) != 0
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("error: "))
    assert named in line


def measured(*args: object, **keywords: object) -> ctxexp.Results:
    return ctxexp.measure(*args, options=FAST, progress=False, **keywords)  # type: ignore[arg-type]


def in_memory(**keywords: object) -> ctxexp.Results:
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = (kind.from_pretrained("path/to/model") for kind in (AutoModel, AutoTokenizer))
    return measured(model, SENTENCES, **({"tokenizer": tokenizer} if keywords.pop("tokenizer", True) else {}))


@computed_once
def of_bert() -> ctxexp.Results:
    return measured("bert", "mine.txt")


def saved() -> ctxexp.Results:
    results = of_bert()
    results.save("x.csv")
    assert Path("x.csv").read_text().startswith("measure,")
    results.save("x")
    return ctxexp.load("x")


PYTHON: list[tuple[str, Callable[[], ctxexp.Results], str]] = [  # what is typed, and the title of the results
    ('measure("bert", "mine.txt")', of_bert, "bert"),
    ('measure("bert", ["The bank ...", ...])', partial(measured, "bert", SENTENCES), "bert"),
    ('measure("path/to/model", "mine.txt")', partial(measured, "path/to/model", "mine.txt"), "model"),
    ('measure(Path("path/to/model"), Path("mine.txt"))', partial(measured, Path("path/to/model"), Path("mine.txt")),
     "model"),
    ("measure(model, text, tokenizer=tokenizer)", in_memory, "model"),
    ('results.save("x.csv"); load("x")', saved, "bert"),
]  # fmt: skip
REFUSED: list[tuple[str, Callable[[], object], str]] = [
    ("measure(model, text)", partial(in_memory, tokenizer=False), r"ctxexp\.measure\(model, text, tokenizer=tokenizer"),
    ('measure(["gpt2", "bert"])', partial(measured, ["gpt2", "bert"]), r"expected one, got 2; .* ctxexp\.compare\("),
    ('measure("owner/name", "mine.txt")', partial(measured, "owner/name", "mine.txt"), "no checkpoint owner/name"),
    ('measure("brt")', partial(measured, "brt"), "did you mean 'bert'"),
    ('measure("gpt2", 5)', partial(measured, "gpt2", 5), "expected sentences, a file's path or a Corpus, got int"),
    ('measure("gpt2", "A sentence as it is.")', partial(measured, "gpt2", "A sentence as it is."),
     r"sentences are a list: ctxexp\.measure\(model, \['A sentence as it is\.'\]\)"),
    ('measure("gpt2", checkpoint="x")', partial(measured, "gpt2", checkpoint="x"), r'options=\["model\.checkpoint='),
    ('measure("gpt2", options="a=b")', lambda: ctxexp.measure("gpt2", SENTENCES, options="a=b"), "no config key 'a'"),
    ('load("nope")', partial(ctxexp.load, "nope"), "no folder nope: expected a run's"),
    ('compare("bert", "gpt2")', lambda: ctxexp.compare("bert", "gpt2"),  # type: ignore[arg-type]
     r"expected results, got str; measure each first: ctxexp\.compare\("),
    ('results.plot("nope")', lambda: of_bert().plot("nope"), r"no measure 'nope' .*anisotropy"),
    ('results.curve("anisotropi")', lambda: of_bert().curve("anisotropi"),
     "did you mean 'anisotropy'"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "call", "title"), PYTHON, ids=[typed for typed, *_ in PYTHON])
def test_it_is_done_in_python(typed: str, call: Callable[[], ctxexp.Results], title: str) -> None:
    results = call()
    assert results.info.title == title
    assert results.curve("anisotropy").size == 5
    assert ctxexp.compare(results, results).frame.run.nunique() == 2


@pytest.mark.parametrize(("typed", "call", "named"), REFUSED, ids=[typed for typed, *_ in REFUSED])
def test_it_is_named_in_python(typed: str, call: Callable[[], object], named: str) -> None:
    with pytest.raises(CtxexpError) as caught:
        call()
    assert re.search(named, str(caught.value))
    assert "\n" not in str(caught.value)


def test_there_are_as_many_as_were_asked_for() -> None:
    assert len({*DONE, *NAMED}) + len(PYTHON) + len(REFUSED) >= 25
