"""Encoding by several workers: batches in shards, each a store of its own beside the cache's entry, then one store.

A shard is named by its number under a folder named by all that its vectors come from, and is complete or absent: a
worker that finds it goes on with the next one. Batches are those of a single worker, so that a transformer's vectors
are the same bits however they are dealt out; ELMo's are to rounding, since it keeps the token vectors of words that it
met.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.engine import Engine
from ctxexp.errors import EncodingError, error_text
from ctxexp.files.writing import seal, unseal, write_text
from ctxexp.model import Encoder
from ctxexp.vectors.align import RowIndexBuilder
from ctxexp.vectors.encoding import EncodingPlan, encode_into
from ctxexp.vectors.store import DamagedError, Store, StoreWriter

log = logging.getLogger("ctxexp")


@dataclass(frozen=True)
class EncodingWorkers:
    """Worker processes that encode: an engine, and a factory that builds the model in each worker (None: the driver's
    encoder is pickled)."""

    engine: Engine
    make: Callable[[], Encoder] | None = None

    def encoder_factory(self, encoder: Encoder) -> Callable[[], Encoder]:
        """The factory that gives each worker its encoder: `make`, or else the driver's own encoder, pickled."""
        return self.make or partial(_same_encoder, encoder)


@dataclass(frozen=True)
class EncodingShard:
    """Some consecutive batches; `work` has their sentences, and batches by numbers among these."""

    number: int
    words: int
    work: EncodingPlan

    def path(self, folder: Path) -> Path:
        return folder / f"{self.number:06d}"


def _key(path: Path) -> str:
    """A shard's identity: the folder's name has all that its vectors come from, its own is its number."""
    return f"{path.parent.name}/{path.name}"


@dataclass(frozen=True)
class EncodingTask:
    """A shard that a worker is to encode. Only paths are sent to the worker; the sentences lie in a file there."""

    path: Path  # of the shard
    words: int
    label: str  # of its first sentence

    @classmethod
    def write(cls, shard: EncodingShard, folder: Path) -> EncodingTask:
        """Write the shard's sentences beside its place and return the task."""
        work, path = shard.work, shard.path(folder)
        label = f"{len(work.sentences)} sentences from {work.sentences[0].text[:60]!r}"
        task = cls(path, shard.words, label)
        meta = {
            "key": _key(path),
            "sentences": [[one.text, one.words, one.spans] for one in work.sentences],
            "wanted": [None if some is None else some.tolist() for some in work.stored_words],
            "batches": [batch.tolist() for batch in work.batches],
        }
        write_text(task.file, seal(meta))
        return task

    @property
    def file(self) -> Path:
        return self.path.with_name(f"work-{self.path.name}.json")

    def read(self) -> EncodingPlan:
        """Read the sentences and batches. Raises EncodingError if the file is missing or belongs to another shard."""
        try:
            meta = unseal(self.file.read_bytes())
            if meta["key"] != _key(self.path):
                raise ValueError("it is another shard's")
        except (OSError, ValueError) as error:
            raise EncodingError(
                f"a worker can't read the sentences of {self.path} ({error_text(error)}): expected a folder that all "
                "of the engine's workers see under this path (cache.folder)"
            ) from error
        sentences = [
            Sentence(text, tuple(words), tuple((start, end) for start, end in spans))
            for text, words, spans in meta["sentences"]
        ]
        stored_words = [None if some is None else np.array(some, np.int64) for some in meta["wanted"]]
        return EncodingPlan(sentences, stored_words, [np.array(batch, np.int64) for batch in meta["batches"]])

    def __str__(self) -> str:
        return f"{self.path.name} of {self.path.parent} ({self.label})"


