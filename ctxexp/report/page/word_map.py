"""Occurrences of words as points on a plane, layer by layer (`WordMap`), for the page's explorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.dataset import Corpus
from ctxexp.groups import WordReader
from ctxexp.occurrences import Groups, Occurrences, RowIndex

if TYPE_CHECKING:
    import pandas as pd

TABLE = "word_map"  # among a run's results
OCCURRENCES = 48  # of a word
LISTED = 10  # words at each end of the page's lists
Z = 1.96  # standard errors in half of a 95% interval
RANK = 6  # directions of each layer that the common plane is fitted on
LEVELS = 40  # unlabelled words from the most to the least frequent, denser where frequent
NOISE = 16  # rounding errors of the rows, in their epsilon, that are no spread


class WordMap:
    """The principal planes of words' occurrences, taken one layer at a time.

    Rows are scaled to length one and centred on their mean in the layer, so that their spread is what self-similarity
    sees: its mean square is 1 - |mean|^2. A word has a plane of each layer's own, and one that all layers have in
    common, fitted on each layer's first `RANK` directions. Words with labelled senses come first, those with most
    senses before, then words over the whole range of frequency; at most `most` rows of them, `each` of one word.
    """

    def __init__(
        self,
        store: RowIndex,
        occurrences: Occurrences,
        corpus: Corpus,
        *,
        dim: int,
        most: int,
        words: Sequence[str] | None = None,
        each: int = OCCURRENCES,
    ) -> None:
        self.store, self.occurrences, self.corpus, self.most = store, occurrences, corpus, most
        self.sense = {
            row: label
            for labels, rows in zip(occurrences.by_sense.labels, _split(occurrences.by_sense), strict=True)
            for row, label in zip(rows.tolist(), labels, strict=True)
        }
        words = _by_senses_and_frequency(occurrences) if words is None else words
        self.groups = _groups(occurrences, self.sense, words, most, each=each)
        self.dim, self.layers = dim, list[int]()
        self.own: list[np.ndarray] = []  # a layer each: (rows, 2)
        self.loads: list[np.ndarray] = []  # (rows, RANK) coordinates along the layer's directions, each of length 1
        self.directions: list[np.ndarray] = []  # (words, RANK, d) the directions, as long as the spread along them

    def take(self, reader: WordReader) -> None:
        """Keep the words' planes at the reader's layer."""
        own, loads, directions = [], [], []
        for block in reader.blocks_of(self.groups):
            length = np.linalg.norm(block.x, axis=2, keepdims=True)
            unit = np.divide(block.x, length, out=np.zeros_like(block.x), where=length > 0)
            c = unit - unit.mean(axis=1, keepdims=True)  # (w, n, d)
            value, vector = np.linalg.eigh(np.matmul(c, c.transpose(0, 2, 1)))
            value = np.where(value > (NOISE * reader.eps) ** 2 * c.shape[1], value, 0)
            load = _fix_signs(vector[:, :, : -RANK - 1 : -1]) * (value > 0)[:, None, : -RANK - 1 : -1]
            load = np.pad(load, ((0, 0), (0, 0), (0, RANK - load.shape[2])))  # 3 rows have 3 directions
            direction = np.matmul(load.transpose(0, 2, 1), c)  # (w, RANK, d)
            own.append((load * np.linalg.norm(direction, axis=2)[:, None])[:, :, :2].reshape(-1, 2))
            loads.append(load.reshape(-1, RANK))
            directions.append(direction)
        assert reader.place.layer is not None
        self.layers.append(reader.place.layer)
        self.own.append(np.concatenate([np.zeros((0, 2), np.float32), *own]))
        self.loads.append(np.concatenate([np.zeros((0, RANK), np.float32), *loads]))
        self.directions.append(np.concatenate([np.zeros((0, RANK, self.dim), np.float32), *directions]))

    def follow_up(self, tables: Mapping[str, pd.DataFrame]) -> WordMap | None:
        """The map of the most and least self-similar words of each layer that this one leaves out, with at most as many
        rows and `OCCURRENCES` of a word, or fewer of each, so that all have some; None if there are none."""
        projected = set(self.groups.keys)
        every = dict.fromkeys(word for words in extremes(tables, self.layers).values() for word in words)
        listed = [word for word in every if word not in projected]
        if not listed:
            return None
        each = min(OCCURRENCES, max(2, self.most // len(listed)))
        return WordMap(self.store, self.occurrences, self.corpus, dim=self.dim, most=self.most, words=listed, each=each)

    def table(self) -> pd.DataFrame:
        """One row per occurrence: word, part of speech and sense ("": not known), the sentence's number and text, where
        the word stands in it (characters), then per layer x and y on its own plane and on the common one."""
        import pandas as pd

        sentences, positions = self._sentence_positions()
        contexts = [self.corpus.sentences[i] for i in sentences]
        spans = [s.spans[p] if p >= 0 else (0, 0) for s, p in zip(contexts, positions, strict=True)]
        pos = self.corpus.tags.get("pos")
        columns: dict[str, object] = {
            "word": [word for word, n in zip(self.groups.keys, self.groups.counts, strict=True) for _ in range(n)],
            "pos": [pos[i][p] if pos and p >= 0 else "" for i, p in zip(sentences, positions, strict=True)],
            "sense": [self.sense.get(row, "") for row in self.groups.rows.tolist()],
            "sentence": sentences,
            "text": [sentence.text for sentence in contexts],
            "start": [start for start, _ in spans],
            "end": [end for _, end in spans],
        }
        for name, points in (("own", self.own), ("common", self._common())):
            for layer, xy in zip(self.layers, points, strict=True):
                columns |= {f"{name}_{axis}_{layer}": xy[:, i].round(4) for i, axis in enumerate("xy")}
        return pd.DataFrame(columns)

    def _common(self) -> list[np.ndarray]:
        """(rows, 2) for each layer: the points on the plane that each word's layers have in common."""
        n, starts = len(self.own), self.groups.starts
        stacked = np.stack(self.directions, axis=1)  # (words, layers, RANK, d)
        words, _, rank, dim = stacked.shape
        flat = stacked.reshape(words, n * rank, dim)
        value, vector = np.linalg.eigh(np.matmul(flat, flat.transpose(0, 2, 1)))
        length = np.sqrt(np.maximum(value[:, :-3:-1], np.finfo(np.float32).tiny))
        along = vector[:, :, :-3:-1] * length[:, None]  # (words, layers * RANK, 2): each direction's place on the plane
        along = _fix_signs(along).reshape(words, n, rank, 2)
        of = np.repeat(np.arange(words), np.diff(starts))  # each row's word
        return [np.matmul(self.loads[layer][:, None], along[of, layer])[:, 0] for layer in range(n)]

    def _sentence_positions(self) -> tuple[list[int], list[int]]:
        """Of each row the sentence's first number in the corpus, and the word's place in it; -1 without a word."""
        rows, offsets = self.groups.rows, np.asarray(self.store.offsets, np.int64)
        stored = np.searchsorted(offsets, rows, side="right") - 1
        first = dict(zip(*(part.tolist() for part in np.unique(self.store.stored_of, return_index=True)), strict=True))
        positions = getattr(self.store, "positions", None)
        at = (rows - offsets[stored]) if positions is None else np.asarray(positions)[rows]
        return [first[i] for i in stored.tolist()], at.tolist()


