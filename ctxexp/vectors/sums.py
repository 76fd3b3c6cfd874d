"""The sums of a text's shards: a file each in the cache, and their total."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import socket
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ctxexp.dataset import Corpus
from ctxexp.datasets.shards import ShardedText
from ctxexp.errors import error_text
from ctxexp.files import seal, unseal
from ctxexp.maths.sums import Sums
from ctxexp.results.run_info import PoolingInfo

log = logging.getLogger("ctxexp")

IDENTITY = "identity.json"  # the archive's member that names the shard


@dataclass(frozen=True)
class SumsFile:
    """The sums of a shard on disk, a file in the folder of its run's key: complete, or not there."""

    folder: Path
    number: int

    @property
    def path(self) -> Path:
        return self.folder / f"{self.number:04d}.npz"

    @property
    def identity(self) -> dict[str, object]:
        """The shard's identity, which the file holds beside the digest of its arrays."""
        return {"key": self.folder.name, "number": self.number}

    def damage(self) -> str:
        """The reason why the file can't be used: it is damaged, or another shard's; empty if it can."""
        if not self.path.is_file():
            return "it is no file"
        try:
            with zipfile.ZipFile(self.path) as file:
                identity = unseal(file.read(IDENTITY))
                digest = identity.pop("digest")
                if digest != _digest(file):
                    return "the checksum of its sums differs"
        except Exception as error:  # zipfile raises whatever its bytes make of it
            return error_text(error)
        return "" if identity == self.identity else "it is another shard's"

    def tallies(self) -> Counter[str]:
        """Counts of its sentences, rows, words without a vector (`skipped`), occurrences `left_out`, `unknown` pieces
        and `pieces`."""
        with np.load(self.path) as arrays:
            return Counter(json.loads(str(arrays["tallies"])))

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of its words (v,), and how many rows, sentences and first places each has (3, v)."""
        with np.load(self.path) as arrays:
            return arrays["words"], arrays["counts"]

    def sums(self, layer: int) -> Sums:
        """The sums of one layer, over its words."""
        with np.load(self.path) as arrays:
            kinds: dict[str, dict[str, np.ndarray]] = {"word": {}, "overall": {}}
            for member in arrays.files:
                kind, _, rest = member.partition("/")
                number, _, name = rest.partition("/")
                if kind in kinds and int(number) == layer:
                    kinds[kind][name] = arrays[member]
            return Sums(arrays["counts"][0].astype(np.int64), kinds["word"], kinds["overall"])

    def write(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Write the arrays beside their place, and put them there."""
        own = self.path.with_suffix(f".{socket.gethostname()}-{os.getpid()}.npz")
        try:
            np.savez(own, **arrays)  # type: ignore[arg-type]  # no array is called allow_pickle
            with zipfile.ZipFile(own, "a") as file:
                file.writestr(IDENTITY, seal(self.identity | {"digest": _digest(file)}))
            own.replace(self.path)
        finally:
            own.unlink(missing_ok=True)

    def is_usable(self) -> bool:
        """Whether an earlier run left this shard's sums; anything else in its place is removed."""
        if not os.path.lexists(self.path):
            return False
        if damage := self.damage():
            log.warning("the sums in %s can't be taken (%s): making them again", self.path, damage)
            if self.path.is_dir():
                shutil.rmtree(self.path)
            else:
                self.path.unlink()
        return not damage


def _digest(file: zipfile.ZipFile) -> str:
    """Hex digest of the names and bytes of all arrays; reading them checks the archive's own checksums too."""
    digest = hashlib.blake2b(digest_size=16)
    for member in sorted(file.namelist()):
        if member != IDENTITY:
            digest.update(member.encode() + b"\0")
            with file.open(member) as content:
                while block := content.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True)
class Totals:
    """The sums of a text, of all shards that hold a row, over the words in enough sentences; and the record of its
    encoding, as `ctxexp.vectors.stores.Stores` has it of rows.

    `words` and the rows of `counts` stand by count, then alphabetically, as where rows are stored.
    """

    text: ShardedText
    shards: tuple[SumsFile, ...]
    n_encoded: int  # sentences that no earlier run had
    min_contexts: int

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
