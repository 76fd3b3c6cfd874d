"""A space to compare: a model's vectors by layer, and which occurrence of which text each row is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp import Corpus, Encoder, Occurrences
from ctxexp.command import Progress, configured
from ctxexp.command.face import Text
from ctxexp.datasets import user_path
from ctxexp.errors import DataError, MetricError
from ctxexp.measuring.study import Study
from ctxexp.occurrences import Layers, MemoryLayers
from ctxexp.vectors.stores import Vectors

if TYPE_CHECKING:
    from ctxexp.command.config import Config


@dataclass(frozen=True)
class Space:
    """Measured occurrences of distinct sentences: occurrence i is characters `spans[i]` of `texts[sentence[i]]`, and
    row `rows[i]` of each layer. `blocks` are the numbers of the units that intervals resample, `unit` is their name."""

    label: str
    layers: Layers
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
        from ctxexp.command.compose import config_of_run  # Hydra's

        return cls.of_config(config_of_run(user_path(folder)))

    @classmethod
    def of_model(cls, model: str | Encoder, text: Text | None = None, *, options: Sequence[str] = ()) -> Space:
        """The space of a model by its name, or of an encoder, over a text as `ctxexp.measure` takes it."""
        return cls.of_config(configured(model, text, options))

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
        return cls(label, MemoryLayers(vectors), every, texts, every, spans, own, unit, words is not None)

    @classmethod
    def of_config(cls, config: Config) -> Space:
        """The space of the model and the text of a run's config."""
        from ctxexp.command import Built

        built = Built(config)
        return cls.of_study(built.study, built.vectors, built.title)

    @classmethod
    def of_study(cls, study: Study, vectors: Vectors, label: str, *, progress: Progress | None = None) -> Space:
        """The space of the words that a study measures, whatever its metrics."""
        layers, occurrences, positions = study.space(vectors, progress or Progress())
        return cls._of(label, layers, occurrences, positions, study.corpus)

    @classmethod
    def _of(cls, label: str, layers: Layers, occurrences: Occurrences, positions: np.ndarray, corpus: Corpus) -> Space:
        distinct, units = occurrences.distinct, occurrences.units
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
            units.of_row[rows[has_word]],
            units.name,
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
