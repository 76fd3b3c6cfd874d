"""A space to compare: a model's vectors by layer, and which occurrence of which text each row is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ctxexp import Corpus, Encoder, Occurrences, Sentence
from ctxexp.command import Experiment, Progress, configured
from ctxexp.datasets import user_path
from ctxexp.errors import DataError, MetricError

Texts = str | Path | Corpus | Iterable[str | Sequence[str] | Sentence | Mapping[str, Any]]
"""What `ctxexp.measure` takes as its text."""


class SpaceLayers(Protocol):
    """Vectors by layer: a run's, transformed as they were measured, or some in memory."""

    @property
    def layer_numbers(self) -> Sequence[int]: ...  # of the layers that are there
    def layer(self, i: int) -> np.ndarray: ...  # (n_rows, dim)


class ArrayLayers(NamedTuple):
    """Vectors in memory."""

    arrays: np.ndarray  # (n_layers, n_rows, dim)

    @property
    def layer_numbers(self) -> Sequence[int]:
        return range(len(self.arrays))

    def layer(self, i: int) -> np.ndarray:
        return self.arrays[i]


@dataclass(frozen=True)
class Space:
    """Measured occurrences of distinct sentences: occurrence i is characters `spans[i]` of `texts[sentence[i]]`, and
    row `rows[i]` of each layer. `blocks` number the clusters that intervals resample, `unit` is their name."""

    label: str
    layers: SpaceLayers
    rows: np.ndarray  # (m,) int64
    texts: Sequence[str]
    sentence: np.ndarray  # (m,) int64
    spans: np.ndarray  # (m, 2) int64
    blocks: np.ndarray  # (m,) int64
    unit: str = "sentence"
    has_words: bool = True  # whether the characters of an occurrence are a word, not a mere number

    @classmethod
    def of_run(cls, folder: Path | str) -> Space:
        """The space of a finished run, from its vectors in the cache, or encoded again by its config.

        Raises ConfigError for a folder without a run.
        """
        return cls.of_experiment(Experiment.of_run(user_path(folder)))

    @classmethod
    def of_model(cls, model: str | Encoder, text: Texts | None = None, *, options: Sequence[str] = ()) -> Space:
        """The space of a model by its name, or of an encoder, over a text as `ctxexp.measure` takes it."""
        return cls.of_experiment(Experiment(configured(model, text, options)))

    @classmethod
    def of_arrays(
        cls, label: str, vectors: np.ndarray, *, blocks: np.ndarray | None = None, words: Sequence[str] | None = None
    ) -> Space:
        """The space of vectors in memory.

        Args:
            label: a short text that names the space in figures.
            vectors: (n_layers, n, d); row i is the same occurrence in every space.
            blocks: (n,) the number of each row's resampling unit (None: each row is one).
            words: the word of each row (None: without words, chance permutes rows freely).

        Raises:
            MetricError: for vectors that aren't finite, and for arrays of other lengths.

        Example:
            >>> Space.of_arrays("two layers", np.zeros((2, 3, 8)), words=["a", "b", "a"]).words(np.array([0, 2]))
            ['a', 'a']
        """
        if vectors.ndim != 3 or not len(vectors) or not np.isfinite(vectors).all():
            raise MetricError(f"{label}: expected finite vectors of shape (n_layers, n, d), got {vectors.shape}")
        n = vectors.shape[1]
        named = [str(i) for i in range(n)] if words is None else list(words)
        every = np.arange(n)
        own = every if blocks is None else np.asarray(blocks, np.int64)
        if len(named) != n or own.shape != (n,):
            raise MetricError(f"{label}: {len(named)} words and {len(own)} blocks for {n} rows; expected one of each")
        texts = [f"{i}: {word}" for i, word in enumerate(named)]
        spans = np.array([(text.index(": ") + 2, len(text)) for text in texts], np.int64).reshape(n, 2)
        unit = "occurrence" if blocks is None else "block"
        return cls(label, ArrayLayers(vectors), every, texts, every, spans, own, unit, words is not None)

    @classmethod
    def of_experiment(cls, experiment: Experiment) -> Space:
        """The space of the words that a run of these parts measures, whatever its metrics."""
        layers, occurrences, positions = experiment.study.space(experiment.vectors, Progress())
        return cls._of(experiment.title, layers, occurrences, positions, experiment.study.corpus)

    @classmethod
    def _of(
        cls, label: str, layers: SpaceLayers, occurrences: Occurrences, positions: np.ndarray, corpus: Corpus
    ) -> Space:
        distinct, clusters = occurrences.distinct, occurrences.clusters
        rows = distinct.rows
        places = np.asarray(positions)[rows]
        if not len(rows) or (places < 0).all():
            raise DataError(
                f"{label}: none of its units is a word of the text, so that no occurrence has its like in another "
                "model; compare runs with model.pooling=mean, first or last"
            )
        has_word = places >= 0  # of two equal words of which one has no vector nobody knows which it is
        own = np.repeat(np.array(distinct.keys, np.int64), distinct.counts)[has_word]
        numbers, sentence = np.unique(own, return_inverse=True)
        sentences = [corpus.sentences[i] for i in numbers.tolist()]
        spans = [sentences[s].spans[p] for s, p in zip(sentence.tolist(), places[has_word].tolist(), strict=True)]
        return cls(
            label,
            layers,
            rows[has_word],
            [one.text for one in sentences],
            sentence,
            np.array(spans, np.int64).reshape(-1, 2),
            clusters.of_row[rows[has_word]],
            clusters.name,
        )

    def words(self, which: np.ndarray) -> list[str]:
        """The word forms of the occurrences `which`."""
        ends = zip(self.sentence[which].tolist(), self.spans[which].tolist(), strict=True)
        return [self.texts[s][a:b] for s, (a, b) in ends]

    def shared_vectors(self) -> list[tuple[int, int]]:
        """Pairs of neighbouring occurrences in a sentence, of different words, with equal vectors in the last layer: a
        piece of the tokenizer covers both."""
        order = np.lexsort([self.spans[:, 0], self.sentence])
        a, b = order[:-1], order[1:]
        beside = self.sentence[a] == self.sentence[b]
        a, b = a[beside], b[beside]
        last = self.layers.layer(self.layers.layer_numbers[-1])
        pairs = zip(self.rows[a].tolist(), self.rows[b].tolist(), strict=True)
        is_shared = np.array([np.array_equal(last[i], last[j]) for i, j in pairs], bool)
        a, b = a[is_shared], b[is_shared]
        words = zip(self.words(a), self.words(b), a.tolist(), b.tolist(), strict=True)
        return [(i, j) for one, other, i, j in words if one.casefold() != other.casefold()]


def evenly_spaced(numbers: Sequence[int], most: int | None) -> list[int]:
    """At most `most` of the numbers (None: all), evenly spaced, the first and the last among them."""
    if most is None or len(numbers) <= most:
        return list(numbers)
    return [numbers[round(at)] for at in np.linspace(0, len(numbers) - 1, most)]
