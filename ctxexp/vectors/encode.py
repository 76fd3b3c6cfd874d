"""Drives an encoder over a corpus, once: each distinct sentence, in batches of equal length, into a store on disk."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ctxexp.dataset import Corpus, Sentence, fingerprint
from ctxexp.errors import ConfigError, DataError, StoreError
from ctxexp.model import Encoder
from ctxexp.progress import Progress, Silent, Stage
from ctxexp.vectors import cache as caches
from ctxexp.vectors import leases
from ctxexp.vectors.batches import BatchedText
from ctxexp.vectors.code_version import code_version
from ctxexp.vectors.encoding import Work, encode_into
from ctxexp.vectors.rows import Rows
from ctxexp.vectors.shards import Crew, encode_shards
from ctxexp.vectors.store import Store, StoreWriter
from ctxexp.vectors.store_files import DamagedError

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
    crew: Crew | None = None,
    sweep: str = "",
) -> Store:
    """The store of the corpus under that encoder: from the cache folder if it is whole, else encoded now.

    `batch_tokens` bounds the tokens of a batch, `limit_bytes` the size of the whole cache (None: no bound; the least
    recently used entries go first, those that running sweeps have read last: `sweep` is whose run this is). Encoders
    of one name are told apart by their class's code and by `version`, that of the code that made them. With a `crew`
    of several workers they encode, in shards. `Store.encoded` counts the sentences that were encoded by this call.
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
            store = _whole(path, unique_of)
            if store is None:
                if caches.made_otherwise(cache, key):
                    log.info("cached vectors of %s were made by other code: encoding again", corpus.name)
                wanted, text = _wanted(corpus, encoder, unique), BatchedText(encoder, unique, batch_tokens)
                shards = _shards(crew, encoder, path, batch_tokens)
                encoded = _build(corpus.name, text, wanted, path, limit_bytes, progress or Silent(), shards)
                store = Store(path, unique_of, encoded=encoded)
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
    """8 hex digits of our code, and of the encoder's class where it is someone else's, who edits it under one name."""
    if not encoder.class_code:
        return CODE
    return hashlib.blake2b(f"{CODE} {encoder.class_code}".encode(), digest_size=4).hexdigest()


def _whole(path: Path, unique_of: np.ndarray) -> Store | None:
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
    wanted: Sequence[np.ndarray | None],
    path: Path,
    limit_bytes: int | None,
    progress: Progress,
    shards: tuple[Crew, Path] | None,
) -> int:
    """Encodes distinct sentences into a folder beside `path` and renames it there: how many. The caller holds the
    lock."""
    encoder, sentences = text.encoder, text.sentences
    rows = _most_rows(encoder, sentences, wanted)
    needed = (2 if shards else 1) * rows * _row_bytes(encoder) + 200 * len(sentences)
    if shards and shards[1].is_dir():
        needed -= min(needed, caches.folder_size(shards[1]))  # what an earlier run left of them
    _tell_need(corpus, encoder, path.parent, rows, needed, limit_bytes)
    caches.make_room(path.parent, needed, limit=limit_bytes, keep=path.name)
    rows_of, title = Rows(), f"encode {encoder.details.get('architecture', encoder.name)}"
    with (
        progress.stage(title, total=sum(map(len, sentences)), unit="words") as stage,
        StoreWriter(caches.temporary(path.parent, path.name), encoder.n_layers, encoder.dim, encoder.layers) as writer,
    ):
        if shards:
            batches = list(text.batches())
            work, lengths = Work(sentences, wanted, batches), text.lengths
            encoded = encode_shards(writer, rows_of, encoder, work, lengths, *shards, stage.advance)
            order = np.concatenate(batches)
        else:
            work = Work(sentences, wanted, text.batches())
            order, encoded = encode_into(writer, rows_of, encoder, work, _shown(stage, sentences)), len(sentences)
        writer.finish(
            vocabulary=list(rows_of.vocabulary),
            arrays={**rows_of.arrays(), "order": order.astype(np.int64)},  # stored sentence s is sentences[order[s]]
            meta={
                "key": path.name,
                "corpus": corpus,
                "n_sentences": len(sentences),
                "skipped": rows_of.skipped,
                "unknown": text.unknown,
                "pieces": text.pieces,
                "encoder": encoder.name,
                "details": dict(encoder.details),
                "made": dict(encoder.made),
            },
        )
        writer.folder.replace(path)
    if shards:
        shutil.rmtree(shards[1])
    if rows_of.skipped:
        log.info(
            "%d of %d words have no vector of this model and are left out (such as %r)",
            rows_of.skipped, rows, rows_of.example,
        )  # fmt: skip
    return encoded


def _most_rows(encoder: Encoder, sentences: Sequence[Sentence], wanted: Sequence[np.ndarray | None]) -> int:
    """How many rows there will be: of some words the model has none. Where its pieces are rows, too few: a row a word,
    as the text isn't read yet."""
    if encoder.poolings:
        return len(encoder.poolings) * len(sentences)
    return sum(len(s) if some is None else len(some) for s, some in zip(sentences, wanted, strict=True))


def _tell_need(corpus: str, encoder: Encoder, cache: Path, rows: int, needed: int, limit: int | None) -> None:
    """What the vectors take, shards included, beside what the cache may hold and what its disk has."""
    log.info(
        "%s: vectors of %s take %s %s (%s rows x %d layers x %d dimensions); the cache %s, its disk has %s free",
        corpus,
        encoder.details.get("architecture", encoder.name),
        "at least" if encoder.details.get("pooling") == "pieces" else "up to",
        caches.size_text(needed),
        f"{rows:,}",
        len(encoder.given),
        encoder.dim,
        "has no limit" if limit is None else f"may hold {caches.size_text(limit)}",
        caches.size_text(caches.free_bytes(cache)),
    )


def _shards(crew: Crew | None, encoder: Encoder, path: Path, batch_tokens: int) -> tuple[Crew, Path] | None:
    """Who encodes in shards, and the folder that these are kept in; None where this process encodes by itself."""
    if crew is None or crew.engine.workers == 1 or encoder.sequential:
        return None
    return crew, path.parent / f"shards-{path.name}-{batch_tokens}-{crew.engine.shard_tokens}"


def _shown(stage: Stage, sentences: Sequence[Sentence]) -> Callable[[np.ndarray], None]:
    """What shows a batch's progress: its words, and how many sentences are done."""
    done, everyone = 0, f"{len(sentences):,}"

    def show(batch: np.ndarray) -> None:
        nonlocal done
        done += len(batch)
        stage.advance(sum(len(sentences[i]) for i in batch.tolist()), sentences=f"{done:,}/{everyone}")

    return show


def _row_bytes(encoder: Encoder) -> int:
    """What a row takes on disk, in all layers."""
    return encoder.dim * len(encoder.given) * (4 if encoder.dtype == "float32" else 2) + 16


def _wanted(corpus: Corpus, encoder: Encoder, unique: Sequence[Sentence]) -> Sequence[np.ndarray | None]:
    """Of each distinct sentence the words that are stored, None for all. Raises ConfigError for units that aren't
    words."""
    bound = corpus.bound
    if bound is None:
        return [None] * len(unique)
    if encoder.details.get("pooling") == "pieces":
        raise ConfigError(
            "words.max_contexts bounds the contexts of words, but model.pooling=pieces measures the model's pieces; "
            "leave one of them out"
        )
    return [None if whole else bound.of(i) for i, whole in enumerate(bound.whole.tolist())]
