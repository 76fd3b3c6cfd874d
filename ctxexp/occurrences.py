"""Vectors by layer, and which of their rows belong together: a word's occurrences, all of them or by sense, a
sentence's words, everything. Metrics, transforms, controls and baselines read these.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from ctxexp.dataset import Corpus, Sentence
from ctxexp.errors import DataError, MetricError
from ctxexp.maths.resampling import Clusters, blocks_of
from ctxexp.maths.word_mix import MixedWords, WordMix
from ctxexp.model import Encoder

EQUAL = WordMix(weights="equal")


class RowIndex(Protocol):
    """The part of a store that says which unit each row is; see `ctxexp.vectors.Store`.

    A store whose units may not be the corpus's words also has `positions` (n_rows,), each row's word in its sentence or
    -1; without it units are words. One of a model also has `tokens` (n_rows, 3).
    """

    @property
    def vocabulary(self) -> Sequence[str]: ...
    @property
    def unit_codes(self) -> np.ndarray: ...  # (n_rows,)
    @property
    def offsets(self) -> np.ndarray: ...  # (n_stored + 1,)
    @property
    def stored_of(self) -> np.ndarray: ...  # (n_sentences,)


@dataclass(frozen=True)
class Groups:
    """Groups of rows, smallest first: group g has name keys[g] and rows[starts[g]:starts[g + 1]]."""

    keys: Sequence[Hashable]
    starts: np.ndarray  # (n_groups + 1,) int64
    rows: np.ndarray  # (sum of counts,) int64
    labels: Sequence[tuple[str, ...]] = ()  # of senses: a group's labels, a row each

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def counts(self) -> np.ndarray:
        """(n_groups,) int64, ascending."""
        return np.diff(self.starts)

    def subset(self, index: np.ndarray) -> Groups:
        """Only the groups `index`, ascending."""
        rows = [self.rows[self.starts[i] : self.starts[i + 1]] for i in index.tolist()]
        starts = np.concatenate([[0], np.cumsum(self.counts[index])])
        labels = [self.labels[i] for i in index.tolist()] if self.labels else ()
        return Groups([self.keys[i] for i in index.tolist()], starts, np.concatenate([self.rows[:0], *rows]), labels)

    def blocks(self, most_rows: int) -> Iterator[tuple[Sequence[Hashable], np.ndarray, Sequence[tuple[str, ...]]]]:
        """(keys, rows (w, n), labels): equal-sized groups together, at most `most_rows` rows but for a larger group."""
        counts = self.counts
        bounds = np.flatnonzero(np.diff(counts, prepend=-1, append=-1))
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            n = int(counts[first])
            step = max(1, most_rows // n)
            for a in range(first, last, step):
                b = min(a + step, last)
                yield self.keys[a:b], self.rows[self.starts[a] : self.starts[b]].reshape(b - a, n), self.labels[a:b]


@dataclass(frozen=True)
class Occurrences:
    """The index of a corpus's occurrences, built from the units that the store holds.

    A sentence that the corpus repeats counts as often as it stands there (deduplicate the corpus to count it once),
    but it is one context: a word needs `min_contexts` DISTINCT sentences. Baselines draw from distinct sentences
    only.

    Example:
        >>> from ctxexp import Metric
        >>> class Words(Metric):
        ...     over = "corpus"
        ...     def bind_text(self, text):
        ...         self.n = len(text.occurrences.groups("word"))
        ...     def update(self, group): ...
        ...     def compute(self):
        ...         return {"words": float(self.n)}
        >>> import ctxexp
        >>> two = ["The bank was wet.", "The bank lent us money."]
        >>> float(ctxexp.measure("gpt2", two, metrics={"n": Words}, min_contexts=2, progress=False)["n"].max())
        2.0
    """

    words: list[str]  # by count, then alphabetically
    counts: np.ndarray  # (n_words,) occurrences
    contexts: np.ndarray  # (n_words,) distinct sentences
    by_word: Groups
    by_sense: Groups  # with labels: every word with one, each of its labelled rows once
    by_sentence: Groups  # keys: the sentence's index in the corpus; kept units only, and sentences that have any
    distinct: Groups  # the same with each distinct sentence once; keys: its first place in the corpus
    min_contexts: int  # distinct sentences that a word needs
    # (n_rows,) each store row's word as a number, whether the word has enough contexts or not; -1: left out
    forms: np.ndarray
    places: np.ndarray  # (n_rows,) each store row's place in its sentence, 0 first, units that aren't kept counted too
    commonest: tuple[str, int]  # the word in most distinct sentences (then by count), enough or not, and in how many
    clusters: Clusters  # what is drawn anew behind an interval
    rows: np.ndarray  # each measured row once, ascending
    mix: WordMix
    text_counts: Mapping[str, int]  # occurrences of each word in the text, of which a bounded corpus has some
    text_total: int  # of all its words
    missing_words: int  # by which the text would be long enough to fill each band of the mix, about; 0: it is

    @classmethod
    def of(
        cls,
        store: RowIndex,
        corpus: Corpus,
        *,
        min_contexts: int = 5,
        keep: Callable[[str], bool] = bool,
        key: Callable[[str], str] = str,
        measured: np.ndarray | None = None,
        mix: WordMix = EQUAL,
    ) -> Occurrences:
        """Index the store's rows. `keep` false: the unit is never measured; `key` gives the form to group units by.

        `measured` (n_rows,) bool: store rows that are false are left out of every group, as if `keep` were false for
        this one occurrence; words, sentences and baselines all see the rest only. `mix` weighs words in means.
        """
        stored_of = np.asarray(store.stored_of, np.int64)
        if len(stored_of) != len(corpus.sentences):
            raise MetricError(
                f"the store maps {len(stored_of)} sentences but corpus {corpus.name!r} has {len(corpus.sentences)}; "
                "open the store with this corpus"
            )
        offsets = np.asarray(store.offsets, np.int64)
        forms, form_of_row = _forms(store, keep, key)
        if measured is not None:
            form_of_row = np.where(measured, form_of_row, -1)

        rows, sentence = _every(stored_of, offsets)
        is_measured = form_of_row[rows] >= 0
        if not is_measured.any():
            raise MetricError(f"corpus {corpus.name!r} has no unit to measure: all {len(rows)} are left out")
        rows, sentence = rows[is_measured], sentence[is_measured]
        form = form_of_row[rows]

        first: dict[Sentence, int] = {}  # a sentence's first place; a store may hold equal sentences apart
        place = np.array([first.setdefault(s, i) for i, s in enumerate(corpus.sentences)], np.int64)
        positions = np.asarray(getattr(store, "positions", within_rows(offsets)))
        of_word, of_text = _bounds(corpus, positions[rows], sentence)
        pairs = np.unique((form * len(place) + place[sentence])[of_word])
        contexts = np.bincount(pairs // len(place), minlength=len(forms))
        counts = np.bincount(form[of_word], minlength=len(forms))
        order = np.flatnonzero(contexts >= min_contexts)
        order = order[np.argsort(counts[order], kind="stable")]  # forms are sorted: ties stay alphabetical
        words = [forms[i] for i in order.tolist()]
        top = int(np.lexsort([counts, contexts])[-1])
        everywhere = np.arange(len(place))
        once = of_text & (place == everywhere)[sentence]
        labelled = np.full_like(form_of_row, -1)
        labelled[rows[of_word]] = form[of_word]
        return cls(
            words,
            counts[order],
            contexts[order],
            _grouped(form[of_word], rows[of_word], order, words),
            _by_sense(store, corpus, labelled, forms),
            _by_size(sentence[of_text], rows[of_text], everywhere),
            _by_size(sentence[once], rows[once], everywhere),
            min_contexts,
            form_of_row,
            within_rows(offsets) if corpus.bound is None else positions,
            (forms[top], int(contexts[top])),
            clusters_of(corpus, place, rows, sentence, int(offsets[-1])),
            np.unique(rows),
            mix,
            *_text_counts(corpus, forms, counts, int(of_text.sum())),
            mix.missing_words(counts, contexts, int(of_text.sum()), min_contexts) if corpus.bound is None else 0,
        )

    @property
    def n_occurrences(self) -> int:
        """Kept units over all sentences of the corpus."""
        return len(self.by_sentence.rows)

    def require_contexts(self) -> None:
        """Raise `DataError` where no word can have a second context, let alone enough: the text is one sentence."""
        if not self.words:
            check_contexts(len(self.distinct), self.min_contexts)

    def unrelated(self, order: np.ndarray) -> np.ndarray:
        """Of the distinct sentences in this order those that no gold pair links to one before them."""
        if self.clusters.pair_group is None:
            return order
        group = self.clusters.pair_group[np.asarray(self.distinct.keys, np.int64)[order]]
        return order[np.sort(np.unique(group, return_index=True)[1])]

    def mixed(self, kind: str, indices: np.ndarray | None = None) -> MixedWords | None:
        """The weights of the groups of a kind, or of those among them; None: of groups that aren't words."""
        if kind not in ("word", "sense"):
            return None
        if kind == "word" and indices is None:
            return self.mixed_words
        keys = self.groups(kind).keys
        counts = np.array([self.text_counts[str(key)] for key in keys], np.int64)
        return self.mix.of(counts if indices is None else counts[indices], self.text_total)

    @cached_property
    def mixed_words(self) -> MixedWords:
        """The weights of the words."""
        return self.mix.of(np.array([self.text_counts[word] for word in self.words], np.int64), self.text_total)

    def groups(self, kind: str) -> Groups:
        """The groups of a kind that the corpus itself defines; random samples come from a baseline."""
        if kind == "word":
            return self.by_word
        if kind == "sense":
            return self.by_sense
        if kind == "sentence":
            return self.by_sentence
        rows = self.by_sentence.rows
        if kind == "occurrence":
            return Groups(rows.tolist(), np.arange(len(rows) + 1), rows)
        if kind == "corpus":
            return Groups(["corpus"], np.array([0, len(rows)]), np.sort(rows))
        if kind == "text":
            return Groups(["text"], np.array([0, len(self.rows)]), self.rows)
        raise MetricError(f"no groups of kind {kind!r} in a corpus; expected word, sentence, sense, occurrence, corpus")


