"""Encoding a shard into sums: rows are added up on the device where the model leaves them, and forgotten.

Sums are float64, and lie on that device until the shard is done, so that only they leave it (on the processor where a
device has no float64): words x layers x width x 8 bytes of it.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import socket
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.control import Control
from ctxexp.dataset import Sentence
from ctxexp.errors import EncodingError, said
from ctxexp.files.seals import seal, unseal
from ctxexp.measuring.one_pass.additive import Additive, Batch, Sums
from ctxexp.model import Encoder, reading
from ctxexp.vectors.batches import BatchedText
from ctxexp.vectors.shards import made_like

if TYPE_CHECKING:
    from torch import Tensor

    from ctxexp_one_pass.dealt import Dealt

WINDOW = 4096  # sentences that are in memory, and put into batches, together
IDENTITY = "identity.json"  # the archive's member that says whose sums it holds
LEFT_OUT, NOT_FOLLOWED = -2, -1  # units that aren't measured, and those of words without enough contexts


@dataclass(frozen=True)
class Shard:
    """The sums of a shard on disk, a file in the folder of its run's key. It is whole or isn't there."""

    folder: Path
    number: int

    @property
    def path(self) -> Path:
        return self.folder / f"{self.number:04d}.npz"

    @property
    def identity(self) -> dict[str, object]:
        """What the file must say of itself, beside the digest of its arrays."""
        return {"key": self.folder.name, "number": self.number}

    def damage(self) -> str:
        """Why the file can't be taken: it is damaged, or another shard's; empty if it can."""
        if not self.path.is_file():
            return "it is no file"
        try:
            with zipfile.ZipFile(self.path) as file:
                held = unseal(file.read(IDENTITY))
                if held["digest"] != _digest(file):
                    return "the checksum of its sums differs"
        except Exception as error:  # zipfile raises whatever its bytes make of it
            return said(error)
        return "" if held == self.identity | {"digest": held["digest"]} else "it is another shard's"

    def told(self) -> Counter[str]:
        """How many sentences, rows, words without a vector (`skipped`) ... it has."""
        with np.load(self.path) as held:
            return Counter(json.loads(str(held["told"])))

    def made(self) -> dict[str, str]:
        """What its encoder's name left open."""
        with np.load(self.path) as held:
            made: dict[str, str] = json.loads(str(held["made"]))
        return made

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of its words (v,), and how many rows, sentences and first places each has (3, v)."""
        with np.load(self.path) as held:
            return held["words"], held["counts"]

    def sums(self, layer: int) -> Sums:
        """Those of one layer, over its words."""
        with np.load(self.path) as held:
            kinds: dict[str, dict[str, np.ndarray]] = {"word": {}, "whole": {}}
            for name in held.files:
                kind, _, rest = name.partition("/")
                number, _, what = rest.partition("/")
                if kind in kinds and int(number) == layer:
                    kinds[kind][what] = held[name]
            return Sums(held["counts"][0].astype(np.int64), kinds["word"], kinds["whole"])


@dataclass(frozen=True)
class Summing:
    """What encodes shards, by their numbers, into a folder that workers and driver share. Called once a worker: it
    makes the model."""

    folder: Path
    make: Callable[[], Encoder]
    name: str  # of the driver's encoder
    made: Mapping[str, str]  # what its name leaves open
    text: Dealt
    additives: Mapping[str, Additive]
    form: Callable[[str], str | None]
    control: Control
    batch_tokens: int

    def __call__(self) -> Callable[[int], int]:
        return partial(self.sum, made_like(self.make, self.name, self.made))

    def sum(self, encoder: Encoder, number: int) -> int:
        """The shard's number, once its sums are on disk."""
        shard = Shard(self.folder, number)
        if shard.path.is_file():  # another worker was quicker
            return number
        tally = _Tally(self, encoder)
        sentences = self.text.read(number)
        while some := list(islice(sentences, WINDOW)):
            read = BatchedText(encoder, some, self.batch_tokens)
            for done, batch in enumerate(read.batches()):
                tally.add([some[i] for i in batch.tolist()])
                if done % 16 == 0:
                    _give_back()
            tally.told.update(sentences=len(some), unknown=read.unknown, pieces=read.pieces)
        tally.save(shard)
        return number


def _give_back() -> None:
    """Have the C library return what it keeps of freed memory: batches of ever other shapes leave it 100 MB a million
    words, and a process would grow with the text. (Every 16 batches: it costs next to nothing.)"""
    with suppress(AttributeError, OSError, TypeError):  # another library than glibc
        ctypes.CDLL(None).malloc_trim(0)


class _Codes(dict[str, int]):
    """The number of each unit's word, as it comes up."""

    def __init__(self, words: Sequence[str], form: Callable[[str], str | None]) -> None:
        self.numbers, self.form = {word: i for i, word in enumerate(words)}, form

    def __missing__(self, unit: str) -> int:
        form = self.form(unit)
        self[unit] = code = LEFT_OUT if form is None else self.numbers.get(form, NOT_FOLLOWED)
        return code


