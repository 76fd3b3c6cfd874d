"""Frequency ranks of words and pieces: by their counts in a text, by a vocabulary's order, or by a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ctxexp.datasets import text_lines
from ctxexp.errors import DataError

MARKS = ("Ġ", "▁")  # how pieces that begin a word are spelled


def ranks(tokens: Sequence[str], counts: np.ndarray | None, source: str, listed: Mapping[str, int]) -> np.ndarray:
    """Frequency rank of each token, 0 the most frequent, -1 without one: (n,) int64.

    source="corpus": by count, most frequent first, ties in the order of the tokens; a count of zero has no rank.
    source="vocabulary": the order of the tokens, which tokenizers that merge or choose pieces by frequency keep; tokens
    in alphabetical order, as tables of a text's words are, have no ranks.
    Otherwise the rank that `listed` gives; a piece that begins a word ("Ġthe") is looked up without its mark too. Where
    pieces have such marks and the list has none, those without ("the" in "breathe") are parts of words: they have none.
    """
    if source == "vocabulary":
        alphabetical = len(tokens) > 1 and list(tokens) == sorted(tokens)
        return np.full(len(tokens), -1, np.int64) if alphabetical else np.arange(len(tokens))
    if source != "corpus":
        plain = [t[1:] if t.startswith(MARKS) and t not in listed else t for t in tokens]
        words = any(t.startswith(MARKS) for t in tokens) and not any(word.startswith(MARKS) for word in listed)
        parts = (words and not t.startswith(MARKS) for t in tokens)
        return np.array([-1 if part else listed.get(t, -1) for t, part in zip(plain, parts, strict=True)], np.int64)
    result = np.full(len(tokens), -1, np.int64)
    if counts is not None:
        counts = np.asarray(counts)
        occurring = np.flatnonzero(counts > 0)
        result[occurring[np.argsort(-counts[occurring], kind="stable")]] = np.arange(len(occurring))
    return result


def vocabulary_list(tokens: Sequence[str]) -> dict[str, int]:
    """The rank of each word that is one token, by its spelling in a text: {"the": 0, "of": 1}.

    Of tokens that mark the beginning of a word ("Ġthe") those alone are words; of others, all but the insides of words
    ("##s"). The rank is the token's place among all `tokens`, as `ranks` has it; {} where these are alphabetical.
    """
    marks = any(token.startswith(MARKS) for token in tokens)
    numbered = zip(tokens, ranks(tokens, None, "vocabulary", {}).tolist(), strict=True)
    is_word = (lambda token: token.startswith(MARKS)) if marks else (lambda token: not token.startswith("##"))
    result: dict[str, int] = {}
    for token, rank in numbered:
        if rank >= 0 and is_word(token):
            result.setdefault(token[1:] if marks else token, rank)
    return result


def vocabulary_ranks(words: Sequence[str], listed: Mapping[str, int]) -> np.ndarray:
    """Rank of each word of a text by `vocabulary_list`, -1 where it is no single token: (n,) int64.

    A vocabulary without any capital letter belongs to a tokenizer that drops case, so that words are looked up in lower
    case.
    """
    drops_case = all(word == word.lower() for word in listed)
    return np.array([listed.get(word.lower() if drops_case else word, -1) for word in words], np.int64)


def read_list(path: Path) -> dict[str, int]:
    """Ranks by word from a file of `word TAB count` lines in any order, or of words alone, most frequent first."""
    lines = [line.split("\t") for _, line in text_lines(path) if line.strip()]
    words = [fields[0].strip() for fields in lines]
    if any(len(fields) > 1 for fields in lines):
        try:
            counts = [float(fields[1]) for fields in lines]
        except (IndexError, ValueError):
            raise DataError(f"frequency={path}: expected a word, a tab and a count in each line") from None
        if len({*zip(words, counts, strict=True)}) > len({*words}):
            raise DataError(f"frequency={path}: a word stands twice, with different counts")
        words = [words[i] for i in np.argsort(-np.array(counts), kind="stable").tolist()]
    elif all(" " in word for word in words):
        raise DataError(f"frequency={path}: expected words, or words and counts parted by tabs, one a line")
    return {word: rank for rank, word in enumerate(dict.fromkeys(words))}