@dataclass(frozen=True)
class Text:
    """The measured text: the corpus, the store of its rows, the index of those, and the model that made them.

    `derived` is for what metrics make of it once for all layers, each under a key of its own.

    Example:
        >>> from ctxexp import Metric
        >>> class Sentences(Metric):
        ...     over = "corpus"
        ...     def bind_text(self, text):
        ...         self.n = len(text.corpus.sentences)
        ...     def update(self, group): ...
        ...     def compute(self):
        ...         return {"sentences": float(self.n)}
        >>> import ctxexp
        >>> two = ["The bank was wet.", "The bank lent us money."]
        >>> float(ctxexp.measure("gpt2", two, metrics={"n": Sentences}, min_contexts=2, progress=False)["n"].max())
        2.0
    """

    corpus: Corpus
    store: RowIndex
    occurrences: Occurrences
    encoder: Encoder
    derived: dict[Hashable, object] = field(default_factory=dict)

    @cached_property
    def positions(self) -> np.ndarray:
        """(n_rows,) the number of each row's word in its sentence; -1 where units aren't words."""
        positions: np.ndarray | None = getattr(self.store, "positions", None)
        return self.occurrences.places if positions is None else np.asarray(positions, np.int64)

    @cached_property
    def sentence_of_row(self) -> np.ndarray:
        """(n_rows,) the sentence of the corpus where each row first stands."""
        return np.repeat(self._first_of_stored, np.diff(np.asarray(self.store.offsets)))

    @cached_property
    def tokens(self) -> np.ndarray:
        """(n_rows, 3) where each row's first token stands among those that the model reads with it, its number of
        tokens, and a checksum of its pieces. Where the encoder doesn't tell, each word counts as a token, as in a table
        of word vectors, and the checksum is -1."""
        words = np.where(self.positions < 0, self.occurrences.places, self.positions)
        default = np.stack([words, np.ones_like(words), np.full_like(words, -1)], axis=1)
        tokens: np.ndarray | None = getattr(self.store, "tokens", None)
        return default if tokens is None else np.where(tokens[:, :1] < 0, default, tokens)

    @cached_property
    def _first_of_stored(self) -> np.ndarray:
        """(n_stored,) the sentence of the corpus where each stored one first stands."""
        stored_of = np.asarray(self.store.stored_of)
        first = np.zeros(len(self.store.offsets) - 1, np.int64)
        first[stored_of[::-1]] = np.arange(len(stored_of))[::-1]
        return first