class _Tally:
    """The sums of a shard under way."""

    def __init__(self, work: Summing, encoder: Encoder) -> None:
        self.encoder, self.additives, self.control = encoder, work.additives, work.control
        self.codes, self.n_words = _Codes(work.text.words, work.form), len(work.text.words)
        self.counts = np.zeros((3, self.n_words), np.int64)  # rows, sentences, first places
        self.told: Counter[str] = Counter()
        layers = len(encoder.given)
        self.by_word: list[dict[str, Tensor]] = [{} for _ in range(layers)]
        self.whole: list[dict[str, Tensor]] = [{} for _ in range(layers)]

    def add(self, sentences: Sequence[Sentence]) -> None:
        """Encode a batch and add it up."""
        import torch

        with torch.inference_mode():
            units, x = self._encoded(sentences)
            lengths = np.array([len(each) for each in units], np.int64)
            code = np.fromiter((self.codes[unit] for each in units for unit in each), np.int64, int(lengths.sum()))
            sentence = np.repeat(np.arange(len(units)), lengths)
            place = np.arange(len(code)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            kept = code > LEFT_OUT
            if (out := self.control.skips(place)) is not None:
                self.told["left_out"] += int((kept & out).sum())
                kept &= ~out
            at = np.flatnonzero(kept)
            if not len(at):
                return
            index = partial(torch.tensor, device=x.device)
            x = x if len(at) == len(code) else x.index_select(1, index(at))
            code, place, (present, of) = code[at], place[at], np.unique(sentence[at], return_inverse=True)
            followed = np.flatnonzero(code >= 0)
            self._count(code[followed], of[followed], place[followed])
            self.told["rows"] += len(at)
            where, which, of_row = index(followed), index(code[followed]), index(of)
            for layer, rows in enumerate(x):
                self._add_up(layer, Batch(rows.double(), of_row, len(present)), where, which)

    def _encoded(self, sentences: Sequence[Sentence]) -> tuple[list[tuple[str, ...]], Tensor]:
        """The units of each sentence and all their vectors (layers, units, dim), checked."""
        import torch

        with reading(self.encoder, "tensors"):
            found = list(islice(self.encoder.tensors(sentences), len(sentences) + 1))  # it may never end
        who, n = f"encoder {self.encoder.name!r}", sum(len(units) for units, _ in found)
        if len(found) != len(sentences):
            raise EncodingError(f"{who} gave {len(found)} results for {len(sentences)} sentences; expected one each")
        x, expected = torch.cat([vectors for _, vectors in found], 1), (len(self.encoder.given), n, self.encoder.dim)
        if x.shape != expected:
            raise EncodingError(f"{who} gave vectors of shape {tuple(x.shape)} for {n} units; expected {expected}")
        if not torch.isfinite(x).all():
            raise EncodingError(
                f"{who} gave NaN or infinite values in a batch that begins with {sentences[0].text[:60]!r}; with a "
                "half dtype try dtype=float32"
            )
        for (units, _), sentence in zip(found, sentences, strict=True):
            if units != sentence.words:
                if strange := set(units) - set(sentence.words):
                    raise EncodingError(
                        f"{who} gave the unit {min(strange)!r}, which is no word of {sentence.text[:60]!r}: "
                        "words.one_pass follows words only, leave it out"
                    )
                self.told["skipped"] += len(sentence.words) - len(units)
        return [units for units, _ in found], x if x.device.type != "mps" else x.cpu()  # which has no float64

    def _count(self, code: np.ndarray, sentence: np.ndarray, place: np.ndarray) -> None:
        once = np.unique(code + self.n_words * sentence) % max(self.n_words, 1)
        for row, codes in zip(self.counts, (code, once, code[place == 0]), strict=True):
            row += np.bincount(codes, minlength=self.n_words)

    def _add_up(self, layer: int, batch: Batch, where: Tensor, which: Tensor) -> None:
        """Add what the additives say of a batch, of the rows `where` to the words `which`."""
        done: set[str] = set()
        by_word, whole = self.by_word[layer], self.whole[layer]
        for additive in self.additives.values():
            addends = additive.addends(batch)
            for name, values in addends.by_word.items():
                if name not in done:
                    if name not in by_word:
                        by_word[name] = values.new_zeros((self.n_words, *values.shape[1:]))
                    by_word[name].index_add_(0, which, values if len(where) == len(values) else values[where])
            for name, value in addends.whole.items():
                if name not in done:
                    whole[name] = whole[name] + value if name in whole else value
            done |= {*addends.by_word, *addends.whole}

    def save(self, shard: Shard) -> None:
        """Write the sums beside their place, and put them there."""
        words = np.flatnonzero(self.counts[0])
        arrays = {"words": words, "counts": self.counts[:, words], "told": np.array(json.dumps(self.told))}
        arrays["made"] = np.array(json.dumps(dict(self.encoder.made)))
        for layer, sums in enumerate(self.by_word):
            arrays |= {f"word/{layer}/{name}": total.cpu().numpy()[words] for name, total in sums.items()}
        for layer, sums in enumerate(self.whole):
            arrays |= {f"whole/{layer}/{name}": total.cpu().numpy() for name, total in sums.items()}
        own = shard.path.with_suffix(f".{socket.gethostname()}-{os.getpid()}.npz")
        try:
            np.savez(own, **arrays)  # type: ignore[arg-type]  # no array is called allow_pickle
            with zipfile.ZipFile(own, "a") as file:
                file.writestr(IDENTITY, seal(shard.identity | {"digest": _digest(file)}))
            own.replace(shard.path)
        finally:
            own.unlink(missing_ok=True)


def _digest(file: zipfile.ZipFile) -> str:
    """Of the names and bytes of all arrays; their checksums in the archive are looked at on the way."""
    digest = hashlib.blake2b(digest_size=16)
    for member in sorted(file.namelist()):
        if member != IDENTITY:
            digest.update(member.encode() + b"\0")
            with file.open(member) as content:
                while block := content.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()
