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
    for given, message in (("", "it is empty"), ("~nosuchuser/x", "no user of that name has a home here")):
        with pytest.raises(ConfigError, match=message):
            user_path(given)
