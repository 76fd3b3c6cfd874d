"""A space to compare: a model's vectors by layer, and which occurrence of which text each row is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.dataset import Corpus
from ctxexp.errors import DataError, MetricError
from ctxexp.face import Text, configured
from ctxexp.files.paths import user_path
from ctxexp.measuring.occurrences import Occurrences
from ctxexp.model import Encoder
from ctxexp.progress import Progress
from ctxexp.study import Study, Vectors
from ctxexp.vectors.layers import Layers

if TYPE_CHECKING:
    from ctxexp.command.config import Config


@dataclass(frozen=True)
class Space:
    """Measured occurrences of distinct sentences: occurrence i is characters `spans[i]` of `texts[sentence[i]]`, and
    row `rows[i]` of each layer. `blocks` number what intervals draw anew, `unit` says what that is."""

    label: str
    layers: Layers
    rows: np.ndarray  # (m,) int64
    texts: Sequence[str]
    sentence: np.ndarray  # (m,) int64
    spans: np.ndarray  # (m, 2) int64
    blocks: np.ndarray  # (m,) int64
    unit: str = "sentence"
    has_words: bool = True  # whether the characters of an occurrence are a word, and no mere number

    @classmethod
    def of_run(cls, folder: Path | str) -> Space:
        """The space of a finished run, from the vectors that the cache holds (else encoded again, by its config).

        Raises ConfigError for a folder without a run.
        """
        from ctxexp.command.compose import saved  # Hydra's
        from ctxexp.command.labels import label

        config = saved(user_path(folder))
        return cls._of_config(config, label(config))

    @classmethod
    def of_model(cls, model: str | Encoder, text: Text | None = None, *, options: Sequence[str] = ()) -> Space:
        """The space of a model by its name, or of an encoder, over a text as `ctxexp.measure` takes it."""
        from ctxexp.command.labels import label

        config = configured(model, text, options)
        return cls._of_config(config, label(config))

    @classmethod
    def of_arrays(
        cls, label: str, vectors: np.ndarray, *, blocks: np.ndarray | None = None, words: Sequence[str] | None = None
    ) -> Space:
        """Vectors in hand (n_layers, n, d), one row an occurrence: row i of one space is row i of another."""
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
        return cls(label, _Held(vectors), every, texts, every, spans, own, unit, words is not None)

    @classmethod
    def _of_config(cls, config: Config, label: str) -> Space:
        from ctxexp.command.run import study_of, vectors_of

        return cls.of_study(study_of(config), vectors_of(config), label)

    @classmethod
    def of_study(cls, study: Study, vectors: Vectors, label: str, *, progress: Progress | None = None) -> Space:
        """What the study measures of words, whatever its metrics."""
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
        kept = places >= 0  # of two equal words of which one has no vector nobody knows which it is
        own = np.repeat(np.array(distinct.keys, np.int64), distinct.counts)[kept]
        known, sentence = np.unique(own, return_inverse=True)
        found = [corpus.sentences[i] for i in known.tolist()]
        spans = [found[s].spans[p] for s, p in zip(sentence.tolist(), places[kept].tolist(), strict=True)]
        return cls(
            label,
            layers,
            rows[kept],
            [one.text for one in found],
            sentence,
            np.array(spans, np.int64).reshape(-1, 2),
            units.of_row[rows[kept]],
            units.name,
        )

    def words(self, which: np.ndarray) -> list[str]:
        """The word forms of occurrences."""
        ends = zip(self.sentence[which].tolist(), self.spans[which].tolist(), strict=True)
        return [self.texts[s][a:b] for s, (a, b) in ends]

    def merged(self) -> list[tuple[int, int]]:
        """Occurrences side by side in a sentence, of different words, that have one and the same vector in the last
        layer: a piece of the tokenizer covers both."""
        order = np.lexsort([self.spans[:, 0], self.sentence])
        a, b = order[:-1], order[1:]
        beside = self.sentence[a] == self.sentence[b]
        a, b = a[beside], b[beside]
        last = self.layers.layer(self.layers.numbers[-1])
        pairs = zip(self.rows[a].tolist(), self.rows[b].tolist(), strict=True)
        found = np.array([np.array_equal(last[i], last[j]) for i, j in pairs], bool)
        a, b = a[found], b[found]
        words = zip(self.words(a), self.words(b), a.tolist(), b.tolist(), strict=True)
        return [(i, j) for one, other, i, j in words if one.casefold() != other.casefold()]


class _Held:
    """Vectors in memory as layers."""

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors, self.n_layers, self.dim = vectors, len(vectors), vectors.shape[2]
        self.numbers = range(self.n_layers)

    def layer(self, i: int) -> np.ndarray:
        layer: np.ndarray = self.vectors[i]
        return layer
