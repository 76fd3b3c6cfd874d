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
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp import Control, Encoder, Sentence
from ctxexp.errors import EncodingError, error_text, plugin_call
from ctxexp.files import seal, unseal
from ctxexp.vectors.encoding import BatchedText, worker_encoder
from ctxexp_scale.one_pass.sums import Batch, SumForm, Sums

if TYPE_CHECKING:
    from torch import Tensor

    from ctxexp_scale.one_pass.sharded import ShardedText

WINDOW = 4096  # sentences that are in memory, and put into batches, together
IDENTITY = "identity.json"  # the archive's member that names the shard
LEFT_OUT, NOT_FOLLOWED = -2, -1  # units that aren't measured, and those of words without enough contexts


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


@dataclass(frozen=True)
class Summing:
    """Encodes shards, by their numbers, into a folder that workers and driver share; called once in each worker, which
    makes the model."""

    folder: Path
    make: Callable[[], Encoder]
    name: str  # of the driver's encoder
    text: ShardedText
    forms: Mapping[str, SumForm]  # by the metric's label
    form: Callable[[str], str | None]
    control: Control
    batch_tokens: int

    def __call__(self) -> Callable[[int], int]:
        return partial(self.sum, worker_encoder(self.make, self.name))

    def sum(self, encoder: Encoder, number: int) -> int:
        """The shard's number, once its sums are on disk."""
        file = SumsFile(self.folder, number)
        if file.path.is_file():  # another worker was quicker
            return number
        tally = _Tally(self, encoder)
        sentences = self.text.read(number)
        while window := list(islice(sentences, WINDOW)):
            text = BatchedText(encoder, window, self.batch_tokens)
            for i, batch in enumerate(text.batches()):
                tally.add([window[i] for i in batch.tolist()])
                if i % 16 == 0:
                    _trim_memory()
            tally.tallies.update(sentences=len(window), unknown=text.n_unknown_pieces, pieces=text.n_pieces)
        tally.save(file)
        return number


def _trim_memory() -> None:
    """Make the C library return freed memory: batches of ever other shapes leave it 100 MB a million words, and a
    process would grow with the text. (Every 16 batches: it costs next to nothing.)"""
    with suppress(AttributeError, OSError, TypeError):  # another library than glibc
        ctypes.CDLL(None).malloc_trim(0)


