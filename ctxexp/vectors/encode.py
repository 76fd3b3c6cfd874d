"""Drives an encoder over a corpus, once: each distinct sentence, in batches of equal length, into a store on disk."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ctxexp.dataset import Corpus, Sentence, fingerprint
from ctxexp.errors import ConfigError, DataError, EncodingError, StoreError
from ctxexp.model import Encoder, reading
from ctxexp.progress import Progress, Silent, Stage
from ctxexp.vectors import cache as caches
from ctxexp.vectors.code_version import code_version
from ctxexp.vectors.encoding import Work, encode_into
from ctxexp.vectors.rows import Rows
from ctxexp.vectors.shards import Crew, encode_shards
from ctxexp.vectors.store import Store, StoreWriter
from ctxexp.vectors.store_files import DamagedError
from ctxexp.vectors.unknown import count_unknown

log = logging.getLogger("ctxexp")

CODE = code_version()  # when this is imported: what runs is what was read then, whatever is edited later
SEQUENTIAL_STEP = 64  # sentences of a sequential encoder that are written together


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
) -> Store:
    """The store of the corpus under that encoder: from the cache folder if it is whole, else encoded now.

    `batch_tokens` bounds the tokens of a batch, `limit_bytes` the size of the whole cache (None: no bound; the least
    recently used entries go first). Encoders of one name are told apart by their class's code and by `version`, that of
    the code that made them. With a `crew` of several workers they encode, in shards. `Store.encoded` counts the
    sentences that were encoded by this call.
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
            store = _whole(path, unique_of)
            if store is None:
                if caches.made_otherwise(cache, key):
                    log.info("cached vectors of %s were made by other code: encoding again", corpus.name)
                wanted, lengths = _wanted(corpus, encoder, unique), _lengths(encoder, unique)
                work = Work(unique, wanted, _batches(encoder, lengths, batch_tokens))
                shards = _shards(crew, encoder, path, batch_tokens)
                encoded = _build(corpus.name, encoder, work, lengths, path, limit_bytes, progress or Silent(), shards)
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
    encoder: Encoder,
    work: Work,
    lengths: np.ndarray,
    path: Path,
    limit_bytes: int | None,
    progress: Progress,
    shards: tuple[Crew, Path] | None,
) -> int:
    """Encodes distinct sentences into a folder beside `path` and renames it there: how many. The caller holds the
    lock."""
    unknown, pieces = count_unknown(encoder, work.sentences)
    caches.make_room(path.parent, _needed(encoder, work, lengths, shards), limit=limit_bytes, keep=path.name)
    rows_of, title = Rows(), f"encode {encoder.details.get('architecture', encoder.name)}"
    with (
        progress.stage(title, total=int(lengths.sum()), unit="tokens") as stage,
        StoreWriter(caches.temporary(path.parent, path.name), encoder.n_layers, encoder.dim, encoder.layers) as writer,
    ):
        if shards:
            encoded = encode_shards(writer, rows_of, encoder, work, lengths, *shards, stage.advance)
        else:
            encoded = len(work.sentences)
            encode_into(writer, rows_of, encoder, work, _shown(stage, lengths))
        writer.finish(
            vocabulary=list(rows_of.vocabulary),
            # stored sentence s is sentences[order[s]]
            arrays={**rows_of.arrays(), "order": np.concatenate(work.batches).astype(np.int64)},
            meta={
                "key": path.name,
                "corpus": corpus,
                "n_sentences": len(work.sentences),
                "skipped": rows_of.skipped,
                "unknown": unknown,
                "pieces": pieces,
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
            rows_of.skipped, _n_words(work), rows_of.example,
        )  # fmt: skip
    return encoded


def _shards(crew: Crew | None, encoder: Encoder, path: Path, batch_tokens: int) -> tuple[Crew, Path] | None:
    """Who encodes in shards, and the folder that these are kept in; None where this process encodes by itself."""
    if crew is None or crew.engine.workers == 1 or encoder.sequential:
        return None
    return crew, path.parent / f"shards-{path.name}-{batch_tokens}-{crew.engine.shard_tokens}"


def _shown(stage: Stage, lengths: np.ndarray) -> Callable[[np.ndarray], None]:
    """What shows a batch's progress: its tokens, and how many sentences are done."""
    done, everyone = 0, f"{len(lengths):,}"

    def show(batch: np.ndarray) -> None:
        nonlocal done
        done += len(batch)
        stage.advance(int(lengths[batch].sum()), sentences=f"{done:,}/{everyone}")

    return show


def _n_words(work: Work) -> int:
    """How many words are to be stored."""
    return sum(len(s) if some is None else len(some) for s, some in zip(work.sentences, work.wanted, strict=True))


def _needed(encoder: Encoder, work: Work, lengths: np.ndarray, shards: object) -> int:
    """About how many bytes the work takes on disk, twice while it lies there in shards as well."""
    rows = int(lengths.sum()) if encoder.details.get("pooling") == "pieces" else _n_words(work)
    width = encoder.dim * len(encoder.given) * (4 if encoder.dtype == "float32" else 2)
    return (2 if shards else 1) * rows * (width + 16) + 200 * len(work.sentences)


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


def _batches(encoder: Encoder, lengths: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Sentence numbers, as they are written together: in the corpus's order where the encoder is sequential."""
    if not encoder.sequential:
        return equal_length_batches(lengths, batch_tokens)
    everyone = np.arange(len(lengths))
    return [everyone[i : i + SEQUENTIAL_STEP] for i in range(0, len(everyone), SEQUENTIAL_STEP)]


def equal_length_batches(lengths: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Sentence numbers in batches of one length each, at most `batch_tokens` tokens (but at least a sentence).

    The longest come first, so that what doesn't fit the memory fails at once.
    """
    order = np.argsort(-lengths, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(lengths[order])) + 1)
    batches: list[np.ndarray] = []
    for run in runs:
        n = max(1, batch_tokens // max(1, int(lengths[run[0]])))
        batches.extend(run[i : i + n] for i in range(0, len(run), n))
    return batches


def _lengths(encoder: Encoder, sentences: Sequence[Sentence]) -> np.ndarray:
    """Each sentence's cost in the encoder's tokens, (n_sentences,) int64."""
    with reading(encoder, "lengths"):
        lengths = np.asarray(encoder.lengths(sentences), np.int64)
    if lengths.shape != (len(sentences),):
        raise EncodingError(
            f"encoder {encoder.name!r} gave lengths of shape {lengths.shape} for {len(sentences)} sentences"
        )
    return lengths
