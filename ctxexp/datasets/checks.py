"""Text to words, and a corpus checked: the named tokenizers, shared by every model so that curves compare the same
words, and what must be true of a corpus, whose classes trust their maker.

A tokenizer gives words with their character spans, so that a model's own can be met by span. White space, and
invisible format characters outside of words, belong to no word; every other character belongs to exactly one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

import regex

from ctxexp.dataset import Corpus, Pair, Sense, Sentence, Tags
from ctxexp.errors import DataError, UnknownName, is_text

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
TOKENIZERS = tuple(_PATTERNS)


def check_corpus(corpus: Corpus) -> None:
    """Raise `DataError` unless the corpus is as `ctxexp.dataset` describes it."""
    if not isinstance(corpus.name, str) or not corpus.name.strip() or not is_text(corpus.name):
        raise DataError(f"a corpus's name is {corpus.name!r}; expected a text for charts and tables")
    if not isinstance(corpus.sentences, tuple) or not corpus.sentences:
        raise DataError(f"corpus {corpus.name!r}: expected a tuple of sentences, got {str(corpus.sentences)[:40]}")
    if wrong := {k: v for k, v in corpus.choices.items() if not isinstance(k, str) or not isinstance(v, str)}:
        raise DataError(f"corpus {corpus.name!r}: choices are texts by name, got {str(wrong)[:80]}")
    if corpus.documents is not None and len(corpus.documents) != len(corpus.sentences):
        raise DataError(
            f"corpus {corpus.name!r}: documents of {len(corpus.documents)} sentences, but it has "
            f"{len(corpus.sentences)}; expected one document number a sentence, or none at all"
        )
    check_sentences(corpus)
    check_gold(corpus)
    for kind, tags in corpus.tags.items():
        if list(map(len, tags)) != list(map(len, corpus.sentences)):
            raise DataError(f"corpus {corpus.name!r}: tags {kind!r} are not one a word of each of its sentences")


def check_sentences(corpus: Corpus) -> None:
    """Raise `DataError` unless each word of each sentence is what the text has at its span, and no text is damaged."""
    checked_ids: set[int] = set()
    for i, sentence in enumerate(corpus.sentences):
        if id(sentence) not in checked_ids:
            checked_ids.add(id(sentence))
            if wrong := _wrong(sentence):
                raise DataError(f"corpus {corpus.name!r}, sentence {i}{wrong}")


_NO_TEXT = re.compile("[\\0\ud800-\udfff]")


def _wrong(sentence: object) -> str:
    """An error message on a sentence, to stand after its number; empty if it is valid."""
    if not isinstance(sentence, Sentence):
        return f": expected a ctxexp.Sentence, got {type(sentence).__name__}"
    parts: tuple[object, object, object] = (
        sentence.text,
        sentence.words,
        sentence.spans,
    )  # annotations hold nobody to them
    text, words, spans = parts
    if not isinstance(text, str) or not isinstance(words, tuple) or not isinstance(spans, tuple):
        return ": expected a text, a tuple of words and a tuple of spans"
    where = f", {text[:40]!r}"
    if _NO_TEXT.search(text):
        return f"{where}: it holds a NUL or half of a surrogate pair, which no text does; was it decoded as what it is?"
    try:
        slices = tuple(text[a:b] for a, b in spans)
        ends = list(chain.from_iterable(spans))
    except (TypeError, ValueError):
        return f"{where}: a span is a pair of whole numbers, the first and the one after the last character"
    if slices != words:
        k = next(k for k, (a, b) in enumerate(zip(slices, words, strict=True)) if a != b)
        return f"{where}: the span {spans[k]} holds {slices[k]!r}, the word is {words[k]!r}"
    if not all(map(str.strip, words)) or ends != sorted(ends) or (ends and (ends[0] < 0 or ends[-1] > len(text))):
        return f"{where}: spans ascend without overlap within the text, and no word is blank; got {spans[:8]}"
    return ""


def check_gold(corpus: Corpus) -> None:
    """Raise `DataError` unless pairs and senses point to sentences and words that are there, and gold is a number."""
    n = len(corpus.sentences)
    for pair in corpus.pairs:
        if not (0 <= pair.first < n and 0 <= pair.second < n and math.isfinite(pair.gold)):
            raise DataError(
                f"corpus {corpus.name!r}: {pair} points outside the {n} sentences, or its gold is no number"
            )
    for sense in corpus.senses:
        if not 0 <= sense.sentence < n or not 0 <= sense.position < len(corpus.sentences[sense.sentence]):
            raise DataError(f"corpus {corpus.name!r}: {sense} points to no word of the corpus")


def deduplicate(corpus: Corpus) -> Corpus:
    """The corpus with each text once, first occurrences in order; pairs, senses and tags follow their sentence.

    Five copies of a sentence are one context, not five: without this a word can look context-independent because its
    sentences are equal. One with a bound holds none twice.
    """
    if corpus.bound is not None:
        return corpus
    first: dict[Sentence, int] = {}
    position = [first.setdefault(s, len(first)) for s in corpus.sentences]
    pairs = tuple(Pair(position[p.first], position[p.second], p.gold, p.subset) for p in corpus.pairs)
    senses = tuple(dict.fromkeys(Sense(position[s.sentence], s.position, s.label) for s in corpus.senses))
    documents = None
    if corpus.documents is not None:
        document_of = dict(zip(reversed(position), reversed(corpus.documents), strict=True))  # where each first stands
        documents = tuple(document_of[i] for i in range(len(first)))
    return replace(
        corpus,
        sentences=tuple(first),
        pairs=pairs,
        senses=senses,
        choices={**corpus.choices, "deduplicate": "true"},
        documents=documents,
        tags={kind: _once(tags, position, len(first)) for kind, tags in corpus.tags.items()},
    )


def _once(tags: Tags, position: Sequence[int], n: int) -> Tags:
    """The tags of n sentences, of which each may be there several times: the first tag of each word."""
    merged_tags: list[tuple[str, ...]] = [()] * n
    for i, of in zip(position, tags, strict=True):
        merged_tags[i] = tuple(a or b for a, b in zip(merged_tags[i], of, strict=True)) if merged_tags[i] else of
    return tuple(merged_tags)


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
