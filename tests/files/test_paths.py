"""Paths as people type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxexp.datasets import user_path
from ctxexp.errors import ConfigError


def test_a_home_is_put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert user_path("~/x") == Path("/home/somebody/x")
    assert user_path(Path("a/~/b")) == Path("a/~/b")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("~nosuchuser/x", "'~nosuchuser/x': no user of that name has a home here; write the path in full"),
        ("a\0b", "a character that no path can have"),
        ("a\ud800b", "a character that no path can have"),
        ("a" * 256, "too long for a path"),
        ("é" * 128, "too long for a path"),
        ("a/" * 2049, "too long for a path"),
    ],
)
def test_what_no_file_system_holds_is_refused(given: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        user_path(given)
    assert len(str(error.value)) < 200
