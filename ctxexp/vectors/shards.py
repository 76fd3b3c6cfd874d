"""Encoding by several workers: batches in shards, each a store of its own beside the cache's entry, then one store.

A shard is named by its number under a folder named by all that its vectors come from, and is whole or isn't there: who
finds it there goes on with the next one. Batches are those of a single worker, so that a transformer's vectors are
the same bits however they are dealt out; ELMo's are to rounding, since it keeps the token vectors of words that it met.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.engine import Engine
from ctxexp.errors import EncodingError, said
from ctxexp.files.seals import seal, unseal
from ctxexp.files.writing import write_text
from ctxexp.model import Encoder
from ctxexp.vectors.encoding import Work, encode_into, encoded_by
from ctxexp.vectors.rows import Rows
from ctxexp.vectors.store import Store, StoreWriter
from ctxexp.vectors.store_files import DamagedError

log = logging.getLogger("ctxexp")


@dataclass(frozen=True)
class Crew:
    """Who encodes: an engine, and how a worker makes the model (None: it gets the driver's own, pickled)."""

    engine: Engine
    make: Callable[[], Encoder] | None = None

    def maker(self, encoder: Encoder) -> Callable[[], Encoder]:
        """What gives a worker the driver's encoder, or one like it."""
        return self.make or partial(_given, encoder)


@dataclass(frozen=True)
class Shard:
    """Some consecutive batches; `work` has their sentences, and batches by numbers among these."""

    number: int
    words: int
    work: Work

    def path(self, folder: Path) -> Path:
        return folder / f"{self.number:06d}"


def _key(path: Path) -> str:
    """A shard's identity: the folder's name has all that its vectors come from, its own is its number."""
    return f"{path.parent.name}/{path.name}"


@dataclass(frozen=True)
class EncodingTask:
    """A shard that a worker is to encode. Over the wire goes where its sentences lie, beside its place, not they."""

    path: Path  # of the shard
    words: int
    about: str  # of its first sentence

    @classmethod
    def write(cls, shard: Shard, folder: Path) -> EncodingTask:
        """The task, its sentences written."""
        work, path = shard.work, shard.path(folder)
        about = f"{len(work.sentences)} sentences from {work.sentences[0].text[:60]!r}"
        task = cls(path, shard.words, about)
        meta = {
            "key": _key(path),
            "sentences": [[one.text, one.words, one.spans] for one in work.sentences],
            "wanted": [None if some is None else some.tolist() for some in work.wanted],
            "batches": [batch.tolist() for batch in work.batches],
        }
        write_text(task.file, seal(meta))
        return task

    @property
    def file(self) -> Path:
        return self.path.with_name(f"work-{self.path.name}.json")

    def read(self) -> Work:
        """What is to be done. Raises EncodingError where the file isn't there, or isn't this task's."""
        try:
            meta = unseal(self.file.read_bytes())
            if meta["key"] != _key(self.path):
                raise ValueError("it is another shard's")
        except (OSError, ValueError) as error:
            raise EncodingError(
                f"a worker can't read the sentences of {self.path} ({said(error)}): expected a folder that all of the "
                "engine's workers see under this path (cache.folder)"
            ) from error
        sentences = [
            Sentence(text, tuple(words), tuple((start, end) for start, end in spans))
            for text, words, spans in meta["sentences"]
        ]
        wanted = [None if some is None else np.array(some, np.int64) for some in meta["wanted"]]
        return Work(sentences, wanted, [np.array(batch, np.int64) for batch in meta["batches"]])

    def __str__(self) -> str:
        return f"{self.path.name} of {self.path.parent} ({self.about})"


@dataclass(frozen=True)
class Encoding:
    """What encodes shards into a folder that workers and driver share. Called once a worker: it makes the model."""

    make: Callable[[], Encoder]
    name: str  # of the driver's encoder
    made: Mapping[str, str]  # what its name leaves open

    def __call__(self) -> Callable[[EncodingTask], EncodingTask]:
        return partial(self.encode, made_like(self.make, self.name, self.made))

    def encode(self, encoder: Encoder, task: EncodingTask) -> EncodingTask:
        """The task, once its shard is on disk."""
        path = task.path
        if path.is_dir():  # another worker was quicker
            return task
        work = task.read()
        encoder.lengths(work.sentences)  # some read their sentences here
        own = path.with_name(f"tmp-{path.name}-{socket.gethostname()}-{os.getpid()}-{time.monotonic_ns()}")
        with StoreWriter(own, encoder.n_layers, encoder.dim, encoder.layers) as writer:
            rows_of = Rows()
            encode_into(writer, rows_of, encoder, work)
            writer.finish(
                vocabulary=list(rows_of.vocabulary),
                arrays={**rows_of.arrays(), "order": np.arange(len(work.sentences))},
                meta={
                    "key": _key(path),
                    "encoder": encoder.name,
                    "skipped": rows_of.skipped,
                    "example": rows_of.example,
                    "unknown": 0,
                    "pieces": 0,
                    "made": dict(encoder.made),
                },
            )
            try:
                own.rename(path)
            except OSError:
                if not path.is_dir():
                    raise
                shutil.rmtree(own)  # another worker was quicker
        return task


def made_like(make: Callable[[], Encoder], name: str, made: Mapping[str, str]) -> Encoder:
    """A worker's encoder, which makes vectors as the driver's of that name does."""
    encoder = make()
    if encoder.name != name:
        raise EncodingError(
            f"a worker made the encoder {encoder.name!r}, the driver has {name!r}; do all see the same files, "
            "and the same versions?"
        )
    if made:
        encoder.settle(made)
    return encoder


def in_shards(work: Work, lengths: np.ndarray, shard_tokens: int) -> list[Shard]:
    """The work in shards of about so many tokens, whole batches each."""
    shards: list[Shard] = []
    batches: list[np.ndarray] = []
    tokens = 0
    given = list(work.batches)
    for i, batch in enumerate(given):
        batches.append(batch)
        tokens += int(lengths[batch].sum())
        if tokens >= shard_tokens or i == len(given) - 1:
            members = np.concatenate(batches).tolist()
            ends = np.cumsum([len(batch) for batch in batches])
            own = tuple(np.split(np.arange(len(members)), ends[:-1]))
            some = Work(tuple(work.sentences[k] for k in members), tuple(work.wanted[k] for k in members), own)
            shards.append(Shard(len(shards), sum(map(len, some.sentences)), some))
            batches, tokens = [], 0
    return shards


def encode_shards(
    writer: StoreWriter,
    rows_of: Rows,
    encoder: Encoder,
    work: Work,
    lengths: np.ndarray,
    crew: Crew,
    folder: Path,
    advance: Callable[[int], object],
) -> int:
    """Have the crew encode what isn't there yet, put all into one store, and give the number of sentences encoded."""
    folder.mkdir(exist_ok=True)
    for left in folder.glob("tmp-*"):  # of workers that were killed while they wrote
        shutil.rmtree(left, ignore_errors=True)
    shards = in_shards(work, lengths, crew.engine.shard_tokens)
    kept = {shard.number: made for shard in shards if (made := _made_of(shard.path(folder))) is not None}
    if kept:  # those that are missing are made alike
        encoder.settle(next(iter(kept.values())))
        log.info("%d of %d shards were encoded before: %s", len(kept), len(shards), folder)
    elif encoder.made:  # by a first batch it is known how
        deque(encoded_by(encoder, [work.sentences[i] for i in next(iter(work.batches))]), maxlen=0)
    advance(sum(shard.words for shard in shards if shard.number in kept))
    missing = [shard for shard in shards if shard.number not in kept]
    encoding = Encoding(crew.maker(encoder), encoder.name, dict(encoder.made))
    for task in crew.engine.each(encoding, (EncodingTask.write(shard, folder) for shard in missing)):
        task.file.unlink(missing_ok=True)
        advance(task.words)
    for shard in shards:
        n = len(shard.work.sentences)
        store = Store(shard.path(folder), np.arange(n))
        writer.adopt(store)
        rows_of.extend(store)
    return sum(len(shard.work.sentences) for shard in missing)


def _given(encoder: Encoder) -> Encoder:
    return encoder


def _made_of(path: Path) -> dict[str, str] | None:
    """How the vectors of a shard that an earlier run left were made; None, and nothing stays in its place, if there is
    none, or it is damaged or another's."""
    if not os.path.lexists(path):
        return None
    try:
        if not path.is_dir():
            raise DamagedError("it is no folder")
        store = Store(path, np.empty(0, np.int64))
        if store.meta["key"] != _key(path):
            raise DamagedError("it is another shard's")
        return store.made
    except DamagedError as damage:
        log.warning("shard %s is damaged (%s): encoding it again", path, damage)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
        return None
