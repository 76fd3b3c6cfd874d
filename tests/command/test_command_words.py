"""Words of a verb: what a signature makes of them, what it refuses, and the docstring as help."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import jsonschema
import numpy as np
import pandas as pd
import pytest

from ctxexp.command import registry
from ctxexp.command.verb import Verb
from ctxexp.errors import ConfigError
from ctxexp.report import Document, Table, terminal


class Kept:
    """A verb that keeps what it got."""

    def __init__(self) -> None:
        self.got = ()

    def typed(
        self,
        action: Literal["show", "clear"] = "show",
        *files: Path,
        folds: int = 5,
        rate: float = 0.5,
        some: list[str] | None = None,
        out: Path = Path("report"),
        uri: str | None = None,
        size: str | int = "all",
        whole: bool = False,
    ) -> int:
        """Do it well.

        It is done whatever
        comes.

        action: what to do
        folds: of the data: how many,
            at least two
        whole: nothing
            is left out
        """
        self.got = (action, files, folds, rate, some, out, uri, size, whole)
        return 3


def test_words_become_what_the_signature_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    verb = Kept()
    words = ["clear", "a.py", "~/b", "rate=1e-4", "some=[a,b]", "out=~/x=y", "uri=2026-11-21", "size=7", "whole=true"]
    assert Verb("verb", verb.typed)(words) == 3
    files = (Path("a.py"), Path("/home/somebody/b"))
    assert verb.got == ("clear", files, 5, 1e-4, ["a", "b"], Path("/home/somebody/x=y"), "2026-11-21", 7, True)
    assert Verb("verb", verb.typed)(["uri=null", "rate=2", "size=1.5", "some=null"]) == 3
    assert verb.got == ("show", (), 5, 2.0, None, Path("report"), None, "1.5", False)
    Verb("verb", verb.typed)(["uri=0123456789", "out=12", "size=[a"])
    assert verb.got[5:8] == (Path("12"), "0123456789", "[a")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("fold=2", "ctxexp verb has no argument 'fold'; did you mean 'folds'? (folds, out, rate, replace, size, some"),
        ("folds=x", "folds='x': expected int, got str"),
        ("rate=.nan", "rate=nan: expected a finite number"),
        ("whole=maybe", "whole='maybe': expected bool, got str"),
        ("some=a", "some='a': expected list[str] | null, got str; a list has brackets, even of one: some=[a]"),
        ("some=[a", "some=[a: the value can't be read; quote it"),
        ("claer", "action='claer': no such choice; did you mean 'clear'? (clear, show)"),
        ("--folds", "'--folds': expected key=value; ctxexp verb --help says which"),
    ],
)
def test_an_unknown_word_is_refused_in_a_sentence(word: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Verb("verb", Kept().typed)([word])
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def found(word: str, *, out: Path = Path("found"), bad: bool = False) -> Document:
    """Look for it.

    word: what to look for
    out: the folder for found.csv
    """
    print(f"looking for {word}")
    numbers = pd.DataFrame({"word": [word, word], "cosine": [0.1 + 0.2, np.nan]})
    table = Table("Found", numbers, ["word", "cosine"], [[word, "0.30"], [word, ""]], ["a note"])
    return Document([f"{word} is found"], {"found": table}, status=int(bad))


def test_an_answer_in_the_default_folder_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for word in ("bank", "river", "tree"):
        assert Verb("found", found)([word]) == 0
    assert Verb("found", found)(["sea", "replace=true"]) == 0
    for word, folder in {"sea": "found", "river": "found-2", "tree": "found-3"}.items():
        assert word in Path(folder, "found.csv").read_text()


def test_a_document_is_printed_and_written_or_given_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verb = Verb("found", found)
    assert verb(["bank", f"out={tmp_path}", "bad=true"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "looking for bank"
    files = [str(tmp_path / f"found.{kind}") for kind in ("csv", "md", "tex")]
    assert lines[-4:] == ["bank is found", *files]
    with pytest.raises(ConfigError, match=f"{tmp_path} is there already, and is kept"):
        verb(["bank", f"out={tmp_path}", "json=true"])
    assert capsys.readouterr().out == ""  # before any work
    assert verb(["bank", f"out={tmp_path}", "json=true", "replace=true"]) == 0
    told = capsys.readouterr()
    assert told.err == "looking for bank\n"
    assert json.loads(told.out) == {
        "verb": "found",
        "status": 0,
        "sentences": ["bank is found"],
        "tables": {
            "found": {
                "title": "Found",
                "rows": [{"word": "bank", "cosine": 0.1 + 0.2}, {"word": "bank", "cosine": None}],
                "notes": ["a note"],
            }
        },
        "files": files,
    }
    assert "json=false" in verb.usage()


@pytest.mark.parametrize("words", ["models", "plugins", "cache", "conform transform/center"])
def test_the_json_of_a_verb_is_of_its_schema(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, *rest = words.split()
    status = Verb(name, registry().find("command", name).factory)([*rest, "json=true"])
    made = json.loads(capsys.readouterr().out)
    schema = json.loads(Path(terminal.__file__).with_name("document.schema.json").read_text())
    jsonschema.validate(made, schema)
    assert (made["verb"], made["status"]) == (name, status)
    assert made["sentences"] or made["tables"]
