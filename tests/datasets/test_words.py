"""Word tokenizers: spans are exact, and nothing but white space and invisible characters is lost."""

from __future__ import annotations

import sys

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from ctxexp.command import Experiment, configured
from ctxexp.datasets import tokenizer
from ctxexp.errors import ConfigError

HIDDEN = set(regex.findall(r"[\p{Cf}\u200b]", "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))))


@pytest.mark.parametrize("name", ["english", "unicode", "whitespace"])
@given(text=st.text())
def test_spans_equal_the_surface_and_cover_all_but_white_space(name: str, text: str) -> None:
    sentence = tokenizer(name)(text)
    assert [text[a:b] for a, b in sentence.spans] == list(sentence.words)
    covered = {i for a, b in sentence.spans for i in range(a, b)}
    assert sum(b - a for a, b in sentence.spans) == len(covered)  # no overlap
    assert all(text[i].isspace() or text[i] in HIDDEN for i in range(len(text)) if i not in covered)


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
        # Words go on at what joins them.
        ("می\u200cخواهم کتاب\u200cها", ["می\u200cخواهم", "کتاب\u200cها"]),  # zero-width non-joiners
        ("۱۰\u200cها ۳٫۱۴", ["۱۰\u200cها", "۳٫۱۴"]),
        ("क्\u200dष क", ["क्\u200dष", "क"]),  # a joiner
        ("Donau\u00addampf fährt", ["Donau\u00addampf", "fährt"]),  # a soft hyphen
        ("a\u2060b c\ufeffd", ["a\u2060b", "c\ufeffd"]),  # word joiners
        ("ארה״ב צה\"ל ג׳ירפה ג'ירפה", ["ארה״ב", 'צה"ל', "ג׳ירפה", "ג'ירפה"]),  # gershayim and geresh, typed either way
        ("paral·lel a · b", ["paral·lel", "a", "·", "b"]),
        ("well\u2010known co\u2011op", ["well\u2010known", "co\u2011op"]),  # hyphens
        ("\u200fשלום\u200f, \ufeffa\u200c", ["שלום", ",", "a"]),  # marks around a word are none of it
        ("ខ្ញុំ\u200bទៅ", ["ខ្ញុំ", "ទៅ"]),  # a zero-width space parts words
    ],
)
def test_english(text: str, words: list[str]) -> None:
    assert list(tokenizer("english")(text).words) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("代表模型的上层产生了。", ["代表", "模型", "的", "上层", "产生", "了", "。"]),
        ("異なる文脈における", ["異なる", "文脈", "における"]),
        ("ภาษาไทยไม่มี", ["ภาษา", "ไทย", "ไม่มี"]),
        ("She saw 銀行's co-op中文, iPhone15を", ["She", "saw", "銀行", "'s", "co-op", "中文", ",", "iPhone15", "を"]),
        ("😀中文😀コーヒー 한국어", ["😀", "中文", "😀", "コーヒー", "한국어"]),  # ICU counts UTF-16 units
    ],
)
def test_words_without_spaces_are_icus(text: str, words: list[str]) -> None:
    pytest.importorskip("icu4py.breakers")
    assert list(tokenizer("english")(text).words) == words


def test_words_without_spaces_are_refused_without_icu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    with pytest.raises(ConfigError, match=r"pip install icu4py; .*words\.tokenizer=whitespace"):
        tokenizer("unicode")("The 銀行 lent.")
    assert tokenizer("whitespace")("銀行 が").words == ("銀行", "が")


def test_lower_changes_the_text_that_models_read() -> None:
    sentence = tokenizer(lower=True)("İstanbul IS Big")
    assert sentence.text == "İstanbul IS Big".lower()
    assert [sentence.text[a:b] for a, b in sentence.spans] == list(sentence.words)


@pytest.mark.parametrize(
    ("word", "expected"), [(",", True), ("--", True), ("🙂", True), ("a", False), ("3.5", False), ("'s", False)]
)
def test_punctuation_has_no_letter_or_digit(word: str, expected: bool) -> None:
    assert (Experiment(configured("bert", ["a text"])).words.form(word) is None) is expected
