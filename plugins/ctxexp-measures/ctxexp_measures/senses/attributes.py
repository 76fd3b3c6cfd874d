"""Attributes of each measured row: its word, form, sense, position, sentence, document. What is made of a text once,
for all layers; the base of metrics that need their text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np

from ctxexp import Block, Group, Metric, Text
from ctxexp.errors import MetricError

T = TypeVar("T")


def once(text: Text, key: str, make: Callable[[], T]) -> T:
    """What `make` makes of a text, made once for all layers; `key` tells it from others."""
    key = f"ctxexp_measures.senses {key}"
    if key not in text.derived:
        text.derived[key] = make()
    return text.derived[key]  # type: ignore[return-value]


class TextMetric(Metric):
    """Base of measures of the rows of a text: which words these are groups of rows alone don't say."""

    _text: Text | None = None

    def bind_text(self, text: Text) -> None:
        self._text = text

    def update(self, group: Group) -> None:
        raise MetricError(f"{type(self).__name__}: rows alone don't say which words they are; measure a corpus")

    def update_block(self, block: Block) -> None:
        if self._text is None or block.rows is None:
            return super().update_block(block)
        return self.take(self._text, block.rows, block.x)

    @abstractmethod
    def take(self, text: Text, rows: np.ndarray, x: np.ndarray) -> None:
        """Take the vectors x (w, n, d) of the text's store rows (w, n)."""


@dataclass(frozen=True)
class Labels:
    """Labels of rows: row i has names[codes[i]], none where the code is -1."""

    codes: np.ndarray  # (n,) int64
    names: tuple[Hashable, ...]

    @classmethod
    def of(cls, labels: Iterable[Hashable]) -> Labels:
        """Labels numbered as they first appear; `None` and "" mean none."""
        number: dict[Hashable, int] = {}
        codes = [-1 if label is None or label == "" else number.setdefault(label, len(number)) for label in labels]
        return cls(np.array(codes, np.int64), tuple(number))

    def __len__(self) -> int:
        return len(self.names)

    def subset(self, index: np.ndarray) -> Labels:
        """The labels of rows `index`; names that none of these has are dropped."""
        codes_present, codes = np.unique(self.codes[index], return_inverse=True)
        none = int(len(codes_present) > 0 and codes_present[0] < 0)
        return Labels(codes - none, tuple(self.names[i] for i in codes_present[none:].tolist()))


@dataclass(frozen=True)
class RowAttributes:
    """Attributes of the measured rows of a store, those of equal sentences once; arrays are (n,)."""

    rows: np.ndarray  # ascending
    word: Labels  # lemma and part of speech where the corpus tells them, else the spelling without case
    form: Labels  # the word with its exact pieces: case, blank before it, and inflection where there are lemmas
    sense: Labels  # the form with its label
    position: np.ndarray  # how many of the model's tokens stand before it
    pieces: np.ndarray  # how many of the model's tokens it is
    sentence: np.ndarray  # its number in the corpus
    document: np.ndarray | None  # its number, where the corpus has documents of more than a sentence
    block: np.ndarray  # of units that are resampled together

    def __len__(self) -> int:
        return len(self.rows)

    def subset(self, index: np.ndarray) -> RowAttributes:
        """The attributes of rows `index` of these."""
        word, form, sense = (labels.subset(index) for labels in (self.word, self.form, self.sense))
        numbers = (self.position[index], self.pieces[index], self.sentence[index])
        document = None if self.document is None else self.document[index]
        return RowAttributes(self.rows[index], word, form, sense, *numbers, document, self.block[index])


def row_attributes(text: Text) -> RowAttributes:
    """The attributes of the measured rows of a text, computed once for each text."""
    return once(text, "attributes", lambda: _row_attributes(text))


def _row_attributes(text: Text) -> RowAttributes:
    corpus, occurrences = text.corpus, text.occurrences
    rows = np.unique(occurrences.by_sentence.rows)
    sentence = text.sentence_of_row[rows]
    spelling = np.asarray(text.store.vocabulary, object)[np.asarray(text.store.unit_codes)[rows]].tolist()
    lemma, pos = (tags_of_rows(text, kind, rows) for kind in ("lemma", "pos"))
    words = [(le, p) if le else w.casefold() for le, p, w in zip(lemma, pos, spelling, strict=True)]
    senses = np.full(len(occurrences.forms), None, object)
    groups = occurrences.by_sense
    senses[groups.rows] = list(chain.from_iterable(groups.labels))
    forms = list(zip(words, text.tokens[rows, 2].tolist(), strict=True))
    documents = None if corpus.documents is None else np.asarray(corpus.documents, np.int64)
    tokens = text.tokens[rows]
    several = documents is not None and len(np.unique(documents)) < len(documents)
    return RowAttributes(
        rows,
        Labels.of(words),
        Labels.of(forms),
        Labels.of((f, s) if s is not None else None for f, s in zip(forms, senses[rows].tolist(), strict=True)),
        tokens[:, 0],
        tokens[:, 1],
        sentence,
        documents[sentence] if documents is not None and several else None,
        occurrences.clusters.of_row[rows],
    )


def tags_of_rows(text: Text, kind: str, rows: np.ndarray) -> list[str]:
    """The corpus's tags of a kind, one for each of `rows`; "" for none."""
    tags = text.corpus.tags.get(kind)
    if tags is None:
        return [""] * len(rows)
    flat = list(chain.from_iterable(tags))
    starts = np.cumsum([0, *map(len, tags)])
    sentence, at = text.sentence_of_row[rows], text.positions[rows]
    where = np.where(at < 0, -1, starts[sentence] + at).tolist()
    return [flat[i] if i >= 0 else "" for i in where]
