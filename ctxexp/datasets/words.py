"""Text to words: the named tokenizers, shared by every model so that curves compare the same words.

Each gives words with their character spans, so that a model's own tokenizer can be met by span. White space belongs
to no word; every other character belongs to exactly one.
"""

from __future__ import annotations

from collections.abc import Callable

import regex

from ctxexp.dataset import Sentence
from ctxexp.errors import UnknownName

# Clitics are words of their own ("do n't", "she 's"), as in the Penn Treebank and in the tokenizer that the paper used;
# hyphenated words, numbers (3.5, 10:30, 2nd) and dotted abbreviations (U.S.) stay whole. What is left is taken by
# grapheme cluster, so that an emoji with modifiers is one word and no combining mark is orphaned.
_ENGLISH = regex.compile(
    r"""
      (?:\p{L}\.){2,}
    | \p{L}+?(?=n['’]t\b)
    | n['’]t\b
    | ['’](?:s|re|ve|ll|d|m)\b
    | \p{N}+(?:[.,:/]\p{N}+)*[\p{L}\p{M}]*
    | \p{L}[\p{L}\p{M}\p{N}_]*
      (?:-[\p{L}\p{N}][\p{L}\p{M}\p{N}_]*|['’](?!(?:s|re|ve|ll|d|m|t)\b)\p{L}[\p{L}\p{M}\p{N}_]*)*
    | (?!\s)\X
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
_UNICODE = regex.compile(r"[\p{L}\p{M}\p{N}_]+|(?!\s)\X")
_WHITESPACE = regex.compile(r"\S+")

_PATTERNS = {"english": _ENGLISH, "unicode": _UNICODE, "whitespace": _WHITESPACE}
TOKENIZERS = tuple(_PATTERNS)


def tokenizer(name: str = "english", *, lower: bool = False) -> Callable[[str], Sentence]:
    """The named tokenizer as a function from text to `Sentence`.

    `english`: words, clitics, numbers and punctuation apart. `unicode`: runs of letters, marks and digits, and
    everything else by grapheme. `whitespace`: for text that is tokenised already. `lower` lower-cases the text itself,
    before the model reads it. Raises UnknownName.

    Example:
        >>> tokenizer("english")("She doesn't.").words
        ('She', 'does', "n't", '.')
    """
    if name not in _PATTERNS:
        raise UnknownName("word tokenizer", name, _PATTERNS)
    pattern = _PATTERNS[name]

    def tokenize(text: str) -> Sentence:
        text = text.lower() if lower else text
        spans = tuple(m.span() for m in pattern.finditer(text) if not m.group().isspace())
        return Sentence(text, tuple(text[a:b] for a, b in spans), spans)

    return tokenize


def is_punctuation(word: str) -> bool:
    """Whether `word` has neither a letter nor a digit (symbols and emoji count as punctuation).

    Example:
        >>> is_punctuation("..."), is_punctuation("3.5")
        (True, False)
    """
    return not any(c.isalnum() for c in word)
