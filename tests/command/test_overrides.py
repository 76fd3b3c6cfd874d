"""What is typed after the command: odd words get a hint, odd choices one sentence, wherever Hydra would stumble."""

from __future__ import annotations

import io
import json
import logging
import runpy
import sys
from pathlib import Path

import pytest

from ctxexp.command import cli
from ctxexp.errors import ConfigError
from ctxexp.plugins.registry import add_config_folder, install_hint
from tests.composed import check_command, run_command_line

ROOT = Path(__file__).resolve().parents[2]


def test_hints_name_what_plugins_here_bring() -> None:
    script = runpy.run_path(str(ROOT / "plugins" / "published.py"))
    held = (ROOT / "ctxexp" / "plugins" / "published.json").read_text()
    assert json.loads(held) == script["names_by_kind"](), "run plugins/published.py"
    assert install_hint("model", "bert") == ""
    assert install_hint("command", "claims") == (
        "; the plugin ctxexp-papers brings it: in a clone pip install ./plugins/ctxexp-papers"
    )


class _Closed(io.StringIO):
    """Standard output as a reader that has seen enough leaves it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.file = path.open("w")

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    def fileno(self) -> int:
        return self.file.fileno()


@pytest.mark.parametrize("words", [["--help"], ["--cfg", "job"], ["cache"], ["plugins"], ["claims"]])
def test_a_closed_output_ends_quietly(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["ctxexp", *words])
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "stdout", _Closed(tmp_path / "nowhere"))
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 0
    assert capsys.readouterr().err == ""
    assert not logging.raiseExceptions


def test_an_experiment_that_names_an_absent_launcher(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a folder of the user's own, which experiments may lie in."""
    (tmp_path / "experiment").mkdir()
    text = "# @package _global_\ndefaults:\n  - override /hydra/launcher: ray\n"
    (tmp_path / "experiment" / "mine.yaml").write_text(text)
    try:
        assert run_command_line(["--config-dir", str(tmp_path), "-m", "experiment=mine", "model=bert,elmo"]) == 2
    finally:
        add_config_folder(None)
    assert "no hydra/launcher 'ray'; the plugin hydra-ray-launcher brings it" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="no experiment 'mine'"):
        check_command(["experiment=mine"])
