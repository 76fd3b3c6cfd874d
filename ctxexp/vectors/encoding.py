"""The encoding loop of one process: batches go through the model, are checked and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.errors import EncodingError, error_text, plugin_call, plugin_line, short
from ctxexp.model import EncodedSentence, Encoder, check_encoded, check_separate
from ctxexp.vectors.rows import RowIndexBuilder
from ctxexp.vectors.store import StoreWriter
from ctxexp.vectors.store_files import NotFiniteError


class EncodingPlan(NamedTuple):
    """Sentences to encode, the numbers of their stored words (None: all), and the batches of sentence numbers."""

    sentences: Sequence[Sentence]
    stored_words: Sequence[np.ndarray | None]
    batches: Iterable[np.ndarray]


def encode_into(
    writer: StoreWriter,
    rows_of: RowIndexBuilder,
    encoder: Encoder,
    work: EncodingPlan,
    done: Callable[[np.ndarray], object] = len,
) -> np.ndarray:
    """Encode the batches of `work` into `writer` and their units into `rows_of`; return the sentence numbers in stored
    order.

    `done` is called with each batch after it is written. A second thread writes a batch while the next one goes through
    the model in the caller's thread; checksums and copies release the interpreter lock.
    """

    def write(batch: np.ndarray, vectors: list[EncodedSentence], previous: list[EncodedSentence]) -> np.ndarray:
        check_separate(encoder, [*previous, *vectors])
        numbered = zip(batch.tolist(), vectors, strict=True)
        writer.append([_rows_to_store(rows_of, work.sentences[i], one, work.stored_words[i]) for i, one in numbered])
        return batch

    order: list[int] = []
    try:
        with ThreadPoolExecutor(1, "write") as thread:
            writing: Future[np.ndarray] | None = None
            previous: list[EncodedSentence] = []  # held until its memory can't be the next one's
            for batch, vectors in _results(encoder, work.sentences, work.batches):
                if writing:
                    done(writing.result())
                order.extend(batch.tolist())
                writing, previous = thread.submit(write, batch, vectors, previous), vectors
            if writing:
                done(writing.result())
        writer.flush()
    except NotFiniteError as error:
        i = order[int(np.searchsorted(rows_of.offsets, error.row, side="right")) - 1]
        raise EncodingError(
            f"encoder {encoder.name!r} gave NaN or infinite values in sentence {i}, {work.sentences[i].text[:60]!r}; "
            "with a half dtype try dtype=float32"
        ) from None
    if odd := [unit for unit in rows_of.vocabulary if not isinstance(unit, str)]:
        raise EncodingError(f"encoder {encoder.name!r} gave the unit {short(odd[0])}; expected texts")
    return np.array(order, np.int64)


def _rows_to_store(
    rows_of: RowIndexBuilder, sentence: Sentence, one: EncodedSentence, stored_words: np.ndarray | None
) -> np.ndarray:
    """The stored rows of a sentence (layers, n, dim), after adding their units to `rows_of`."""
    units = rows_of.add(sentence, one.units, stored_words)
    return one.layers if units is None else one.layers[:, units]


def _results(
    encoder: Encoder, sentences: Sequence[Sentence], batches: Iterable[np.ndarray]
) -> Iterator[tuple[np.ndarray, list[EncodedSentence]]]:
    """Yield each batch with its results, checked except for NaN and infinity."""
    everything = run_encoder(encoder, sentences) if encoder.sequential else None
    dtype: np.dtype[np.floating] | None = None
    for batch in batches:
        members = [sentences[i] for i in batch]
        vectors = _take(encoder, everything or run_encoder(encoder, members), members, last=everything is None)
        for i, one in zip(batch.tolist(), vectors, strict=True):
            dtype = one.layers.dtype if dtype is None else dtype
            _check(encoder, i, one, dtype)
        yield batch, vectors
    if everything is not None and next(everything, None) is not None:
        raise EncodingError(f"encoder {encoder.name!r} gave more results than the {len(sentences)} sentences")


def run_encoder(encoder: Encoder, sentences: Sequence[Sentence]) -> Iterator[EncodedSentence]:
    """Yield the results of `encoder.encode`; exceptions that aren't ctxexp's own become an `EncodingError`."""
    done = 0

    def failure(error: BaseException) -> str:
        at = f"{sentences[min(done, len(sentences) - 1)].text[:60]!r}"
        batch = f"a batch of {len(sentences)} sentences, after {done} of them, at {at}"
        return f"encoder {encoder.name!r} failed on {batch}: {error_text(error)}{plugin_line(error)}"

    with plugin_call("encoder", encoder.name, failure):
        for one in encoder.encode(sentences):
            yield one
            done += 1


def _take(
    encoder: Encoder, results: Iterator[EncodedSentence], batch: Sequence[Sentence], *, last: bool
) -> list[EncodedSentence]:
    """Take the results of this batch, one per sentence; `last`: no further result may follow."""
    vectors = list(islice(results, len(batch) + last))  # one more is enough to see that there are too many
    if len(vectors) != len(batch):
        n = f"more than {len(batch)}" if len(vectors) > len(batch) else len(vectors)
        raise EncodingError(
            f"encoder {encoder.name!r} gave {n} results for {len(batch)} sentences; expected one each, in order"
        )
    return vectors


def _check(encoder: Encoder, index: int, one: EncodedSentence, dtype: np.dtype[np.floating]) -> None:
    """Check shape and dtype as `check_encoded` does; the writer checks the values, over whole chunks."""
    layers = one.layers
    expected = (len(encoder.layer_numbers), len(one.units), encoder.dim)
    if not isinstance(layers, np.ndarray) or layers.shape != expected or layers.dtype not in (np.float32, np.float16):
        check_encoded(encoder, index, one)
    if layers.dtype != dtype:
        raise EncodingError(
            f"encoder {encoder.name!r} gave {layers.dtype} vectors for sentence {index} after {dtype} ones; "
            "one type a run"
        )
