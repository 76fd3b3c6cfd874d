"""What is known of each measured row: its word, form, sense, position, sentence, document."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.measuring.occurrences import Text


@dataclass(frozen=True)
class Labels:
    """A label a row: row i has names[codes[i]], or none where that is -1."""

    codes: np.ndarray  # (n,) int64
    names: tuple[Hashable, ...]

    @classmethod
    def of(cls, labels: Iterable[Hashable]) -> Labels:
        """Numbered as they first appear; `None` and "" are none."""
        number: dict[Hashable, int] = {}
        codes = [-1 if label is None or label == "" else number.setdefault(label, len(number)) for label in labels]
        return cls(np.array(codes, np.int64), tuple(number))

    def __len__(self) -> int:
        return len(self.names)

    def taken(self, index: np.ndarray) -> Labels:
        """Those of some rows, the others' labels forgotten."""
        kept, codes = np.unique(self.codes[index], return_inverse=True)
        none = int(len(kept) > 0 and kept[0] < 0)
        return Labels(codes - none, tuple(self.names[i] for i in kept[none:].tolist()))


@dataclass(frozen=True)
class Known:
    """What is known of the measured rows of a store, each distinct sentence's once; arrays are (n,)."""

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

    def taken(self, index: np.ndarray) -> Known:
        """Some rows of these."""
        word, form, sense = (labels.taken(index) for labels in (self.word, self.form, self.sense))
        numbers = (self.position[index], self.pieces[index], self.sentence[index])
        document = None if self.document is None else self.document[index]
        return Known(self.rows[index], word, form, sense, *numbers, document, self.block[index])


def known(text: Text) -> Known:
    """What the text tells of its measured rows."""
    found = text.derived.get("ctxexp_senses.known")
    if not isinstance(found, Known):
        found = text.derived["ctxexp_senses.known"] = _known(text)
    return found


def _known(text: Text) -> Known:
    corpus, occurrences = text.corpus, text.occurrences
    rows = np.unique(occurrences.by_sentence.rows)
    sentence = _sentence_of_row(text)[rows]
    spelling = np.asarray(text.store.vocabulary, object)[np.asarray(text.store.unit_codes)[rows]].tolist()
    lemma, pos = (tagged(text, kind, rows) for kind in ("lemma", "pos"))
    words = [(le, p) if le else w.casefold() for le, p, w in zip(lemma, pos, spelling, strict=True)]
    senses = np.full(len(occurrences.forms), None, object)
    groups = occurrences.by_sense
    senses[groups.rows] = list(chain.from_iterable(groups.labels))
    forms = list(zip(words, pieces_of(text)[rows].tolist(), strict=True))
    documents = None if corpus.documents is None else np.asarray(corpus.documents, np.int64)
    tokens = tokens_of(text)[rows]
    several = documents is not None and len(np.unique(documents)) < len(documents)
    return Known(
        rows,
        Labels.of(words),
        Labels.of(forms),
        Labels.of((f, s) if s is not None else None for f, s in zip(forms, senses[rows].tolist(), strict=True)),
        tokens[:, 0],
        tokens[:, 1],
        sentence,
        documents[sentence] if documents is not None and several else None,
        occurrences.units.of_row[rows],
    )


def tagged(text: Text, kind: str, rows: np.ndarray) -> list[str]:
    """The corpus's tags of a kind, one a row; "" for none."""
    tags = text.corpus.tags.get(kind)
    if tags is None:
        return [""] * len(rows)
    flat = list(chain.from_iterable(tags))
    starts = np.cumsum([0, *map(len, tags)])
    sentence, at = _sentence_of_row(text)[rows], places(text)[rows]
    where = np.where(at < 0, -1, starts[sentence] + at).tolist()
    return [flat[i] if i >= 0 else "" for i in where]


def places(text: Text) -> np.ndarray:
    """(n_rows,) which word of its sentence each row is; -1 where units aren't words."""
    positions: np.ndarray | None = getattr(text.store, "positions", None)
    return text.occurrences.places if positions is None else np.asarray(positions, np.int64)


def _sentence_of_row(text: Text) -> np.ndarray:
    """(n_rows,) the sentence of the corpus where each row first stands."""
    return np.repeat(_first_of_stored(text), np.diff(np.asarray(text.store.offsets)))


def _first_of_stored(text: Text) -> np.ndarray:
    """(n_stored,) the sentence of the corpus where each stored one first stands."""
    stored_of = np.asarray(text.store.stored_of)
    first = np.zeros(len(text.store.offsets) - 1, np.int64)
    first[stored_of[::-1]] = np.arange(len(stored_of))[::-1]
    return first


def tokens_of(text: Text) -> np.ndarray:
    """(n_rows, 2) where each row's first token stands in its sentence, and how many tokens it is.

    The encoder tells them of its units; of a store that holds some of these (a bounded corpus) rows find theirs by
    their words. Where that can't be, words are tokens: a table of word vectors lacks some and has no tokens.
    """
    key = "ctxexp_senses.tokens"
    if key not in text.derived:
        words = _words_of_rows(text)
        default = np.stack([words, np.ones(len(words), np.int64)], axis=1)
        text.derived[key] = _of_units(text, text.encoder.tokens, default)
    held: np.ndarray = text.derived[key]  # type: ignore[assignment]
    return held


def pieces_of(text: Text) -> np.ndarray:
    """(n_rows,) objects: the exact pieces that each row is to the model, equal where these are; its spelling where the
    encoder's units aren't the store's."""
    key = "ctxexp_senses.pieces"
    if key not in text.derived:
        spelling = np.asarray(text.store.vocabulary, object)[np.asarray(text.store.unit_codes)]
        text.derived[key] = _of_units(text, text.encoder.pieces, spelling)
    held: np.ndarray = text.derived[key]  # type: ignore[assignment]
    return held


def _of_units(text: Text, tell: Callable[[list[Sentence]], Iterable[Any]], default: np.ndarray) -> np.ndarray:
    """What the encoder tells of its units, a value a row; the default where they aren't the store's."""
    offsets, at = np.asarray(text.store.offsets), places(text)
    sentences = [text.corpus.sentences[i] for i in _first_of_stored(text).tolist()]
    result = default.copy()
    for sentence, units, a, b in zip(
        sentences, tell(sentences), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True
    ):
        if len(units) == b - a:
            mine: Iterable[Any] = units
        elif len(units) == len(sentence) and (at[a:b] >= 0).all():
            mine = [units[i] for i in at[a:b].tolist()]
        else:
            continue
        for row, value in enumerate(mine, start=a):
            result[row] = value
    return result


def _words_of_rows(text: Text) -> np.ndarray:
    """(n_rows,) which word of its sentence each row is, counted among the measured ones where units aren't words."""
    at = places(text)
    return np.where(at < 0, text.occurrences.places, at)
