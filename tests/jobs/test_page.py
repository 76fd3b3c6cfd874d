"""The page of a run: its path comes last, `--open` shows it, and Python writes the same."""

from __future__ import annotations

import os
from pathlib import Path

from tests.warm import Warm


def test_a_single_runs_page_is_named_last_and_opened(tmp_path: Path, warm: Warm) -> None:
    (tmp_path / "text.txt").write_text("the cat sat\nthe cat ran\nthe dog ran\na dog sat\na cat ate\n")
    browser = tmp_path / "browser"  # as a user's BROWSER: it notes what it was given
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    env = {**os.environ, "CTXEXP_CACHE": str(tmp_path / "cache"), "BROWSER": f"{browser} %s"}
    words = [
        "dataset=text",
        "dataset.path=text.txt",
        "metric=self_similarity",
        "min_contexts=2",
        "bootstrap=20",
        "sink=none",
    ]
    done = warm.run("-m", "ctxexp", *words, "--open", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    [report] = tmp_path.glob("mlruns/results/*/*/report.html")
    assert done.stdout.splitlines()[-1] == f"report: {report}"
    assert (tmp_path / "opened").read_text().strip() == report.as_uri()
    assert "<h1>bert (text.txt, min_contexts 2), layer by layer</h1>" in report.read_text(encoding="utf-8")
