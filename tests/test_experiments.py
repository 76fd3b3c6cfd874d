"""The page of sixty experiments: each line's command exists and composes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from ctxexp.command import registry
from ctxexp.command.verb import Verb
from tests.composed import check_command, planned

ROOT = Path(__file__).resolve().parent.parent


class Line(NamedTuple):
    number: int
    what: str
    command: str


def lines() -> list[Line]:
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    rows = re.findall(r"^(\d+)\. (.+?)(?:: .+)?\. `(.+)`$", page, flags=re.MULTILINE)
    return [Line(int(row[0]), *row[1:]) for row in rows]


def test_lines_are_numbered_and_none_is_absent() -> None:
    assert [line.number for line in lines()] == list(range(1, 62))
    assert len({line.what for line in lines()}) == 61


@pytest.mark.parametrize("line", lines(), ids=lambda line: str(line.number))
def test_each_command_composes(line: Line) -> None:
    words = shlex.split(line.command)
    words = words[3:] if words[:3] == ["python", "-m", "ctxexp"] else words[1:]
    first = words[0]
    if first == "-m" or "=" in first:
        composes(words)
    elif first == "train":
        trains(words[1:])
    elif first == "probe":
        from ctxexp_lab.probe import probe_sweep

        composes(probe_sweep(words[1:]))
    else:
        takes(first, words[1:])


def composes(words: list[str]) -> None:
    """The first job is composed, and those of each other value of an experiment's own sweep."""
    if "glove" in " ".join(words) and "glove" not in registry().names("model"):
        pytest.skip("model=glove comes with the plugin of packaged models")
    own = [word for word in words if word != "-m"]
    check_command(own, multirun="-m" in words)
    experiment = [word for word in own if word.startswith("experiment=")]
    for key, values in (planned(experiment) if experiment else {}).items():
        for value in values.split(",")[1:] if "[" not in values else ():  # the command has the first
            if key != "model" or value in registry().names("model"):
                others = [word for word in own if not word.startswith(f"{key}=")]
                check_command([*others, f"{key}={value}"], multirun=True)


def trains(words: list[str]) -> None:
    import ctxexp_lab
    from ctxexp_lab.training.recipe import check_options
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(str(Path(ctxexp_lab.__file__).parent / "training" / "conf"), version_base="1.3"):
        check_options(compose("train", overrides=words))


def takes(verb: str, words: list[str]) -> None:
    bare, keywords = Verb(verb, registry().find("command", verb).factory).arguments(words)
    assert bare or keywords
