"""What a run notes about where it ran, without touching it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ctxexp.files import environment


def test_asking_for_the_commit_leaves_the_repository_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that git brings up to date is locked meanwhile, and stays locked if git is ended for taking too long."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    file, index = tmp_path / "a.txt", tmp_path / ".git" / "index"
    file.write_text("text")
    git("init", "-q")
    git("add", "a.txt")
    git("-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "m")
    os.utime(file, (0, 0))  # nothing but the time that the index remembers
    before = index.read_bytes()
    monkeypatch.setattr(environment, "PACKAGE", tmp_path / "package")
    assert environment.current_commit() == {"commit": git("rev-parse", "HEAD"), "dirty": False}
    assert index.read_bytes() == before
    environment._commit_of.cache_clear()
    file.write_text("other")
    assert environment.current_commit() == {"commit": git("rev-parse", "HEAD"), "dirty": True}


def test_a_status_unknown_to_git_is_not_called_clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    made = ["-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "--allow-empty", "-m", "m"]
    subprocess.run(["git", "-C", tmp_path, *made], check=True)
    (tmp_path / ".git" / "index").write_bytes(b"damaged")  # git knows the commit, not what has changed
    monkeypatch.setattr(environment, "PACKAGE", tmp_path / "package")
    found = environment.current_commit()
    assert found is not None
    assert found["dirty"] is None
    said = environment.provenance_tags()
    assert said["commit"] == found["commit"]
    assert "dirty" not in said
