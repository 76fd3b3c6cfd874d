"""A dealt text encoded into sums by whoever an engine has, and the sums of all shards put together."""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import platform
import shutil
import time
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.dataset import Corpus
from ctxexp.engines.local import Local
from ctxexp.errors import ConfigError, DataError, StoreError
from ctxexp.measuring.one_pass.additive import Additive, Sums
from ctxexp.model import Encoder
from ctxexp.progress import Progress
from ctxexp.results.run_info import PoolingInfo
from ctxexp.vectors import cache as caches
from ctxexp.vectors import leases
from ctxexp.vectors.batches import warn_unknown
from ctxexp.vectors.code_version import class_version, package_version
from ctxexp.vectors.encode import CODE
from ctxexp.vectors.shards import Crew
from ctxexp_one_pass.summing import Shard, Summing

if TYPE_CHECKING:
    from ctxexp.study import Study, Vectors
    from ctxexp_one_pass.dealt import Dealt

log = logging.getLogger("ctxexp")


@dataclass(frozen=True)
class Totals:
    """The sums of a text: those of all shards that hold a row, over the words in enough sentences.

    `words` and the rows of `counts` stand by count, then alphabetically, as where rows are stored. It also tells what
    a run records of its encoding (`ctxexp.study.Encoding`).
    """

    text: Dealt
    shards: tuple[Shard, ...]
    min_contexts: int
    encoded: int  # sentences that no earlier run had
    made_by: Mapping[str, str]

    @cached_property
    def told(self) -> Counter[str]:
        """Counts over all shards: sentences, rows, skipped, left_out, unknown, pieces."""
        counts: Counter[str] = Counter()
        for shard in self.shards:
            counts.update(shard.told())
        return counts

    @cached_property
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the words in enough sentences, in order, and the rows, sentences and first places of each."""
        counts = np.zeros((3, len(self.text.words)), np.int64)
        for shard in self.shards:
            words, some = shard.counts()
            counts[:, words] += some
        enough = np.flatnonzero(counts[1] >= self.min_contexts)
        enough = enough[np.argsort(counts[0, enough], kind="stable")]
        return enough, counts[:, enough]

    @property
    def words(self) -> list[str]:
        return [self.text.words[i] for i in self._counted[0].tolist()]

    @property
    def counts(self) -> np.ndarray:
        """(3, words): rows, sentences, rows at the first place of a sentence."""
        return self._counted[1]

    def layer(self, number: int) -> Sums:
        """One layer's sums."""
        total = Sums(np.zeros(len(self.text.words), np.int64))
        for shard in self.shards:
            total.merge(shard.sums(number), shard.counts()[0])
        return total.taken(self._counted[0])

    def part(self, shard: Shard, number: int) -> tuple[Sums, np.ndarray]:
        """A shard's share in them, and which of the words it holds."""
        place = np.full(len(self.text.words), -1)
        place[self._counted[0]] = np.arange(len(self._counted[0]))
        at = place[shard.counts()[0]]
        return shard.sums(number).taken(np.flatnonzero(at >= 0)), at[at >= 0]

    # what a run records

    pooling_info = PoolingInfo()

    @property
    def left_out(self) -> Mapping[str, int]:
        return {self.text.fingerprint: self.told["left_out"]}

    def skipped(self, corpus: Corpus) -> tuple[int, float]:
        n = self.told["skipped"]
        return n, n / self.text.text_words if n else 0.0

    def unknown(self, corpus: Corpus) -> tuple[int, int]:
        return self.told["unknown"], self.told["pieces"]

    def made(self, corpus: Corpus) -> dict[str, str]:
        return dict(self.made_by)


