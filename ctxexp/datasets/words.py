"""Words of a text, by a named tokenizer that all models share, so that curves compare the same words.

Words come with their character spans, so that a model's own can be met by span. White space, and invisible format
characters outside of words, belong to no word; every other character belongs to exactly one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import regex

from ctxexp.dataset import Sentence
from ctxexp.errors import ConfigError, UnknownName, short

# A word goes on behind what Unicode's word boundaries (UAX 29) don't break at: join controls, soft hyphens and other
# invisible format characters, the Catalan middle dot and gershayim between letters, a quotation mark or an apostrophe
# between Hebrew ones. (Of the middle of words, UAX 29's colon and full stop are left out: "e.g.This" is no word.)
_HIDDEN = r"\p{Word_Break=Format}\p{Word_Break=ZWJ}\u200c"
_INSIDE = r"[\p{L}\p{M}\p{N}_\u05f3]"
_JOINT = rf"""(?:[{_HIDDEN}]+|(?<=[\p{{L}}\p{{M}}])[\u00b7\u0387\u055f\u05f4\u2027](?=\p{{L}})
      |(?<=\p{{Hebrew}})["'’](?=\p{{Hebrew}}))"""
_REST = rf"{_INSIDE}*(?:{_JOINT}{_INSIDE}+)*"
_OTHER = rf"(?![\s\u200b{_HIDDEN}])\X"
# Clitics are words of their own ("do n't", "she 's"), as in the Penn Treebank and in the tokenizer that the paper used;
# hyphenated words, numbers (3.5, 10:30, 2nd) and dotted abbreviations (U.S.) stay whole. What is left is taken by
# grapheme cluster, so that an emoji with modifiers is one word and no combining mark is orphaned.
_ENGLISH = regex.compile(
    rf"""
      (?:\p{{L}}\.){{2,}}
    | \p{{L}}+?(?=n['’]t\b)
    | n['’]t\b
    | ['’](?:s|re|ve|ll|d|m)\b
    | \p{{N}}+(?:[.,:/\u066b\u066c]\p{{N}}+)*[\p{{L}}\p{{M}}]*(?:{_JOINT}{_INSIDE}+)*
    | \p{{L}}{_REST}(?:[-\u2010\u2011][\p{{L}}\p{{N}}]{_REST}|['’](?!(?:s|re|ve|ll|d|m|t)\b)\p{{L}}{_REST})*
    | {_OTHER}
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
_UNICODE = regex.compile(rf"{_INSIDE}+(?:{_JOINT}{_INSIDE}+)*|{_OTHER}", regex.VERBOSE)
_WHITESPACE = regex.compile(r"\S+")
_PATTERNS = {"english": _ENGLISH, "unicode": _UNICODE, "whitespace": _WHITESPACE}
# Letters of languages that are written without spaces, with the marks, iteration and length signs among them.
_SPACELESS = regex.compile(
    rf"(?:[\p{{Han}}\p{{Hiragana}}\p{{Katakana}}\p{{Thai}}\p{{Lao}}\p{{Khmer}}\p{{Myanmar}}]"
    rf"[\p{{M}}\u30fc\uff70\uff9e\uff9f{_HIDDEN}]*)+"
)


def tokenizer(name: str = "english", *, lower: bool = False) -> Callable[[str], Sentence]:
    """The named tokenizer as a function from text to `Sentence`.

    `english`: words, clitics, numbers and punctuation apart. `unicode`: runs of letters, marks and digits, and
    everything else by grapheme. In both, Chinese, Japanese, Thai, Lao, Khmer and Burmese are split by ICU's word
    breaker. `whitespace`: for text that is tokenised already. `lower` lower-cases the text itself, before the model
    reads it. Raises UnknownName, and ConfigError where ICU is needed and isn't installed.

    Example:
        >>> tokenizer("english")("She doesn't.").words
        ('She', 'does', "n't", '.')
    """
    if name not in _PATTERNS:
        raise UnknownName("word tokenizer", name, _PATTERNS)
    pattern = _PATTERNS[name]

    def tokenize(text: str) -> Sentence:
        text = text.lower() if lower else text
        spans = [m.span() for m in pattern.finditer(text) if not m.group().isspace()]
        if pattern is not _WHITESPACE and not text.isascii() and _SPACELESS.search(text):
            spans = [part for span in spans for part in _split(text, *span)]
        return Sentence(text, tuple(text[a:b] for a, b in spans), tuple(spans))

    return tokenize


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of the words in a span: what has spaces elsewhere stays whole, between runs of what has none."""
    for run in _SPACELESS.finditer(text, start, end):
        if start < run.start():
            yield start, run.start()
        start = run.start()
        for word in _segments(run.group()):
            yield start, start + len(word)
            start += len(word)
    if start < end:
        yield start, end


def _segments(text: str) -> Iterator[str]:
    """The words of a text without spaces. ICU counts UTF-16 units, so that its words count here, not its offsets."""
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        raise ConfigError(
            f"{short(text)} is of a language written without spaces, whose words ICU finds: pip install icu4py; "
            "where the text has a space between words: words.tokenizer=whitespace"
        ) from None
    yield from WordBreaker(text, "root")
