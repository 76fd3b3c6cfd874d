"""Leave out the occurrences of extreme norm."""

from __future__ import annotations

import numpy as np

from ctxexp.control import Control
from ctxexp.errors import ConfigError
from ctxexp.measuring.occurrences import Occurrences
from ctxexp.model import Encoder, TextStart
from ctxexp.vectors.layers import Layers

CHUNK_BYTES = 16 << 20  # bytes of vectors, in float64, in memory at a time


class NoSinks(Control):
    """Occurrences whose norm exceeds `factor` times the layer's median norm in any layer are not measured: attention
    sinks and massive activations.

    The median is taken before any transform, over the occurrences that would be measured; in a bounded corpus
    (`words.max_contexts`) over those in its sample of sentences. The control selects on the outcome: the norm that
    decides is seen by the measures too, so that a curve may shift because of this selection alone. `no_first` and
    `model.prefix` choose by position instead.
    """

    name = "no_sinks"

    def __init__(self, *, factor: float = 5.0) -> None:
        if not factor > 1:
            raise ConfigError(
                f"control no_sinks needs a factor above 1, got {factor}: half of all norms exceed the median"
            )
        self.factor = float(factor)
        self.label = f"no sinks above {self.factor:g} × median"

    def note(self, start: TextStart | None) -> str:
        return "it selects on the outcome (their norms); control=no_first and model.prefix choose by place"

    def require(self, encoder: Encoder) -> None:
        if len(encoder.layer_numbers) < encoder.n_layers:
            raise ConfigError(
                f"control no_sinks judges an occurrence by its norm in every layer, of which only "
                f"{', '.join(map(str, encoder.layer_numbers))} are there; leave model.layers out"
            )

    def left_out(self, store: Layers, occurrences: Occurrences) -> np.ndarray:
        rows = occurrences.rows
        # A bounded corpus has at most so many occurrences of each word, so that frequent words are too few in it;
        # the sentences that it samples have them as often as the text.
        in_sentence_sample = np.isin(rows, occurrences.by_sentence.rows)
        out = np.zeros(len(occurrences.places), bool)
        step = max(1, CHUNK_BYTES // (8 * store.dim))
        for i in store.layer_numbers:
            vectors = store.layer(i)
            squares = np.empty(len(rows))
            for a in range(0, len(rows), step):
                chunk = vectors[rows[a : a + step]].astype(np.float64)
                squares[a : a + step] = np.einsum("nd,nd->n", chunk, chunk)
            norms = np.sqrt(squares)
            out[rows[norms > self.factor * np.median(norms[in_sentence_sample])]] = True
        return out
