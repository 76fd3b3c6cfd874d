"""Sentences encoded by an engine's workers, in shards of whole batches: what is done when a run stops is kept."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from ctxexp import EncodedSentence, Encoder, Sentence
from ctxexp import Engine as AnyEngine
from ctxexp.errors import EncodingError
from ctxexp_scale.shard_files import ShardFile, remove_unfinished

log = logging.getLogger("ctxexp")
Batch = Sequence[Sentence]
SHARD_TOKENS = 32_768


class Engine(AnyEngine):
    """An engine whose workers encode in shards of about `shard_tokens` of the model's tokens, one item each. They need
    to see the cache's folder under one path."""

    shard_tokens: int = SHARD_TOKENS

    def encode(
        self,
        encoder: Encoder,
        make: Callable[[], Encoder],
        batches: Sequence[tuple[Batch, int]],
        folder: Path,
        advance: Callable[[int], object],
    ) -> tuple[int, Iterator[EncodedSentence]]:
        folder.mkdir(exist_ok=True)
        remove_unfinished(folder)
        shards = list(_shards(batches, folder, self.shard_tokens))
        missing = [shard for shard in shards if not shard.file.is_usable()]
        if len(missing) < len(shards):
            log.info("%d of %d shards were encoded before: %s", len(shards) - len(missing), len(shards), folder)
        advance(sum(shard.n_words for shard in shards) - sum(shard.n_words for shard in missing))
        for n_words in self.map_unordered(ShardEncoder(make, encoder.name), missing):
            advance(n_words)
        return sum(len(batch) for shard in missing for batch in shard.batches), _results(shards)


@dataclass(frozen=True)
class Shard:
    """Batches that a worker encodes as one item."""

    file: ShardFile
    batches: Sequence[Batch]

    @property
    def n_words(self) -> int:
        return sum(len(sentence) for batch in self.batches for sentence in batch)

    def __str__(self) -> str:
        first = self.batches[0][0].text[:60]
        return f"{self.file.name} of {self.file.folder} ({sum(map(len, self.batches))} sentences from {first!r})"


def _shards(batches: Sequence[tuple[Batch, int]], folder: Path, shard_tokens: int) -> Iterator[Shard]:
    """Whole batches in shards of about so many tokens, named by their number and by what they encode."""
    members: list[Batch] = []
    number, tokens = 0, 0
    for i, (batch, n) in enumerate(batches):
        members.append(batch)
        tokens += n
        if tokens >= shard_tokens or i == len(batches) - 1:
            content = repr([[(sentence.text, sentence.spans) for sentence in batch] for batch in members])
            digest = hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
            yield Shard(ShardFile(folder, f"{number:06d}-{digest}"), members)
            members, number, tokens = [], number + 1, 0


def _results(shards: Sequence[Shard]) -> Iterator[EncodedSentence]:
    """The vectors of all sentences, batch by batch."""
    for shard in shards:
        if not shard.file.path.is_file():
            raise EncodingError(
                f"the shard {shard.file.path} isn't there: expected a folder that all of the engine's workers see "
                "under this path (cache.folder)"
            )
        with shard.file.open() as arrays:
            for i in range(len(shard.batches)):
                units, rows = json.loads(str(arrays[f"units/{i}"])), arrays[f"rows/{i}"]
                ends = np.cumsum([len(each) for each in units])
                for each, layers in zip(units, np.split(rows, ends[:-1], axis=1), strict=True):
                    yield EncodedSentence(tuple(each), layers.copy())


@dataclass(frozen=True)
class ShardEncoder:
    """Encodes shards to disk. Each worker calls it once, to make its model."""

    make: Callable[[], Encoder]
    name: str  # of the driver's encoder

    def __call__(self) -> Callable[[Shard], int]:
        return partial(self.encode, worker_encoder(self.make, self.name))

    def encode(self, encoder: Encoder, shard: Shard) -> int:
        """Encode the shard to disk, unless it is there already, and return its number of words."""
        if shard.file.path.is_file():  # another worker was quicker
            return shard.n_words
        encoder.lengths([sentence for batch in shard.batches for sentence in batch])  # some read their sentences here
        with shard.file.write() as writer:
            for i, batch in enumerate(shard.batches):
                found = list(encoder.encode(batch))
                if len(found) != len(batch):
                    raise EncodingError(
                        f"encoder {self.name!r} gave {len(found)} results for {len(batch)} sentences; expected one each"
                    )
                writer.add(f"units/{i}", np.array(json.dumps([one.units for one in found])))
                writer.add(f"rows/{i}", np.concatenate([one.layers for one in found], axis=1))
        return shard.n_words


def worker_encoder(make: Callable[[], Encoder], name: str) -> Encoder:
    """A worker's encoder. Raises EncodingError unless it has the name of the driver's."""
    encoder = make()
    if encoder.name != name:
        raise EncodingError(
            f"a worker made the encoder {encoder.name!r}, the driver has {name!r}; do all see the same files, "
            "and the same versions?"
        )
    return encoder
