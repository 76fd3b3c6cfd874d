"""A text as a model reads it, ahead of its pass: lengths, batches of equal length, counts of unknown pieces."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.errors import EncodingError, plugin_call
from ctxexp.model import Encoder
from ctxexp.transform import chunks

log = logging.getLogger("ctxexp")

WINDOW = 50_000  # sentences that are read, and put into batches, together
SEQUENTIAL_STEP = 64  # sentences of a sequential encoder that are written together
MANY = 0.03  # share of unknown pieces from which a run warns
NEARLY_ALL = 0.9  # and from which there is nothing to measure


class BatchedText:
    """Distinct sentences as the encoder reads them: `lengths` in its tokens (n_sentences,) int64, and the number of
    their pieces and of those that its tokenizer doesn't know (0 of 0 where it can't tell), of the text read so far."""

    def __init__(self, encoder: Encoder, sentences: Sequence[Sentence], batch_tokens: int) -> None:
        self.encoder, self.sentences, self.batch_tokens = encoder, sentences, batch_tokens
        self.lengths = np.zeros(len(sentences), np.int64)
        self.n_unknown_pieces = self.n_pieces = 0

    def batches(self) -> Iterator[np.ndarray]:
        """Sentence numbers, as they are encoded together: in their own order where the encoder is sequential.

        An encoder that `allows_prefetch` reads a window of the text while the one before goes through the model. Raises
        EncodingError where nearly all pieces so far are unknown: words would share one vector.
        """
        n = len(self.sentences)
        windows = list(chunks(n, WINDOW if self.encoder.allows_prefetch else n))
        self._read(*windows[0])
        with ThreadPoolExecutor(1, "read") as thread:
            for i, (start, end) in enumerate(windows):
                ahead = thread.submit(self._read, *windows[i + 1]) if i + 1 < len(windows) else None
                for batch in self._split_into_batches(self.lengths[start:end]):
                    yield start + batch
                if ahead:
                    ahead.result()

    def _read(self, start: int, end: int) -> None:
        encoder, some = self.encoder, self.sentences[start:end]
        with plugin_call("encoder", encoder.name, "could not read the corpus (lengths)"):
            lengths = np.asarray(encoder.lengths(some), np.int64)
        if lengths.shape != (len(some),):
            raise EncodingError(
                f"encoder {encoder.name!r} gave lengths of shape {lengths.shape} for {len(some)} sentences"
            )
        self.lengths[start:end] = lengths
        with plugin_call("encoder", encoder.name, "could not read the corpus (unknown)"):
            unknown, n_pieces = map(int, encoder.count_unknown(some))
        self.n_unknown_pieces, self.n_pieces = self.n_unknown_pieces + unknown, self.n_pieces + n_pieces
        if self.n_unknown_pieces > NEARLY_ALL * self.n_pieces:
            raise EncodingError(
                f"{self.n_unknown_pieces:,} of the text's {self.n_pieces:,} pieces are unknown to the tokenizer of "
                f"{encoder.name!r}, so its vectors would say nothing of the words; is the text in a language and "
                "script of the model, and the tokenizer the model's own?"
            )

    def _split_into_batches(self, lengths: np.ndarray) -> Iterator[np.ndarray]:
        if not self.encoder.sequential:
            yield from equal_length_batches(lengths, self.batch_tokens)
            return
        everyone = np.arange(len(lengths))
        yield from (everyone[a:b] for a, b in chunks(len(lengths), SEQUENTIAL_STEP))


def equal_length_batches(lengths: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Sentence numbers in batches of one length each, at most `batch_tokens` tokens (but at least a sentence).

    The longest come first, so that what doesn't fit the memory fails at once.

    Example:
        >>> [batch.tolist() for batch in equal_length_batches(np.array([2, 5, 2, 2]), batch_tokens=4)]
        [[1], [0, 2], [3]]
    """
    order = np.argsort(-lengths, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1)
    batches: list[np.ndarray] = []
    for run in runs:
        n = max(1, batch_tokens // max(1, int(lengths[run[0]])))
        batches.extend(run[i : i + n] for i in range(0, len(run), n))
    return batches


def warn_unknown(unknown: int, pieces: int, corpus: str) -> None:
    """A warning where many pieces are unknown."""
    if unknown > MANY * pieces:
        log.warning(
            f"corpus {corpus}: {unknown:,} of {pieces:,} pieces are unknown to the model's tokenizer "
            f"({unknown / pieces:.1%}): they all enter the model as one and the same"
        )
