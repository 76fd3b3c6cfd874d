"""The verbs of the command: who brings them, and those that have no test file of their own."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxexp import __version__
from ctxexp.errors import DiskError
from tests.composed import forget_plugin_files, run_command_line
from tests.sample_results import results

SHOUT = """
import ctxexp

def shout(*words):
    \"\"\"Say the words loudly. More is said elsewhere.\"\"\"
    if not words:
        raise ctxexp.CtxexpError("expected words; say some")
    print(*words, sep="! ", end="!\\n")
    return len(words)

@ctxexp.hookimpl
def register_commands(register):
    register("shout", shout)
"""


@pytest.fixture
def shout(tmp_path: Path) -> Iterator[str]:
    """`plugins=[...]` of a file with a verb; afterwards the registry is without it."""
    file = tmp_path / "mine.py"
    file.write_text(SHOUT)
    yield f"plugins=[{file}]"
    forget_plugin_files()


def test_a_plugin_brings_a_verb(shout: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([shout, "shout", "bank", "model=x"]) == 2
    assert capsys.readouterr().out == "bank! model=x!\n"
    assert run_command_line([shout, "shout"]) == 2
    assert capsys.readouterr().err == "error: expected words; say some\n"
    assert run_command_line([shout, "shuot"]) == 2
    assert "did you mean ctxexp shout?" in capsys.readouterr().err
    assert run_command_line(["--help"]) == 0
    assert re.search(r"\nResearch\n  .*\bshout\b", capsys.readouterr().out)
    assert run_command_line(["plugins", shout[len("plugins=[") : -1]]) == 0
    assert f"\n  {'ctxexp shout':<36} Say the words loudly." in capsys.readouterr().out


def test_a_control_is_a_control_and_a_sink_a_sink(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "odd.py"
    hooks = (f"@hookimpl\ndef register_{kind}s(register):\n    register('odd', dict)\n" for kind in ("control", "sink"))
    file.write_text("from ctxexp import hookimpl\n" + "".join(hooks))
    try:
        for kind in ("control", "sink"):
            assert run_command_line([f"plugins=[{file}]", f"{kind}=odd"]) != 0
            assert f"{kind} 'odd': expected a ctxexp.{kind.title()}, got dict" in capsys.readouterr().err
    finally:
        forget_plugin_files()


def test_run_is_the_verb_that_may_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for words in (["run", "--cfg", "job", "model=gpt2"], ["--cfg", "job", "model=gpt2"]):
        assert run_command_line(words) in (0, None)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert "name: gpt2" in shown[0]


def test_the_version_is_our_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--version"]) == 0
    assert capsys.readouterr().out == f"ctxexp {__version__}\n"


def test_report_compares_what_is_on_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for sweep, name, n_layers in (("one", "elmo", 2), ("two", "bert", 3), ("two", "gpt2", 4)):
        folder = tmp_path / "results" / sweep / name
        folder.mkdir(parents=True)
        results(name, n_layers).save(folder)
        (folder / "status.json").write_text(json.dumps({"status": "FINISHED", "name": name}))
    asked = ["report", f"folder={tmp_path}", f"out={tmp_path / 'new'}"]
    assert run_command_line(asked) == 0
    assert str(tmp_path / "new" / "report.html") in capsys.readouterr().out.splitlines()
    with (tmp_path / "new" / "comparison.csv").open(encoding="utf-8") as file:
        assert list(dict.fromkeys(row["run"] for row in csv.DictReader(file))) == ["bert", "gpt2"]
    assert run_command_line([*asked[:2], "sweep=three"]) == 2
    assert capsys.readouterr().err == f"error: no finished run of sweep three in {tmp_path / 'results'}\n"


@pytest.mark.parametrize(
    ("place", "reason"), [("file/below/it", "Not a directory"), ("locked/it", "Permission denied")]
)
def test_a_place_that_cannot_be_written_is_said_before_the_verb_begins(
    place: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctxexp.command.verb import Verb

    (tmp_path / "file").touch()
    (tmp_path / "locked").mkdir()
    access = os.access  # whoever is root may write everywhere
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / "locked" and access(path, mode))
    begun = []

    def verb(*, out: Path = tmp_path / "here") -> None:
        begun.append(out)

    with pytest.raises(DiskError, match=rf"cannot write .*{place}: {reason}; choose a writable place \(out=\)$"):
        Verb("verb", verb)([f"out={tmp_path / place}"])
    assert begun == []
    assert Verb("verb", verb)([]) == 0
    assert Verb("verb", verb)([f"out={tmp_path / 'new' / 'deep'}"]) == 0
    assert begun == [tmp_path / "here", tmp_path / "new" / "deep"]
    assert not (tmp_path / "new").exists()
