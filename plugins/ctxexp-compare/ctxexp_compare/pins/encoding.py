"""A pin's rows from an encoder, without the vector cache: what the engine gives now is the question."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from ctxexp import EncodedSentence, Encoder, Sentence
from ctxexp.errors import EncodingError
from ctxexp_compare.pins.text import PinRows

BATCH = 32  # sentences at once, where nothing else is asked for


def encode(
    encoder: Encoder, view: Encoder | None, sentences: Sequence[Sentence], *, batch: int = BATCH
) -> tuple[list[EncodedSentence], list[EncodedSentence]]:
    """Each sentence's vectors, and those that a view of sentences gives (none without a view).

    Sentences of like length go through the model together, at most `batch` at once.
    """
    order = list(range(len(sentences)))
    words, pooled = dict[int, EncodedSentence](), dict[int, EncodedSentence]()
    with _without_warnings():
        if encoder.sequential:
            batch = len(sentences)
        else:
            lengths = encoder.lengths(sentences)
            order.sort(key=lambda i: lengths[i])
        for at in range(0, len(order), batch):
            numbers = order[at : at + batch]
            own = [sentences[i] for i in numbers]
            words |= zip(numbers, _encoded(encoder, own, numbers), strict=True)
            if view is not None:
                pooled |= zip(numbers, _encoded(view, own, numbers), strict=True)
    every = range(len(sentences))
    return [words[i] for i in every], [pooled[i] for i in every if i in pooled]


def _encoded(encoder: Encoder, sentences: Sequence[Sentence], numbers: Sequence[int]) -> list[EncodedSentence]:
    """The encoder's answers for a batch; `numbers` are its sentences', for messages."""
    given = list(encoder.encode(sentences))
    if len(given) != len(sentences):
        raise EncodingError(f"encoder {encoder.name!r} gave {len(given)} results for {len(sentences)} sentences")
    for i, one in zip(numbers, given, strict=True):
        encoder.check_encoded(i, one)
    return given


class EncodedText:
    """A text as an encoder gives it: its words' vectors, and those of its sentences in the model's own way.

    `view` is the encoder's own of sentences; None: sentences get no vectors.
    """

    def __init__(
        self, encoder: Encoder, view: Encoder | None, sentences: Sequence[Sentence], *, batch: int = BATCH
    ) -> None:
        self.words, given = encode(encoder, view, sentences, batch=batch)
        own = view.poolings[0] if view is not None else ""
        self.pooled = {i: one.layers[:, [one.units.index(own)]] for i, one in enumerate(given) if own in one.units}

    def vectors(self, rows: PinRows) -> tuple[np.ndarray, np.ndarray]:
        """(layers, n, dim) of the rows of words, and of those of sentences; NaN where it has no such unit."""
        words = [one.layers for one in self.words]
        return (
            _rows(dict(enumerate(words)), rows.sentence[~rows.is_sentence], rows.unit[~rows.is_sentence]),
            _rows(self.pooled or {0: words[0]}, rows.sentence[rows.is_sentence], rows.unit[rows.is_sentence]),
        )


def _rows(layers: Mapping[int, np.ndarray], sentences: np.ndarray, units: np.ndarray) -> np.ndarray:
    """(layers, n, dim) of the units of sentences, whose vectors are (layers, units, dim)."""
    n_layers, _, dim = next(iter(layers.values())).shape
    vectors = np.full((n_layers, len(sentences), dim), np.nan, np.float32)
    for i, (sentence, unit) in enumerate(zip(sentences.tolist(), units.tolist(), strict=True)):
        if sentence in layers and unit < layers[sentence].shape[1]:
            vectors[:, i] = layers[sentence][:, unit]
    return vectors


def spare_processor() -> None:
    """Let torch's threads sleep while they wait for each other, where it isn't loaded yet and the environment says
    nothing: beside other work, threads that spin take twice the processor time of a check."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@contextmanager
def threads(n: int | None) -> Iterator[None]:
    """torch with so many threads, where it is loaded; None: as it is."""
    torch = sys.modules.get("torch")
    if n is None or torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Without the warning of a text that is cut: one is in the pin to see where."""
    log = logging.getLogger("ctxexp")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
