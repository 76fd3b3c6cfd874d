"""A model's batches, checked and written: the loop that one process runs, or each of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.errors import CtxexpError, EncodingError, said, short, stranger
from ctxexp.model import Encoded, Encoder, check_encoded, check_separate
from ctxexp.vectors.rows import Rows
from ctxexp.vectors.store import StoreWriter
from ctxexp.vectors.store_files import NotFiniteError


class Work(NamedTuple):
    """Sentences, which of their words are stored (None: all), and their numbers as they are encoded together."""

    sentences: Sequence[Sentence]
    wanted: Sequence[np.ndarray | None]
    batches: Iterable[np.ndarray]


def encode_into(
    writer: StoreWriter,
    rows_of: Rows,
    encoder: Encoder,
    work: Work,
    done: Callable[[np.ndarray], object] = len,
) -> np.ndarray:
    """Encode the work's batches into the writer, their units into `rows_of`: the sentences' numbers in the order that
    they are stored in. Each batch is `done` once it is there.

    A thread writes a batch while the next one goes through the model, which stays in the caller's thread: what writing
    takes, checksums and copies, leaves Python to others.
    """

    def write(batch: np.ndarray, encoded: list[Encoded], before: list[Encoded]) -> np.ndarray:
        check_separate(encoder, [*before, *encoded])
        numbered = zip(batch.tolist(), encoded, strict=True)
        writer.append([_stored(rows_of, work.sentences[i], one, work.wanted[i]) for i, one in numbered])
        return batch

    order: list[int] = []
    try:
        with ThreadPoolExecutor(1, "write") as thread:
            written: Future[np.ndarray] | None = None
            before: list[Encoded] = []  # held until its memory can't be the next one's
            for batch, encoded in _results(encoder, work.sentences, work.batches):
                if written:
                    done(written.result())
                order.extend(batch.tolist())
                written, before = thread.submit(write, batch, encoded, before), encoded
            if written:
                done(written.result())
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


def _stored(rows_of: Rows, sentence: Sentence, one: Encoded, wanted: np.ndarray | None) -> np.ndarray:
    """The rows that are stored of a sentence (layers, n, dim), which are entered in `rows_of`."""
    kept = rows_of.add(sentence, one.units, wanted)
    return one.layers if kept is None else one.layers[:, kept]


def _results(
    encoder: Encoder, sentences: Sequence[Sentence], batches: Iterable[np.ndarray]
) -> Iterator[tuple[np.ndarray, list[Encoded]]]:
    """Each batch with its results, checked but for their values."""
    everything = encoded_by(encoder, sentences) if encoder.sequential else None
    dtype: np.dtype[np.floating] | None = None
    for batch in batches:
        chosen = [sentences[i] for i in batch]
        encoded = _take(encoder, everything or encoded_by(encoder, chosen), chosen, last=everything is None)
        for i, one in zip(batch.tolist(), encoded, strict=True):
            dtype = one.layers.dtype if dtype is None else dtype
            _check(encoder, i, one, dtype)
        yield batch, encoded
    if everything is not None and next(everything, None) is not None:
        raise EncodingError(f"encoder {encoder.name!r} gave more results than the {len(sentences)} sentences")


def encoded_by(encoder: Encoder, sentences: Sequence[Sentence]) -> Iterator[Encoded]:
    """What `encoder.encode` yields; anything it raises that isn't ctxexp's becomes an `EncodingError`."""
    done = 0
    try:
        with stranger():
            for one in encoder.encode(sentences):
                yield one
                done += 1
    except CtxexpError:
        raise
    except Exception as error:  # an encoder is anyone's code
        at = f"{sentences[min(done, len(sentences) - 1)].text[:60]!r}"
        raise EncodingError(
            f"encoder {encoder.name!r} failed on a batch of {len(sentences)} sentences, after {done} of them, at {at}: "
            f"{said(error)}"
        ) from error


def _take(encoder: Encoder, results: Iterator[Encoded], batch: Sequence[Sentence], *, last: bool) -> list[Encoded]:
    """The results of this batch, one per sentence; `last` if nothing may follow."""
    encoded = list(islice(results, len(batch) + last))  # one more is enough to see that there are too many
    if len(encoded) != len(batch):
        n = f"more than {len(batch)}" if len(encoded) > len(batch) else len(encoded)
        raise EncodingError(
            f"encoder {encoder.name!r} gave {n} results for {len(batch)} sentences; expected one each, in order"
        )
    return encoded


def _check(encoder: Encoder, index: int, one: Encoded, dtype: np.dtype[np.floating]) -> None:
    """`check_encoded` without its look at the values, which the writer takes over whole chunks."""
    layers = one.layers
    expected = (len(encoder.given), len(one.units), encoder.dim)
    if not isinstance(layers, np.ndarray) or layers.shape != expected or layers.dtype not in (np.float32, np.float16):
        check_encoded(encoder, index, one)
    if layers.dtype != dtype:
        raise EncodingError(
            f"encoder {encoder.name!r} gave {layers.dtype} vectors for sentence {index} after {dtype} ones; "
            "one type a run"
        )