@dataclass(frozen=True)
class ShardEncoder:
    """Encodes shards into a folder that workers and driver share. Each worker calls it once, to make its model."""

    make: Callable[[], Encoder]
    name: str  # of the driver's encoder

    def __call__(self) -> Callable[[EncodingTask], EncodingTask]:
        return partial(self.encode, worker_encoder(self.make, self.name))

    def encode(self, encoder: Encoder, task: EncodingTask) -> EncodingTask:
        """Encode the task's shard to disk, unless it is there already, and return the task."""
        path = task.path
        if path.is_dir():  # another worker was quicker
            return task
        work = task.read()
        encoder.lengths(work.sentences)  # some read their sentences here
        own = path.with_name(f"tmp-{path.name}-{socket.gethostname()}-{os.getpid()}-{time.monotonic_ns()}")
        with StoreWriter(own, encoder.n_layers, encoder.dim, encoder.layers) as writer:
            rows_of = RowIndexBuilder()
            encode_into(writer, rows_of, encoder, work)
            writer.finish(
                vocabulary=list(rows_of.vocabulary),
                arrays={**rows_of.arrays(), "order": np.arange(len(work.sentences))},
                meta={
                    "key": _key(path),
                    "encoder": encoder.name,
                    "skipped": rows_of.n_skipped,
                    "example": rows_of.example,
                    "unknown": 0,
                    "pieces": 0,
                },
            )
            try:
                own.rename(path)
            except OSError:
                if not path.is_dir():
                    raise
                shutil.rmtree(own)  # another worker was quicker
        return task


def worker_encoder(make: Callable[[], Encoder], name: str) -> Encoder:
    """A worker's encoder. Raises EncodingError unless it has the name of the driver's."""
    encoder = make()
    if encoder.name != name:
        raise EncodingError(
            f"a worker made the encoder {encoder.name!r}, the driver has {name!r}; do all see the same files, "
            "and the same versions?"
        )
    return encoder


def make_shards(work: EncodingPlan, lengths: np.ndarray, shard_tokens: int) -> list[EncodingShard]:
    """Split the work into shards of about `shard_tokens` tokens, whole batches each."""
    shards: list[EncodingShard] = []
    batches: list[np.ndarray] = []
    tokens = 0
    all_batches = list(work.batches)
    for i, batch in enumerate(all_batches):
        batches.append(batch)
        tokens += int(lengths[batch].sum())
        if tokens >= shard_tokens or i == len(all_batches) - 1:
            members = np.concatenate(batches).tolist()
            ends = np.cumsum([len(batch) for batch in batches])
            own = tuple(np.split(np.arange(len(members)), ends[:-1]))
            some = EncodingPlan(
                tuple(work.sentences[k] for k in members), tuple(work.stored_words[k] for k in members), own
            )
            shards.append(EncodingShard(len(shards), sum(map(len, some.sentences)), some))
            batches, tokens = [], 0
    return shards


def encode_shards(
    writer: StoreWriter,
    rows_of: RowIndexBuilder,
    encoder: Encoder,
    work: EncodingPlan,
    lengths: np.ndarray,
    workers: EncodingWorkers,
    folder: Path,
    advance: Callable[[int], object],
) -> int:
    """Let the workers encode the missing shards, put all shards into one store, and return the number of sentences
    encoded now."""
    folder.mkdir(exist_ok=True)
    for left in folder.glob("tmp-*"):  # of workers that were killed while they wrote
        shutil.rmtree(left, ignore_errors=True)
    shards = make_shards(work, lengths, workers.engine.shard_tokens)
    missing = [shard for shard in shards if not _is_intact(shard.path(folder))]
    if len(missing) < len(shards):
        log.info("%d of %d shards were encoded before: %s", len(shards) - len(missing), len(shards), folder)
    advance(sum(shard.words for shard in shards) - sum(shard.words for shard in missing))
    encoding = ShardEncoder(workers.encoder_factory(encoder), encoder.name)
    for task in workers.engine.map_unordered(encoding, (EncodingTask.write(shard, folder) for shard in missing)):
        task.file.unlink(missing_ok=True)
        advance(task.words)
    for shard in shards:
        n = len(shard.work.sentences)
        store = Store(shard.path(folder), np.arange(n))
        writer.append_store(store)
        rows_of.extend(store)
    return sum(len(shard.work.sentences) for shard in missing)


def _same_encoder(encoder: Encoder) -> Encoder:
    return encoder


def _is_intact(path: Path) -> bool:
    """Whether an earlier run left this shard intact; a damaged or foreign one is removed."""
    if not os.path.lexists(path):
        return False
    try:
        if not path.is_dir():
            raise DamagedError("it is no folder")
        store = Store(path, np.empty(0, np.int64))
        if store.meta["key"] != _key(path):
            raise DamagedError("it is another shard's")
        return True
    except DamagedError as damage:
        log.warning("shard %s is damaged (%s): encoding it again", path, damage)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
        return False