def extremes(tables: Mapping[str, pd.DataFrame], layers: Sequence[int]) -> dict[int, list[str]]:
    """The words of the page's lists by layer, the last layer first: its `LISTED` most contextual words and its `LISTED`
    least contextual ones, by ascending self-similarity (above chance, where that is known), or fewer where there are
    few. Words that are constant by construction are in no list, nor are those whose 95% interval is half the room above
    chance or wider. Empty without a measure that has standard errors."""
    label = next((label for label in tables if f"{label}_errors" in tables), None)
    if label is None:
        return {}
    table = tables[label]
    varying = (table[~table["constant"].astype(bool)] if "constant" in table else table).set_index("word")
    errors = tables[f"{label}_errors"].set_index("word")
    name = "adjusted" if any(column.startswith("adjusted_") for column in table) else "raw"
    words: dict[int, list[str]] = {}
    for layer in reversed(layers):
        values = varying[f"{name}_{layer}"].dropna()
        room = 1 - (varying[f"raw_{layer}"] - values).mean() if name == "adjusted" else 1.0
        is_sure = 2 * Z * errors[f"error_{layer}"].reindex(values.index) < room / 2
        ranking = values[is_sure].sort_values(kind="stable").index
        n = min(LISTED, len(ranking) // 2)
        words[layer] = [*ranking[:n], *ranking[len(ranking) - n :]]
    return words


def _by_senses_and_frequency(occurrences: Occurrences) -> list[str]:
    """Words with senses, those with most before, then others of all frequencies."""
    senses = {
        word: len(set(labels))
        for word, labels in zip(occurrences.by_sense.keys, occurrences.by_sense.labels, strict=True)
    }
    words = occurrences.words
    order = sorted(range(len(words)), key=lambda i: (-senses.get(words[i], 0), -int(occurrences.counts[i]), words[i]))
    labelled = [words[i] for i in order if words[i] in senses]
    others = [words[i] for i in order[len(labelled) :]]
    levels = np.unique(np.geomspace(1, max(len(others), 1), LEVELS).astype(int)) - 1
    return [*labelled, *(others[level] for level in levels.tolist() if others)]


def _groups(occurrences: Occurrences, sense: dict[int, str], words: Sequence[str], most: int, *, each: int) -> Groups:
    """At most `most` rows of these words, the first first, and `each` of one word, labelled ones before; each row once.

    They are returned by ascending number of rows.
    """
    groups, number = occurrences.by_word, {word: i for i, word in enumerate(occurrences.words)}
    rows_of: dict[str, np.ndarray] = {}
    for word in words:
        i = number[word]
        rows = np.unique(groups.rows[groups.starts[i] : groups.starts[i + 1]])
        if len(rows) > each:
            labelled = np.array([row for row in rows.tolist() if row in sense], np.int64)[:each]
            rest = np.setdiff1d(rows, labelled)
            rest = rest[np.linspace(0, len(rest) - 1, each - len(labelled)).round().astype(int)]
            rows = np.union1d(labelled, rest)
        if len(rows) > 1 and sum(map(len, rows_of.values())) + len(rows) <= most:
            rows_of[word] = rows
    order = sorted(rows_of, key=lambda word: (len(rows_of[word]), word))
    starts = np.cumsum([0, *(len(rows_of[word]) for word in order)])
    return Groups(order, starts, np.concatenate([groups.rows[:0], *(rows_of[word] for word in order)]))


def _split(groups: Groups) -> list[np.ndarray]:
    return [groups.rows[a:b] for a, b in zip(groups.starts[:-1], groups.starts[1:], strict=True)]


def _fix_signs(vectors: np.ndarray) -> np.ndarray:
    """Columns (..., n, k) with the sign that makes their largest entry positive; of nearly equal ones the first."""
    size = np.abs(vectors)
    first = (size > 0.999 * size.max(axis=-2, keepdims=True)).argmax(axis=-2)[..., None, :]
    signs: np.ndarray = np.sign(np.take_along_axis(vectors, first, axis=-2))
    return vectors * np.where(signs == 0, 1, signs)
