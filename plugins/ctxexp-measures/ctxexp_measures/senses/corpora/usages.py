"""Usages of words: a corpus with annotated occurrences, and annotated pairs of these."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ctxexp import Corpus, Sentence

USAGE, WORD = "usage", "lemma"
"""Kinds of tags: a usage's name, and its word."""


@dataclass(frozen=True)
class Compared:
    """Two usages of a word, by their tags, with people's judgement `gold`: 1 for the same sense, 0 for another."""

    first: str
    second: str
    gold: float
    subset: str


@dataclass(frozen=True)
class Usages(Corpus):
    """A corpus with tagged usages, and pairs of them."""

    compared: tuple[Compared, ...] = ()


class TaggedText:
    """Sentences, each once, and the tags of their words, collected usage by usage."""

    def __init__(self) -> None:
        self._number: dict[Sentence, int] = {}
        self.marks: dict[str, dict[tuple[int, int], str]] = defaultdict(dict)  # by kind: the tag by sentence and word

    def place(self, sentence: Sentence, position: int) -> tuple[int, int]:
        """The place of a word: the number of its sentence, and its own."""
        return self._number.setdefault(sentence, len(self._number)), position

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        return tuple(self._number)

    @property
    def tags(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """By kind, one label for each word of each sentence, "" for none."""
        return {
            kind: tuple(tuple(marks.get((i, k), "") for k in range(len(s))) for s, i in self._number.items())
            for kind, marks in self.marks.items()
        }
