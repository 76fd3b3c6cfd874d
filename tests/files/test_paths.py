"""Paths and `key=value` words as people type them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxexp.command.key_values import parse, split
from ctxexp.errors import ConfigError
from ctxexp.files.paths import user_path


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


ARGUMENTS = {
    "folds": (int, 5, "parts"),
    "rate": (float, 0.01, "of learning"),
    "some": (list[str] | None, None, "names"),
}


def test_words_become_typed_values_beside_the_defaults() -> None:
    assert parse(["rate=1e-4", "some=[a,b]"], ARGUMENTS, "folds=2") == {"folds": 5, "rate": 1e-4, "some": ["a", "b"]}
    assert parse(["rate=2"], ARGUMENTS, "folds=2")["rate"] == 2.0


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("folds", "'folds': expected key=value, such as folds=2"),
        ("fold=2", r"no argument 'fold'; did you mean 'folds'\?"),
        ("folds=x", "folds='x': expected int, got str"),
        ("rate=x", "rate='x': expected float, got str"),
        ("some=[a", r"'some=\[a': the value can't be read; quote it"),
        ("some={a", "the value can't be read; quote it"),
        ("some=2000-99-99", "the value can't be read; quote it"),
        ("some=!!python/name:os.system ''", "the value can't be read; quote it"),
    ],
)
def test_a_word_that_is_no_argument_is_refused_in_a_sentence(word: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse([word], ARGUMENTS, "folds=2")


def test_the_first_equals_sign_divides() -> None:
    assert split("a=b=c", "x=1") == ("a", "b=c")