def _text_counts(corpus: Corpus, forms: Sequence[str], counts: np.ndarray, total: int) -> tuple[Mapping[str, int], int]:
    """The occurrences of each word and of all words in the text, before it was bounded."""
    if corpus.bound is not None:
        return corpus.bound.word_counts, corpus.bound.measured_words
    return dict(zip(forms, counts.tolist(), strict=True)), total


def within_rows(offsets: np.ndarray) -> np.ndarray:
    """(n_rows,) each row's place among those of its sentence."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def _bounds(corpus: Corpus, position: np.ndarray, sentence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows, by their words' places and their sentences, count for their words, and which for their sentences:
    (n,) bool each, all true in a corpus without bound."""
    bound = corpus.bound
    if bound is None:
        return np.ones(len(sentence), bool), np.ones(len(sentence), bool)
    width = 1 + max(position.max(initial=0), bound.positions.max(initial=0))
    codes = np.repeat(np.arange(len(bound.is_fully_measured)), np.diff(bound.starts)) * width + bound.positions
    return np.isin(sentence * width + position, codes), bound.is_fully_measured[sentence]


def _every(stored_of: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every occurrence of a corpus, sentence by sentence: its store row and its sentence, (n,) each."""
    lengths = np.diff(offsets)[stored_of]
    sentence = np.repeat(np.arange(len(stored_of)), lengths)
    within = np.arange(len(sentence)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(offsets[stored_of], lengths) + within, sentence


def _forms(store: RowIndex, keep: Callable[[str], bool], key: Callable[[str], str]) -> tuple[list[str], np.ndarray]:
    """The measured words, sorted, and the number of each row's (n_rows,), -1 where it isn't measured."""
    of_unit = [keep(unit) for unit in store.vocabulary]
    forms = sorted({key(unit) for unit, is_word in zip(store.vocabulary, of_unit, strict=True) if is_word})
    number = {form: i for i, form in enumerate(forms)}
    of_code = [number[key(unit)] if is_word else -1 for unit, is_word in zip(store.vocabulary, of_unit, strict=True)]
    rows = np.asarray(store.unit_codes)
    return forms, np.array(of_code, np.int64)[rows] if forms else np.full(len(rows), -1)


def _grouped(code: np.ndarray, rows: np.ndarray, chosen: np.ndarray, keys: Sequence[Hashable]) -> Groups:
    """Groups of the rows with code chosen[0], chosen[1], ..., rows in corpus order."""
    order = np.argsort(code, kind="stable")
    first = np.searchsorted(code[order], chosen)
    counts = np.searchsorted(code[order], chosen, side="right") - first
    starts = np.concatenate([[0], np.cumsum(counts)])
    at = np.repeat(first - starts[:-1], counts) + np.arange(starts[-1])
    return Groups(keys, starts, rows[order[at]])


def _by_size(sentence: np.ndarray, rows: np.ndarray, names: np.ndarray) -> Groups:
    """Groups of the rows by sentence, smallest first, then in corpus order."""
    counts = np.bincount(sentence, minlength=len(names))
    present = np.flatnonzero(counts)
    present = present[np.argsort(counts[present], kind="stable")]
    return _grouped(sentence, rows, present, names[present].tolist())


def _by_sense(store: RowIndex, corpus: Corpus, form_of_row: np.ndarray, forms: Sequence[str]) -> Groups:
    """Groups of the labelled rows by word, smallest first, then by word; rows ascending. A row is there once, however
    often the corpus repeats its sentence: it would be no second occurrence, but its own copy."""
    offsets, stored_of = np.asarray(store.offsets).tolist(), np.asarray(store.stored_of).tolist()
    positions: np.ndarray | None = getattr(store, "positions", None)
    label_of: dict[int, str] = {}
    for sense in corpus.senses:
        start, end = offsets[stored_of[sense.sentence]], offsets[stored_of[sense.sentence] + 1]
        at = sense.position if positions is None else int(np.searchsorted(positions[start:end], sense.position))
        row = start + at
        if row >= end or (positions is not None and positions[row] != sense.position) or form_of_row[row] < 0:
            continue  # its word has no row, or isn't measured
        if label_of.setdefault(row, sense.label) != sense.label:
            raise DataError(
                f"corpus {corpus.name!r}: word {sense.position} of sentence {sense.sentence} has two senses, "
                f"{label_of[row]!r} and {sense.label!r}; expected one sense an occurrence"
            )
    by_form: dict[int, list[int]] = {}
    for row in sorted(label_of):
        by_form.setdefault(int(form_of_row[row]), []).append(row)
    groups = sorted(by_form.items(), key=lambda item: (len(item[1]), item[0]))
    labels = [tuple(label_of[row] for row in rows) for _, rows in groups]
    starts = np.cumsum([0, *(len(rows) for _, rows in groups)])
    return Groups(
        [forms[form] for form, _ in groups], starts, np.array([r for _, rows in groups for r in rows], np.int64), labels
    )


def clusters_of(corpus: Corpus, place: np.ndarray, rows: np.ndarray, sentence: np.ndarray, n_rows: int) -> Clusters:
    """`place` (n_sentences,): where each sentence first stands; `rows`, `sentence`: of the measured occurrences."""
    related = None if corpus.clusters is None else np.asarray(corpus.clusters, np.int64)
    first = place if related is None else related[place]
    is_paired = related is not None and corpus.documents is None
    name = "group of paired sentences" if is_paired else "document"
    if related is None:
        name = "sentence"
    clusters, number = np.unique(first, return_inverse=True)
    of_sentence = blocks_of(number)
    of_row = np.full(n_rows, -1, np.int64)
    of_row[rows[::-1]] = of_sentence[sentence[::-1]]
    return Clusters(name, len(clusters), of_sentence, of_row, first if is_paired else None)


def check_contexts(sentences: int, min_contexts: int) -> None:
    """Raise `DataError` if the measured words stand in one of so many distinct sentences, or in none."""
    if sentences < 2:
        raise DataError(
            f"0 words reach min_contexts={min_contexts} distinct sentences: all measured words stand in "
            f"{sentences} (equal sentences count once); use a corpus of more sentences"
        )


class Layers(Protocol):
    """Vectors by layer: a `ctxexp.vectors.Store`, one that is seen through a transform, or sentence vectors, which are
    NaN for a sentence without one."""

    @property
    def n_layers(self) -> int: ...  # of the model, the input layer 0 counted: 13 of BERT-base
    @property
    def layer_numbers(self) -> Sequence[int]: ...  # of the layers that are there, among 0 .. n_layers - 1
    @property
    def dim(self) -> int: ...
    def layer(self, i: int) -> np.ndarray: ...  # by its number: (n_rows, dim), or (n_sentences, dim) the caller's own


@dataclass(frozen=True)
class MemoryLayers:
    """Vectors in memory, read-only as those of a store."""

    arrays: np.ndarray  # (n_layers, n_rows, dim)

    @property
    def layer_numbers(self) -> Sequence[int]:
        return range(self.n_layers)

    @property
    def n_layers(self) -> int:
        return len(self.arrays)

    @property
    def dim(self) -> int:
        return int(self.arrays.shape[2])

    def layer(self, i: int) -> np.ndarray:
        return read_only(self.arrays[i])


def layer_subset(vectors: Layers) -> tuple[int, ...]:
    """The numbers of the layers that are there if some are missing; an empty tuple if all are there."""
    return tuple(vectors.layer_numbers) if len(vectors.layer_numbers) < vectors.n_layers else ()


def read_only(x: np.ndarray) -> np.ndarray:
    """A view of x that can't be written to, so that no metric or transform changes the vectors of the next one."""
    view = x.view()
    view.flags.writeable = False
    return view
