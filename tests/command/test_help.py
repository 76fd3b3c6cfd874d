"""Help: what `--help` says of everything, of a group, of one option and of a key; by files and docstrings."""

from __future__ import annotations

import re

import pytest
import yaml

from ctxexp.command.help import help_of
from ctxexp.plugins.registry import config_folder, option_names
from tests.composed import run_command_line
from tests.shipped import GROUPS


def test_every_config_key_has_a_line_with_a_comment() -> None:
    said = help_of(["values"])
    written = yaml.safe_load((config_folder() / "ctxexp.yaml").read_text())
    for key, value in written.items():
        if key not in ("defaults", "hydra"):
            assert re.search(rf"\n  {key}{r'.' if isinstance(value, dict) else '='}", f"\n{said}"), key
    assert re.search(r"\n  words\.tokenizer=english +english, unicode, whitespace\n", said)
    assert re.search(r"\n  sentence\.mixes=\[\] +of layers, beside them", said)
    assert "hydra.run" not in said


@pytest.mark.parametrize("group", GROUPS)
def test_every_option_of_a_group_has_its_line(group: str) -> None:
    lines = help_of([group]).splitlines()
    assert lines[0] == f"{group}=NAME, one of"
    said = dict(re.split(" {2,}", line.strip(), maxsplit=1) for line in lines[1:] if re.match("  [^ ]", line))
    assert list(said) == option_names(group)
    assert all(said.values())


def test_an_options_arguments_come_from_its_file_or_signature() -> None:
    said = help_of(["transform=whitening"])
    assert said.startswith("transform=whitening   Uncorrelated columns of variance 1")
    assert re.search(r"\n  transform\.kind=pca +pca: components, strongest first; zca", said)
    assert re.search(r"\n  metric\.sts\.similarity=cosine +cosine, dot, euclidean", help_of(["metric=sts"]))
    assert re.search(r"\n  min_contexts=2", help_of(["experiment=frequency"]))
    assert "transform=flow/0" in help_of(["transform=flow/0"])


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["--help", "cache"], "usage: ctxexp cache "),
        (["run", "--help"], "ctxexp measures how contextual"),
        (["--help", "words"], "  words.tokenizer=english"),
        (["model=bert", "--help"], "model=bert   All layers of BERT"),
        (["-m", "-h"], "ctxexp measures how contextual"),
    ],
)
def test_the_words_beside_it_say_what_help_is_asked_for(
    words: list[str], start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(words) == 0
    assert capsys.readouterr().out.startswith(start)
