"""Usages of words: a corpus with annotated occurrences, and annotated pairs and groups of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ctxexp import Corpus, Sentence
from ctxexp.errors import DataError

USAGE, WORD, PERIOD = "usage", "lemma", "period"
"""Kinds of tags: a usage's name, its word, and its period."""


@dataclass(frozen=True)
class Compared:
    """Two usages of a word, by their tags, with people's judgement `gold`: 1 for the same sense, 0 for another."""

    first: str
    second: str
    gold: float
    subset: str


@dataclass(frozen=True)
class Usages(Corpus):
    """A corpus with tagged usages, pairs of them, and how much each word is said to have changed, in [0, 1]."""

    compared: tuple[Compared, ...] = ()
    change: Mapping[str, float] = field(default_factory=dict)


def tags_of(sentences: Sequence[Sentence], marks: Mapping[tuple[int, int], str]) -> tuple[tuple[str, ...], ...]:
    """One label for each word of each sentence, "" for none; marks are by sentence and word."""
    rows = [[""] * len(sentence) for sentence in sentences]
    for (sentence, position), label in marks.items():
        rows[sentence][position] = label
    return tuple(map(tuple, rows))


def usages_in(corpus: Corpus, what: str, dataset: str) -> Usages:
    """The corpus, as one of usages; raises DataError, which names its user (`what`) and a data set with usages."""
    if not isinstance(corpus, Usages) or USAGE not in corpus.tags:
        raise DataError(f"{what}, but corpus {corpus.name!r} has none; choose a data set that does, as {dataset}")
    return corpus