class _Tally:
    """The sums of a shard under way."""

    def __init__(self, work: Summing, encoder: Encoder) -> None:
        self.encoder, self.forms, self.control = encoder, work.forms, work.control
        numbers = {word: i for i, word in enumerate(work.text.words)}

        @cache
        def code(unit: str) -> int:
            """The number of the unit's word."""
            word = work.form(unit)
            return LEFT_OUT if word is None else numbers.get(word, NOT_FOLLOWED)

        self.code, self.n_words = code, len(numbers)
        self.counts = np.zeros((3, self.n_words), np.int64)  # rows, sentences, first places
        self.tallies: Counter[str] = Counter()
        layers = len(encoder.layer_numbers)
        self.by_word: list[dict[str, Tensor]] = [{} for _ in range(layers)]
        self.overall: list[dict[str, Tensor]] = [{} for _ in range(layers)]

    def add(self, sentences: Sequence[Sentence]) -> None:
        """Encode a batch and add it up."""
        import torch

        with torch.inference_mode():
            units, x = self._encode(sentences)
            lengths = np.array([len(each) for each in units], np.int64)
            code = np.fromiter((self.code(unit) for each in units for unit in each), np.int64, int(lengths.sum()))
            sentence = np.repeat(np.arange(len(units)), lengths)
            place = np.arange(len(code)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            is_measured = code > LEFT_OUT
            if (skips := self.control.skips(place)) is not None:
                self.tallies["left_out"] += int((is_measured & skips).sum())
                is_measured &= ~skips
            at = np.flatnonzero(is_measured)
            if not len(at):
                return
            index = partial(torch.tensor, device=x.device)
            x = x if len(at) == len(code) else x.index_select(1, index(at))
            code, place, (present, of) = code[at], place[at], np.unique(sentence[at], return_inverse=True)
            followed = np.flatnonzero(code >= 0)
            self._count(code[followed], of[followed], place[followed])
            self.tallies["rows"] += len(at)
            rows, words, of_row = index(followed), index(code[followed]), index(of)
            for layer, vectors in enumerate(x):
                self._add_up(layer, Batch(vectors.double(), of_row, len(present)), rows, words)

    def _encode(self, sentences: Sequence[Sentence]) -> tuple[list[tuple[str, ...]], Tensor]:
        """The units of each sentence and all their vectors (layers, units, dim), checked."""
        import torch

        with plugin_call("encoder", self.encoder.name, "could not read the corpus (tensors)"):
            results = list(islice(self.encoder.encode_tensors(sentences), len(sentences) + 1))  # it may never end
        who, n = f"encoder {self.encoder.name!r}", sum(len(units) for units, _ in results)
        if len(results) != len(sentences):
            raise EncodingError(f"{who} gave {len(results)} results for {len(sentences)} sentences; expected one each")
        x = torch.cat([vectors for _, vectors in results], 1)
        expected = len(self.encoder.layer_numbers), n, self.encoder.dim
        if x.shape != expected:
            raise EncodingError(f"{who} gave vectors of shape {tuple(x.shape)} for {n} units; expected {expected}")
        if not torch.isfinite(x).all():
            raise EncodingError(
                f"{who} gave NaN or infinite values in a batch that begins with {sentences[0].text[:60]!r}; with a "
                "half dtype try dtype=float32"
            )
        for (units, _), sentence in zip(results, sentences, strict=True):
            if units != sentence.words:
                if strange := set(units) - set(sentence.words):
                    raise EncodingError(
                        f"{who} gave the unit {min(strange)!r}, which is no word of {sentence.text[:60]!r}: "
                        "one_pass.shards follows words only, leave it out"
                    )
                self.tallies["skipped"] += len(sentence.words) - len(units)
        return [units for units, _ in results], x if x.device.type != "mps" else x.cpu()  # which has no float64

    def _count(self, code: np.ndarray, sentence: np.ndarray, place: np.ndarray) -> None:
        once = np.unique(code + self.n_words * sentence) % max(self.n_words, 1)
        for row, codes in zip(self.counts, (code, once, code[place == 0]), strict=True):
            row += np.bincount(codes, minlength=self.n_words)

    def _add_up(self, layer: int, batch: Batch, rows: Tensor, words: Tensor) -> None:
        """Add the addends of a batch, of the rows `rows` to the words `words`."""
        added: set[str] = set()
        by_word, overall = self.by_word[layer], self.overall[layer]
        for form in self.forms.values():
            addends = form.addends(batch)
            for name, values in addends.by_word.items():
                if name not in added:
                    if name not in by_word:
                        by_word[name] = values.new_zeros((self.n_words, *values.shape[1:]))
                    by_word[name].index_add_(0, words, values if len(rows) == len(values) else values[rows])
            for name, value in addends.overall.items():
                if name not in added:
                    overall[name] = overall[name] + value if name in overall else value
            added |= {*addends.by_word, *addends.overall}

    def save(self, target: SumsFile) -> None:
        """Write the sums beside their place, and put them there."""
        words = np.flatnonzero(self.counts[0])
        arrays = {"words": words, "counts": self.counts[:, words], "tallies": np.array(json.dumps(self.tallies))}
        for layer, sums in enumerate(self.by_word):
            arrays |= {f"word/{layer}/{name}": total.cpu().numpy()[words] for name, total in sums.items()}
        for layer, sums in enumerate(self.overall):
            arrays |= {f"overall/{layer}/{name}": total.cpu().numpy() for name, total in sums.items()}
        own = target.path.with_suffix(f".{socket.gethostname()}-{os.getpid()}.npz")
        try:
            np.savez(own, **arrays)  # type: ignore[arg-type]  # no array is called allow_pickle
            with zipfile.ZipFile(own, "a") as file:
                file.writestr(IDENTITY, seal(target.identity | {"digest": _digest(file)}))
            own.replace(target.path)
        finally:
            own.unlink(missing_ok=True)


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