def sum_up(
    study: Study, text: Dealt, additives: Mapping[str, Additive], vectors: Vectors, progress: Progress
) -> Totals:
    """The sums of the text, shard by shard: those that the cache's folder has are kept."""
    encoder = study.encoder
    if encoder.sequential or encoder.details.get("pooling") == "pieces":
        what = "carries its state from sentence to sentence" if encoder.sequential else "gives pieces, not words"
        raise ConfigError(f"words.one_pass reads words of single sentences, but this model {what}; leave one out")
    crew, cache = vectors.crew or Crew(Local()), vectors.cache.absolute()
    code = {type(one).__qualname__: _code_of(one) for one in additives.values()}
    own = package_version(Path(__file__).parent)
    said: list[object] = [encoder.name, vectors.version, encoder.class_code, CODE, own, sorted(code.items())]
    said += [text.content, study.words, study.control.name, vars(study.control), vectors.batch_tokens]
    said += [{label: vars(one) for label, one in additives.items()}]
    key = hashlib.blake2b(repr(said).encode(), digest_size=16).hexdigest()
    folder = cache / f"sums-{key}"
    try:
        with caches.entry_lock(cache, key):
            if vectors.sweep:
                leases.lease(cache, leases.SWEEPS, vectors.sweep, key)
            folder.mkdir(exist_ok=True)
            totals = _summed(study, text, additives, vectors.batch_tokens, crew, folder, progress)
            _hold(totals, cache, key)
            os.utime(folder)
        if vectors.limit_bytes is not None:
            caches.make_room(cache, 0, limit=vectors.limit_bytes, keep=key)
        return totals
    except OSError as error:
        raise StoreError(
            f"the sums in {folder} can't be used: {error}; make room or choose another cache folder"
        ) from error


def _hold(totals: Totals, cache: Path, key: str) -> None:
    """Keeps the sums in the cache while these totals read them."""
    reader = f"{platform.node()}-{os.getpid()}-{time.monotonic_ns()}"
    leases.lease(cache, leases.RUNS, reader, key)
    weakref.finalize(totals, leases.release, cache, leases.RUNS, reader)


def _code_of(additive: Additive) -> str:
    """Hex digits that change with its code."""
    return class_version(type(additive)) or package_version(Path(inspect.getfile(type(additive))))


def _summed(
    study: Study,
    text: Dealt,
    additives: Mapping[str, Additive],
    batch_tokens: int,
    crew: Crew,
    folder: Path,
    progress: Progress,
) -> Totals:
    for left in folder.glob("*.*.npz"):  # of workers that were killed while they wrote
        left.unlink(missing_ok=True)
    encoder, shards = study.encoder, tuple(Shard(folder, number) for number in range(len(text.shards)))
    missing = [shard.number for shard in shards if not _kept(shard)]
    if len(missing) < len(shards):
        log.info("%d of %d shards were summed before: %s", len(shards) - len(missing), len(shards), folder)
    encoded = 0
    if missing:  # else no model is loaded
        _settle(encoder, text, [shard.made() for i, shard in enumerate(shards) if i not in missing], missing)
        made = dict(encoder.made)
        work = Summing(
            folder, crew.maker(encoder), encoder.name, made, text, additives, study.words.form, study.control,
            batch_tokens,
        )  # fmt: skip
        title = f"encode {encoder.details.get('architecture', encoder.name)}"
        with progress.stage(title, total=len(shards), unit="shards") as stage:
            stage.advance(len(shards) - len(missing))
            for number in crew.engine.each(work, missing):
                encoded += shards[number].told()["sentences"]
                stage.advance(1)
    held = tuple(shard for shard in shards if shard.told()["rows"])
    if not held:
        raise DataError(f"corpus {text.name!r} has no word to measure: all {text.text_words:,} are left out")
    totals = Totals(text, held, study.words.min_contexts, encoded, shards[0].made())
    warn_unknown(totals.told["unknown"], totals.told["pieces"], text.name)
    return totals


def _kept(shard: Shard) -> bool:
    """Whether an earlier run left this shard's sums; what else lies in its place is removed."""
    if not os.path.lexists(shard.path):
        return False
    if damage := shard.damage():
        log.warning("the sums in %s can't be taken (%s): making them again", shard.path, damage)
        if shard.path.is_dir():
            shutil.rmtree(shard.path)
        else:
            shard.path.unlink()
    return not damage


def _settle(encoder: Encoder, text: Dealt, made: Sequence[Mapping[str, str]], missing: Sequence[int]) -> None:
    """Have all shards made alike: as those that are there, else as the encoder finds best on a first batch."""
    if made and made[0]:
        encoder.settle(made[0])
    elif encoder.made:
        first = next((some for number in missing if (some := list(islice(text.read(number), 64)))), [])
        list(islice(encoder.encode(first), len(first)))
