"""What an encoder gives now, without the vector cache: that is the question."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ctxexp import EncodedSentence, Encoder, Sentence
from ctxexp.errors import EncodingError
from ctxexp_compare.light.pin import PinRows

BATCH = 32  # sentences at once, where nothing else is asked for


def encode(encoder: Encoder, sentences: Sequence[Sentence], *, batch: int = BATCH) -> list[EncodedSentence]:
    """Each sentence's vectors; those of like length go through the model together, at most `batch` at once. Raises
    EncodingError for what breaks the contract."""
    order, encoded = list(range(len(sentences))), dict[int, EncodedSentence]()
    with _without_warnings():
        if encoder.sequential:
            batch = len(sentences)
        else:
            lengths = encoder.lengths(sentences)
            order.sort(key=lambda i: lengths[i])
        for at in range(0, len(order), batch):
            numbers = order[at : at + batch]
            given = list(encoder.encode([sentences[i] for i in numbers]))
            if len(given) != len(numbers):
                raise EncodingError(f"encoder {encoder.name!r} gave {len(given)} results for {len(numbers)} sentences")
            for i, one in zip(numbers, given, strict=True):
                encoder.check_encoded(i, one)
                encoded[i] = one
    return [encoded[i] for i in range(len(sentences))]


def text_vectors(view: Encoder, texts: Sequence[str], pooling: str, *, batch: int = BATCH, at: int = -1) -> np.ndarray:
    """(n, dim) of whole texts in the last layer, or in that `at` this place among the view's; NaN for a text without
    such a vector."""
    encoded = encode(view, [Sentence(text, (), ()) for text in texts], batch=batch)
    vectors = np.full((len(texts), view.dim), np.nan, np.float32)
    for i, one in enumerate(encoded):
        if pooling in one.units:
            vectors[i] = one.layers[at, one.units.index(pooling)]
    return vectors


def word_rows(encoded: Sequence[EncodedSentence], rows: PinRows) -> np.ndarray:
    """(layers, n, dim) of the rows; NaN where a sentence has no such unit."""
    n_layers, _, dim = encoded[0].layers.shape
    vectors = np.full((n_layers, len(rows), dim), np.nan, np.float32)
    for i, (sentence, unit) in enumerate(zip(rows.sentence.tolist(), rows.unit.tolist(), strict=True)):
        if unit < encoded[sentence].layers.shape[1]:
            vectors[:, i] = encoded[sentence].layers[:, unit]
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
    """Without the warning of a text that is cut: one is there to see where."""
    log = logging.getLogger("ctxexp")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
