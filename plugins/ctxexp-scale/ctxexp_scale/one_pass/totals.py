"""A text in shards encoded into sums by an engine's workers, and the sums of all shards put together."""

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
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp import Corpus
from ctxexp.command import Progress
from ctxexp.engines import Local
from ctxexp.errors import ConfigError, DataError, StoreError
from ctxexp.files.code_version import class_digest, package_digest
from ctxexp.results.run_info import PoolingInfo
from ctxexp.vectors.cache import RUNS, SWEEPS, entry_lock, lease, make_room, release
from ctxexp.vectors.encode import CODE
from ctxexp.vectors.encoding import EncodingWorkers, warn_unknown
from ctxexp_scale.one_pass.summing import Summing, SumsFile
from ctxexp_scale.one_pass.sums import SumForm, Sums

if TYPE_CHECKING:
    from ctxexp.measuring.study import Study
    from ctxexp.vectors.stores import Vectors
    from ctxexp_scale.one_pass.sharded import ShardedText

log = logging.getLogger("ctxexp")


@dataclass(frozen=True)
class Totals:
    """The sums of a text, of all shards that hold a row, over the words in enough sentences; and the record of its
    encoding (`ctxexp.measuring.study.EncodingRecord`).

    `words` and the rows of `counts` stand by count, then alphabetically, as where rows are stored.
    """

    text: ShardedText
    shards: tuple[SumsFile, ...]
    min_contexts: int
    n_encoded: int  # sentences that no earlier run had

    @cached_property
    def tallies(self) -> Counter[str]:
        """Counts over all shards: sentences, rows, skipped, left_out, unknown, pieces."""
        return sum((shard.tallies() for shard in self.shards), Counter())

    @cached_property
    def _word_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the words in enough sentences, in order, and the rows, sentences and first places of each."""
        counts = np.zeros((3, len(self.text.words)), np.int64)
        for shard in self.shards:
            words, of_shard = shard.counts()
            counts[:, words] += of_shard
        enough = np.flatnonzero(counts[1] >= self.min_contexts)
        enough = enough[np.argsort(counts[0, enough], kind="stable")]
        return enough, counts[:, enough]

    @property
    def words(self) -> list[str]:
        return [self.text.words[i] for i in self._word_counts[0].tolist()]

    @property
    def counts(self) -> np.ndarray:
        """(3, words): rows, sentences, rows at the first place of a sentence."""
        return self._word_counts[1]

    def layer(self, number: int) -> Sums:
        """One layer's sums."""
        total = Sums(np.zeros(len(self.text.words), np.int64))
        for shard in self.shards:
            total.merge(shard.sums(number), shard.counts()[0])
        return total.subset(self._word_counts[0])

    def part(self, shard: SumsFile, number: int) -> tuple[Sums, np.ndarray]:
        """A shard's share in them, and which of the words it holds."""
        place = np.full(len(self.text.words), -1)
        place[self._word_counts[0]] = np.arange(len(self._word_counts[0]))
        at = place[shard.counts()[0]]
        return shard.sums(number).subset(np.flatnonzero(at >= 0)), at[at >= 0]

    # the record of the encoding

    pooling_info = PoolingInfo()

    @property
    def left_out(self) -> Mapping[str, int]:
        return {self.text.fingerprint: self.tallies["left_out"]}

    def skipped_words(self, corpus: Corpus) -> tuple[int, float]:
        n = self.tallies["skipped"]
        return n, n / self.text.text_words if n else 0.0

    def count_unknown(self, corpus: Corpus) -> tuple[int, int]:
        return self.tallies["unknown"], self.tallies["pieces"]


