"""Encode a corpus once: each distinct sentence, in batches of equal length, into a store on disk."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ctxexp.dataset import Corpus, Sentence, fingerprint
from ctxexp.errors import ConfigError, DataError, StoreError
from ctxexp.files.code_version import code_version
from ctxexp.model import Encoder
from ctxexp.progress import Progress, Stage
from ctxexp.vectors import DamagedError, RowIndexBuilder, Store, StoreWriter
from ctxexp.vectors import cache as caches
from ctxexp.vectors import cache as leases
from ctxexp.vectors.encoding import BatchedText, EncodingPlan, EncodingWorkers, encode_into, encode_shards

log = logging.getLogger("ctxexp")

CODE = code_version()  # when this is imported: what runs is what was read then, whatever is edited later


def open_store(
    corpus: Corpus,
    encoder: Encoder,
    *,
    cache: Path,
    batch_tokens: int = 2048,
    limit_bytes: int | None = None,
    progress: Progress | None = None,
    version: str = "",
    workers: EncodingWorkers | None = None,
    sweep: str = "",
) -> Store:
    """The store of the corpus under that encoder: from the cache folder if it is intact there, else encoded now.

    `batch_tokens` bounds the tokens of a batch, `limit_bytes` the size of the whole cache (None: no bound; the least
    recently used entries go first, those that running sweeps have read last: `sweep` is whose run this is). Encoders
    of one name are told apart by their class's code and by `version`, that of the code that made them. With `workers`
    of an engine with several processes, these encode, in shards. `Store.n_encoded` counts the sentences that this call
    encoded.
    """
    if not corpus.sentences:
        raise DataError(f"corpus {corpus.name!r} has no sentences, so there is nothing to encode")
    if batch_tokens < 1:
        raise ConfigError(f"batch_tokens={batch_tokens}: expected a positive number of tokens, such as 2048")
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
            if sweep:
                leases.lease(cache, leases.SWEEPS, sweep, key)
            store = _intact_store(path, unique_of)
            if store is None:
                if caches.has_other_version(cache, key):
                    log.info("cached vectors of %s were made by other code: encoding again", corpus.name)
                stored_words, text = _stored_words(corpus, encoder, unique), BatchedText(encoder, unique, batch_tokens)
                shards = _shards(workers, encoder, path, batch_tokens)
                n_encoded = _build(corpus.name, text, stored_words, path, limit_bytes, Progress.of(progress), shards)
                store = Store(path, unique_of, n_encoded=n_encoded)
            caches.touch(path)
    except OSError as error:
        raise StoreError(
            f"the vector cache in {cache} can't be used: {error}; make room or choose another cache folder"
        ) from error
    if limit_bytes is not None:
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


def _intact_store(path: Path, unique_of: np.ndarray) -> Store | None:
    """The store at `path` if it is there and undamaged; a damaged one is removed, with a warning."""
    if not path.is_dir():
        return None
    try:
        store = Store(path, unique_of)
        if store.meta["key"] != path.name:
            raise DamagedError("they are another entry's")
        return store
    except DamagedError as damage:
        log.warning("cached vectors in %s are damaged (%s): encoding again", path, damage)
        caches.remove(path)
        return None


def _build(
    corpus: str,
    text: BatchedText,
    stored_words: Sequence[np.ndarray | None],
    path: Path,
    limit_bytes: int | None,
    progress: Progress,
    shards: tuple[EncodingWorkers, Path] | None,
) -> int:
    """Encode distinct sentences into a folder beside `path`, rename it to `path`, and return how many were encoded.
    The caller holds the lock."""
    encoder, sentences = text.encoder, text.sentences
    rows = _most_rows(encoder, sentences, stored_words)
    needed = (2 if shards else 1) * rows * _row_bytes(encoder) + 200 * len(sentences)
    if shards and shards[1].is_dir():
        needed -= min(needed, caches.folder_size(shards[1]))  # what an earlier run left of them
    _log_need(corpus, encoder, path.parent, rows, needed, limit_bytes)
    caches.make_room(path.parent, needed, limit=limit_bytes, keep=path.name)
    rows_of, title = RowIndexBuilder(), f"encode {encoder.details.get('architecture', encoder.name)}"
    with (
        progress.stage(title, total=sum(map(len, sentences)), unit="words") as stage,
        StoreWriter(caches.temporary(path.parent, path.name), encoder.n_layers, encoder.dim, encoder.layers) as writer,
    ):
        if shards:
            batches = list(text.batches())
            work, lengths = EncodingPlan(sentences, stored_words, batches), text.lengths
            n_encoded = encode_shards(writer, rows_of, encoder, work, lengths, *shards, stage.advance)
            order = np.concatenate(batches)
        else:
            work = EncodingPlan(sentences, stored_words, text.batches())
            order, n_encoded = (
                encode_into(writer, rows_of, encoder, work, _batch_progress(stage, sentences)),
                len(sentences),
            )
        writer.finish(
            vocabulary=list(rows_of.vocabulary),
            arrays={**rows_of.arrays(), "order": order.astype(np.int64)},  # stored sentence s is sentences[order[s]]
            meta={
                "key": path.name,
                "corpus": corpus,
                "n_sentences": len(sentences),
                "skipped": rows_of.n_skipped,
                "unknown": text.n_unknown_pieces,
                "pieces": text.n_pieces,
                "encoder": encoder.name,
                "details": dict(encoder.details),
            },
        )
        writer.folder.replace(path)
    if shards:
        shutil.rmtree(shards[1])
    if rows_of.n_skipped:
        log.info(
            "%d of %d words have no vector of this model and are left out (such as %r)",
            rows_of.n_skipped, rows, rows_of.example,
        )  # fmt: skip
    return n_encoded


def _most_rows(encoder: Encoder, sentences: Sequence[Sentence], stored_words: Sequence[np.ndarray | None]) -> int:
    """An upper bound of the number of rows, one a word (some words get none). Where pieces are rows it is too low,
    since the text isn't tokenised yet."""
    if encoder.poolings:
        return len(encoder.poolings) * len(sentences)
    return sum(len(s) if some is None else len(some) for s, some in zip(sentences, stored_words, strict=True))


def _log_need(corpus: str, encoder: Encoder, cache: Path, rows: int, needed: int, limit: int | None) -> None:
    """Log the size of the vectors, shards included, beside the cache's limit and its disk's free space."""
    log.info(
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


def _shards(
    workers: EncodingWorkers | None, encoder: Encoder, path: Path, batch_tokens: int
) -> tuple[EncodingWorkers, Path] | None:
    """The workers that encode in shards, and the shards' folder; None where this process encodes by itself."""
    if workers is None or workers.engine.workers == 1 or encoder.sequential:
        return None
    return workers, path.parent / f"shards-{path.name}-{batch_tokens}-{workers.engine.shard_tokens}"


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
