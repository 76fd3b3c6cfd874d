"""Encode a corpus once: each distinct sentence, in batches of equal length, into a store on disk. Batches go through
the model, are checked and written; an engine's workers may put them through theirs. Batches are the same whoever
encodes, so that a transformer's vectors are the same bits; ELMo's are to rounding, since it keeps the token vectors of
words that it met.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np

from ctxexp.dataset import Corpus, Sentence, fingerprint
from ctxexp.engines import Engine
from ctxexp.errors import ConfigError, DataError, EncodingError, StoreError, error_text, plugin_call, plugin_line, short
from ctxexp.files.code_version import code_version
from ctxexp.model import EncodedSentence, Encoder, check_separate
from ctxexp.progress import Progress, Stage
from ctxexp.vectors import DamagedError, NotFiniteError, RowIndexBuilder, Store, StoreWriter
from ctxexp.vectors import cache as caches

log = logging.getLogger("ctxexp")
CODE = code_version()  # when this is imported: what runs is what was read then, whatever is edited later
WINDOW = 50_000  # sentences that are read, and put into batches, together
SEQUENTIAL_STEP = 64  # sentences of a sequential encoder that are written together
NOTABLE_BYTES = 10**9  # of vectors: a run says what fewer need only where debugging lines are shown
MANY = 0.03  # share of unknown pieces from which a run warns
NEARLY_ALL = 0.9  # and from which there is nothing to measure


class EncodingPlan(NamedTuple):
    """Sentences to encode, the numbers of their stored words (None: all), and the batches of sentence numbers."""

    sentences: Sequence[Sentence]
    stored_words: Sequence[np.ndarray | None]
    batches: Iterable[np.ndarray]


def _ignore(batch: np.ndarray) -> None:
    """No stage moves on."""


def encode_into(
    writer: StoreWriter,
    rows_of: RowIndexBuilder,
    encoder: Encoder,
    work: EncodingPlan,
    done: Callable[[np.ndarray], object] = _ignore,
    results: Iterator[EncodedSentence] | None = None,
) -> np.ndarray:
    """Encode the batches of `work` into `writer` and their units into `rows_of`; return the sentence numbers in stored
    order.

    `done` is called with each batch after it is written, `results` are an engine's, if it encoded. A second thread
    writes a batch while the next one goes through the model in the caller's thread; copies release the interpreter
    lock.
    """

    def write(
        batch: np.ndarray, vectors: list[EncodedSentence], tokens: list[np.ndarray], previous: list[EncodedSentence]
    ) -> np.ndarray:
        check_separate(encoder, [*previous, *vectors])
        rows = []
        for i, one, of_units in zip(batch.tolist(), vectors, tokens, strict=True):
            units = rows_of.add(work.sentences[i], one.units, of_units, work.stored_words[i])
            rows.append(one.layers if units is None else one.layers[:, units])
        writer.append(rows)
        return batch

    order: list[int] = []
    dtype: np.dtype[np.floating] | None = None
    if encoder.sequential:
        results = run_encoder(encoder, work.sentences)
    try:
        with ThreadPoolExecutor(1, "write") as thread:
            writing: Future[np.ndarray] | None = None
            previous: list[EncodedSentence] = []  # held until its memory can't be the next one's
            for batch in work.batches:
                members = [work.sentences[i] for i in batch.tolist()]
                if results is None:  # one more is enough to see that there are too many
                    vectors = list(islice(run_encoder(encoder, members), len(members) + 1))
                else:
                    vectors = list(islice(results, len(members)))
                dtype = _check(encoder, batch, vectors, dtype)
                if writing:
                    done(writing.result())
                order.extend(batch.tolist())
                tokens = _tokens(encoder, members)
                writing, previous = thread.submit(write, batch, vectors, tokens, previous), vectors
            if results is not None and next(results, None) is not None:
                raise EncodingError(
                    f"encoder {encoder.name!r} gave more results than the {len(work.sentences)} sentences"
                )
            if writing:
                done(writing.result())
    except NotFiniteError as error:
        i = order[int(np.searchsorted(rows_of.offsets, error.row, side="right")) - 1]
        raise EncodingError(
            f"encoder {encoder.name!r} gave NaN or infinite values in sentence {i}, {work.sentences[i].text[:60]!r}; "
            "with a half dtype try dtype=float32"
        ) from None
    if odd := [unit for unit in rows_of.vocabulary if not isinstance(unit, str)]:
        raise EncodingError(f"encoder {encoder.name!r} gave the unit {short(odd[0])}; expected texts")
    return np.array(order, np.int64)


def _tokens(encoder: Encoder, sentences: Sequence[Sentence]) -> list[np.ndarray]:
    """Of each sentence (units, 3): where a unit's first token stands, how many tokens it is, a checksum of its
    pieces."""
    with plugin_call("encoder", encoder.name, "gave token_spans and unit_keys that aren't one a unit"):
        spans, keys = encoder.token_spans(sentences), encoder.unit_keys(sentences)
        return [
            np.column_stack(
                [np.asarray(span, np.int64), np.array([crc32(repr(key).encode()) for key in own], np.int64)]
            )
            for span, own in zip(spans, keys, strict=True)
        ]


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


def _check(
    encoder: Encoder,
    batch: np.ndarray,
    vectors: Sequence[EncodedSentence],
    dtype: np.dtype[np.floating] | None,
) -> np.dtype[np.floating] | None:
    """Check that a batch has a result a sentence, with shape and dtype as `check_encoded` does; the writer checks the
    values, over whole chunks. `dtype` is that of batches before (None: this is the first); returns that of all."""
    if len(vectors) != len(batch):
        n = f"more than {len(batch)}" if len(vectors) > len(batch) else len(vectors)
        raise EncodingError(
            f"encoder {encoder.name!r} gave {n} results for {len(batch)} sentences; expected one each, in order"
        )
    for i, one in zip(batch.tolist(), vectors, strict=True):
        layers = one.layers
        expected = (len(encoder.layer_numbers), len(one.units), encoder.dim)
        if (
            not isinstance(layers, np.ndarray)
            or layers.shape != expected
            or layers.dtype not in (np.float32, np.float16)
        ):
            encoder.check_encoded(i, one)
        dtype = layers.dtype if dtype is None else dtype
        if layers.dtype != dtype:
            raise EncodingError(
                f"encoder {encoder.name!r} gave {layers.dtype} vectors for sentence {i} after {dtype} ones; one type a "
                "run"
            )
    return dtype


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
        step = WINDOW if self.encoder.allows_prefetch else n
        windows = [slice(start, start + step) for start in range(0, n, step)]
        self._read(windows[0])
        with ThreadPoolExecutor(1, "read") as thread:
            for i, window in enumerate(windows):
                ahead = thread.submit(self._read, windows[i + 1]) if i + 1 < len(windows) else None
                for batch in self._split_into_batches(self.lengths[window]):
                    yield window.start + batch
                if ahead:
                    ahead.result()

    def _read(self, window: slice) -> None:
        encoder, some = self.encoder, self.sentences[window]
        with plugin_call("encoder", encoder.name, "could not read the corpus (lengths)"):
            lengths = np.asarray(encoder.lengths(some), np.int64)
        if lengths.shape != (len(some),):
            raise EncodingError(
                f"encoder {encoder.name!r} gave lengths of shape {lengths.shape} for {len(some)} sentences"
            )
        self.lengths[window] = lengths
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
        yield from (everyone[at : at + SEQUENTIAL_STEP] for at in range(0, len(lengths), SEQUENTIAL_STEP))


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


def _intact_store(path: Path, key: str, unique_of: np.ndarray) -> Store | None:
    """The store of this key at `path` if it is there and intact; what else is there is removed, with a warning."""
    if not os.path.lexists(path):
        return None
    try:
        store = Store(path, unique_of)
        if store.meta["key"] != key:
            raise DamagedError("it is another's")
        return store
    except DamagedError as damage:
        log.warning("%s is damaged (%s): encoding it again", path, damage)
        if path.is_dir():
            caches.remove(path)
        else:
            path.unlink()
        return None


def open_store(
    corpus: Corpus,
    encoder: Encoder,
    *,
    cache: Path,
    batch_tokens: int = 2048,
    limit_bytes: caches.Limit = None,
    progress: Progress | None = None,
    version: str = "",
    engine: Engine | None = None,
    make: Callable[[], Encoder] | None = None,
) -> Store:
    """The store of the corpus under that encoder: from the cache folder if it is intact there, else encoded now.

    `batch_tokens` bounds the tokens of a batch, `limit_bytes` the size of the whole cache (None: no bound; the least
    recently used entries go first). Encoders of one name are told apart by their class's code and by `version`, that of
    the code that made them. An `engine` with several workers encodes where it can, each with the encoder that `make`
    gives it (None: the driver's own, pickled). `Store.n_encoded` counts the sentences that this call encoded.
    """
    if not corpus.sentences:
        raise DataError(f"corpus {corpus.name!r} has no sentences, so there is nothing to encode")
    if encoder.sequential:  # its vectors depend on every sentence before
        unique: Sequence[Sentence] = corpus.sentences
        unique_of = np.arange(len(corpus.sentences))
    else:
        unique, unique_of = _unique(corpus.sentences)
    same = len(unique) == len(corpus.sentences)
    if corpus.bound is not None and not same:
        raise DataError(f"corpus {corpus.name!r} has a bound and equal sentences; expected each once")
    identity = f"{encoder.name} ({version})" if version else encoder.name
    key = caches.entry_key(identity, corpus.fingerprint if same else fingerprint(unique), _code_of(encoder))
    cache = cache.absolute()
    path = cache / key
    try:
        with caches.entry_lock(cache, key):
            store = _intact_store(path, key, unique_of)
            if store is None:
                stored_words, text = _stored_words(corpus, encoder, unique), BatchedText(encoder, unique, batch_tokens)
                workers = None
                if engine is not None and engine.workers > 1 and not encoder.sequential:
                    workers = engine, make or partial(_same_encoder, encoder)
                n_encoded = _build(corpus.name, text, stored_words, path, limit_bytes, Progress.of(progress), workers)
                store = Store(path, unique_of, n_encoded=n_encoded)
            caches.touch(path)
    except OSError as error:
        raise StoreError(
            f"the vector cache in {cache} can't be used: {error}; make room or choose another cache folder"
        ) from error
    if limit_bytes is not None and store.n_encoded:  # what was foretold may be too low
        caches.make_room(cache, 0, limit=limit_bytes, keep=key)
    return store


def _unique(sentences: Sequence[Sentence]) -> tuple[Sequence[Sentence], np.ndarray]:
    """The distinct sentences as they first appear, and each sentence's number among them."""
    number: dict[Sentence, int] = {}
    unique_of = np.fromiter((number.setdefault(s, len(number)) for s in sentences), np.int64, len(sentences))
    return tuple(number), unique_of


def _code_of(encoder: Encoder) -> str:
    """8 hex digits of ctxexp's code, and of the encoder's class where that isn't ctxexp's own."""
    if not encoder.class_code:
        return CODE
    return hashlib.blake2b(f"{CODE} {encoder.class_code}".encode(), digest_size=4).hexdigest()


def _build(
    corpus: str,
    text: BatchedText,
    stored_words: Sequence[np.ndarray | None],
    path: Path,
    limit_bytes: caches.Limit,
    progress: Progress,
    workers: tuple[Engine, Callable[[], Encoder]] | None,
) -> int:
    """Encode distinct sentences into a folder beside `path`, rename it to `path`, and return how many were encoded.
    The caller holds the lock."""
    encoder, sentences = text.encoder, text.sentences
    rows, shards = _most_rows(encoder, sentences, stored_words), path.with_name(f"shards-{path.name}")
    needed = rows * _row_bytes(encoder) + 200 * len(sentences)
    if workers:  # what they leave there, and an earlier run's may have left already
        of_workers = _most_rows(encoder, sentences, [None] * len(sentences)) * _row_bytes(encoder)
        needed += max(0, of_workers - (caches.folder_size(shards) if shards.is_dir() else 0))
    limit_bytes = caches.bytes_of(limit_bytes, path.parent)
    _log_need(corpus, encoder, path.parent, rows, needed, limit_bytes)
    caches.make_room(path.parent, needed, limit=limit_bytes, keep=path.name)
    rows_of, title = RowIndexBuilder(), f"encode {encoder.details.get('architecture', encoder.name)}"
    with (
        progress.stage(title, total=sum(map(len, sentences)), unit="words") as stage,
        StoreWriter(caches.temporary(path.parent, path.name), encoder.n_layers, encoder.dim, encoder.layers) as writer,
    ):
        batches: Iterable[np.ndarray] = text.batches()
        done: Callable[[np.ndarray], object] = _batch_progress(stage, sentences)
        n_encoded, results = len(sentences), None
        if workers:
            batches, (engine, make) = list(batches), workers
            members = [([sentences[i] for i in batch.tolist()], int(text.lengths[batch].sum())) for batch in batches]
            if by_engine := engine.encode(encoder, make, members, shards, stage.advance):
                n_encoded, results = by_engine
                done = _ignore  # the engine moves the stage on itself
        order = encode_into(writer, rows_of, encoder, EncodingPlan(sentences, stored_words, batches), done, results)
        meta: dict[str, object] = {"key": path.name, "encoder": encoder.name, "corpus": corpus}
        meta |= {"unknown": text.n_unknown_pieces, "pieces": text.n_pieces, "details": dict(encoder.details)}
        writer.finish(rows_of, order, meta)
        writer.folder.replace(path)
    if workers:
        shutil.rmtree(shards, ignore_errors=True)
    if rows_of.n_skipped:
        log.info(
            "%d of %d words have no vector of this model and are left out (such as %r)",
            rows_of.n_skipped, rows, rows_of.example,
        )  # fmt: skip
    return n_encoded


def _same_encoder(encoder: Encoder) -> Encoder:
    return encoder


def _most_rows(encoder: Encoder, sentences: Sequence[Sentence], stored_words: Sequence[np.ndarray | None]) -> int:
    """An upper bound of the number of rows, one a word (some words get none). Where pieces are rows it is too low,
    since the text isn't tokenised yet."""
    if encoder.poolings:
        return len(encoder.poolings) * len(sentences)
    return sum(len(s) if some is None else len(some) for s, some in zip(sentences, stored_words, strict=True))


def _log_need(corpus: str, encoder: Encoder, cache: Path, rows: int, needed: int, limit: int | None) -> None:
    """Log the size of the vectors, shards included, beside the cache's limit and its disk's free space."""
    log.log(
        logging.INFO if needed > NOTABLE_BYTES else logging.DEBUG,
        "%s: vectors of %s take %s %s (%s rows x %d layers x %d dimensions); the cache %s, its disk has %s free",
        corpus,
        encoder.details.get("architecture", encoder.name),
        "at least" if encoder.details.get("pooling") == "pieces" else "up to",
        caches.size_text(needed),
        f"{rows:,}",
        len(encoder.layer_numbers),
        encoder.dim,
        "has no limit" if limit is None else f"may hold {caches.size_text(limit)}",
        caches.size_text(caches.free_bytes(cache)),
    )


def _batch_progress(stage: Stage, sentences: Sequence[Sentence]) -> Callable[[np.ndarray], None]:
    """A callback that advances `stage` by a batch's words and shows how many sentences are done."""
    done, everyone = 0, f"{len(sentences):,}"

    def show(batch: np.ndarray) -> None:
        nonlocal done
        done += len(batch)
        stage.advance(sum(len(sentences[i]) for i in batch.tolist()), sentences=f"{done:,}/{everyone}")

    return show


def _row_bytes(encoder: Encoder) -> int:
    """Bytes of a row on disk, in all layers."""
    return encoder.dim * len(encoder.layer_numbers) * (4 if encoder.dtype == "float32" else 2) + 16


def _stored_words(corpus: Corpus, encoder: Encoder, unique: Sequence[Sentence]) -> Sequence[np.ndarray | None]:
    """The numbers of the stored words of each distinct sentence, None for all. Raises ConfigError for units that aren't
    words."""
    bound = corpus.bound
    if bound is None:
        return [None] * len(unique)
    if encoder.details.get("pooling") == "pieces":
        raise ConfigError(
            "words.max_contexts bounds the contexts of words, but model.pooling=pieces measures the model's pieces; "
            "leave one of them out"
        )
    return [None if whole else bound.of(i) for i, whole in enumerate(bound.is_fully_measured.tolist())]