def sum_up(
    study: Study, text: ShardedText, forms: Mapping[str, SumForm], vectors: Vectors, progress: Progress
) -> Totals:
    """The sums of the text, shard by shard: those that the cache's folder has are kept."""
    encoder = study.encoder
    if encoder.sequential or encoder.details.get("pooling") == "pieces":
        why = "carries its state from sentence to sentence" if encoder.sequential else "gives pieces, not words"
        raise ConfigError(f"one_pass.shards reads words of single sentences, but this model {why}; leave one out")
    workers, cache = vectors.workers or EncodingWorkers(Local()), vectors.cache.absolute()
    code = {type(form).__qualname__: _code_of(form) for form in forms.values()}
    own = package_digest(Path(__file__).parent)
    choices: list[object] = [encoder.name, vectors.version, encoder.class_code, CODE, own, sorted(code.items())]
    choices += [text.content, study.words, study.control.name, vars(study.control), vectors.batch_tokens]
    choices += [{label: vars(form) for label, form in forms.items()}]
    key = hashlib.blake2b(repr(choices).encode(), digest_size=16).hexdigest()
    folder = cache / f"sums-{key}"
    try:
        with entry_lock(cache, key):
            if vectors.sweep:
                lease(cache, SWEEPS, vectors.sweep, key)
            folder.mkdir(exist_ok=True)
            totals = _sum_shards(study, text, forms, vectors.batch_tokens, workers, folder, progress)
            _lease(totals, cache, key)
            os.utime(folder)
        if vectors.limit_bytes is not None:
            make_room(cache, 0, limit=vectors.limit_bytes, keep=key)
        return totals
    except OSError as error:
        raise StoreError(
            f"the sums in {folder} can't be used: {error}; make room or choose another cache folder"
        ) from error


def _lease(totals: Totals, cache: Path, key: str) -> None:
    """Keep the sums in the cache while these totals read them."""
    reader = f"{platform.node()}-{os.getpid()}-{time.monotonic_ns()}"
    lease(cache, RUNS, reader, key)
    weakref.finalize(totals, release, cache, RUNS, reader)


def _code_of(form: SumForm) -> str:
    """Hex digits that change with its code."""
    return class_digest(type(form)) or package_digest(Path(inspect.getfile(type(form))))


def _sum_shards(
    study: Study,
    text: ShardedText,
    forms: Mapping[str, SumForm],
    batch_tokens: int,
    workers: EncodingWorkers,
    folder: Path,
    progress: Progress,
) -> Totals:
    for left in folder.glob("*.*.npz"):  # of workers that were killed while they wrote
        left.unlink(missing_ok=True)
    encoder, shards = study.encoder, tuple(SumsFile(folder, number) for number in range(len(text.shards)))
    missing = [shard.number for shard in shards if not _is_usable(shard)]
    if len(missing) < len(shards):
        log.info("%d of %d shards were summed before: %s", len(shards) - len(missing), len(shards), folder)
    n_encoded = 0
    if missing:  # else no model is loaded
        work = Summing(
            folder, workers.encoder_factory(encoder), encoder.name, text, forms, study.words.form,
            study.control, batch_tokens
        )  # fmt: skip
        title = f"encode {encoder.details.get('architecture', encoder.name)}"
        with progress.stage(title, total=len(shards), unit="shards") as stage:
            stage.advance(len(shards) - len(missing))
            for number in workers.engine.map_unordered(work, missing):
                n_encoded += shards[number].tallies()["sentences"]
                stage.advance(1)
    with_rows = tuple(shard for shard in shards if shard.tallies()["rows"])
    if not with_rows:
        raise DataError(f"corpus {text.name!r} has no word to measure: all {text.text_words:,} are left out")
    totals = Totals(text, with_rows, study.words.min_contexts, n_encoded)
    warn_unknown(totals.tallies["unknown"], totals.tallies["pieces"], text.name)
    return totals


def _is_usable(shard: SumsFile) -> bool:
    """Whether an earlier run left this shard's sums; anything else in its place is removed."""
    if not os.path.lexists(shard.path):
        return False
    if damage := shard.damage():
        log.warning("the sums in %s can't be taken (%s): making them again", shard.path, damage)
        if shard.path.is_dir():
            shutil.rmtree(shard.path)
        else:
            shard.path.unlink()
    return not damage
