"""Launchers that aren't installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxexp.errors import ConfigError
from ctxexp.plugins.registry import add_config_folder
from tests.composed import check_command, run_command_line


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
