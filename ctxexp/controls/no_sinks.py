"""Leave out the occurrences of extreme norm."""

from __future__ import annotations

import numpy as np

from ctxexp.control import Control
from ctxexp.errors import ConfigError
from ctxexp.measuring.occurrences import Occurrences
from ctxexp.model import Encoder, TextStart
from ctxexp.vectors.layers import Layers

CHUNK_BYTES = 16 << 20  # rows whose norms are taken at a time


class NoSinks(Control):
    """Occurrences whose norm exceeds `factor` times the layer's median norm in any layer are not measured: attention
    sinks and massive activations. Median over the occurrences that would be measured, before any transform.

    It selects on the outcome: rows leave by a norm that the measures see too, so that a curve may move for that alone.
    `no_first` and `model.prefix` choose by place instead."""

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
        text = np.isin(rows, occurrences.by_sentence.rows)  # of a bounded corpus a sample of the text, not of each word
        out = np.zeros(len(occurrences.places), bool)
        step = max(1, CHUNK_BYTES // (8 * store.dim))
        for i in store.layer_numbers:
            vectors = store.layer(i)
            squares = np.empty(len(rows))
            for a in range(0, len(rows), step):
                piece = vectors[rows[a : a + step]].astype(np.float64)
                squares[a : a + step] = np.einsum("nd,nd->n", piece, piece)
            norms = np.sqrt(squares)
            out[rows[norms > self.factor * np.median(norms[text])]] = True
        return out
