"""Word tokenizers: spans are exact, and nothing but white space is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxexp.datasets.words import TOKENIZERS, is_punctuation, tokenizer
from ctxexp.errors import UnknownName


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=st.text())
def test_spans_equal_the_surface_and_cover_all_but_white_space(name: str, text: str) -> None:
    sentence = tokenizer(name)(text)
    assert [text[a:b] for a, b in sentence.spans] == list(sentence.words)
    covered = {i for a, b in sentence.spans for i in range(a, b)}
    assert sum(b - a for a, b in sentence.spans) == len(covered)  # no overlap
    assert all(text[i].isspace() for i in range(len(text)) if i not in covered)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("She doesn't, he'll.", ["She", "does", "n't", ",", "he", "'ll", "."]),
        ("It's John’s well-known 3.5 kg cat", ["It", "'s", "John", "’s", "well-known", "3.5", "kg", "cat"]),
        ("U.S. troops left at 10:30 on the 2nd.", ["U.S.", "troops", "left", "at", "10:30", "on", "the", "2nd", "."]),
        ("O'Neil can't", ["O'Neil", "ca", "n't"]),
        ('"Quote" (aside) -- end...', ['"', "Quote", '"', "(", "aside", ")", "-", "-", "end", ".", ".", "."]),
        ("naïve café 東京 👩‍👩‍👧 e\u0301t\u0301", ["naïve", "café", "東京", "👩‍👩‍👧", "e\u0301t\u0301"]),
        ("", []),
        ("   ", []),
    ],
)
def test_english(text: str, words: list[str]) -> None:
    assert list(tokenizer("english")(text).words) == words


def test_lower_changes_the_text_that_models_read() -> None:
    sentence = tokenizer(lower=True)("İstanbul IS Big")
    assert sentence.text == "İstanbul IS Big".lower()
    assert [sentence.text[a:b] for a, b in sentence.spans] == list(sentence.words)


def test_unknown_tokenizer_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"no word tokenizer 'englsh'; did you mean 'english'\? \(english, unicode"):
        tokenizer("englsh")


@pytest.mark.parametrize(
    ("word", "expected"), [(",", True), ("--", True), ("🙂", True), ("a", False), ("3.5", False), ("'s", False)]
)
def test_punctuation_has_no_letter_or_digit(word: str, expected: bool) -> None:
    assert is_punctuation(word) is expected
