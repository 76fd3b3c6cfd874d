"""A text in shards encoded into sums by an engine's workers: rows are added up on the device where the model leaves
them, and forgotten.

Sums are float64, and lie on that device until the shard is done, so that only they leave it (on the processor where a
device has no float64): words x layers x width x 8 bytes of it.
"""

from __future__ import annotations

import ctypes
import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp import Control, CtxexpError, Encoder, Engine, Sentence
from ctxexp.command import Progress
from ctxexp.errors import DataError, EncodingError, error_text
from ctxexp_scale.encoding import worker_encoder
from ctxexp_scale.shard_files import ShardFile, remove_unfinished
from ctxexp_scale.sharded import ShardedText
from ctxexp_scale.sums import Batch, SumForm, Sums

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger("ctxexp")

WINDOW = 4096  # sentences that are in memory, and put into batches, together
LEFT_OUT, NOT_FOLLOWED = -2, -1  # units that aren't measured, and those of words without enough contexts


def sum_up(work: Summing, engine: Engine, progress: Progress, title: str, *, min_contexts: int) -> Totals:
    """The sums of a text, shard by shard: those that the folder has are kept."""
    remove_unfinished(work.folder)
    shards = [SumsFile(work.folder, f"{number:04d}") for number in range(len(work.text.shards))]
    missing = [i for i, shard in enumerate(shards) if not shard.is_usable()]
    if len(missing) < len(shards):
        log.info("%d of %d shards were summed before: %s", len(shards) - len(missing), len(shards), work.folder)
    n_encoded = 0
    if missing:  # else no model is loaded
        with progress.stage(title, total=len(shards), unit="shards") as stage:
            stage.advance(len(shards) - len(missing))
            for number in engine.map_unordered(work, missing):
                n_encoded += shards[number].tallies()["sentences"]
                stage.advance(1)
    with_rows = tuple(shard for shard in shards if shard.tallies()["rows"])
    if not with_rows:
        raise DataError(f"corpus {work.text.name!r} has no word to measure: all {work.text.text_words:,} are left out")
    return Totals(work.text, with_rows, n_encoded, min_contexts)


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
    read: Callable[[Encoder, Sequence[Sentence]], Any]  # sentences into batches

    def __call__(self) -> Callable[[int], int]:
        return partial(self.sum, worker_encoder(self.make, self.name))

    def sum(self, encoder: Encoder, number: int) -> int:
        """The shard's number, once its sums are on disk."""
        file = SumsFile(self.folder, f"{number:04d}")
        if file.path.is_file():  # another worker was quicker
            return number
        tally = _Tally(self, encoder)
        sentences = self.text.read(number)
        while window := list(islice(sentences, WINDOW)):
            text = self.read(encoder, window)
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

        try:
            results = list(islice(self.encoder.encode_tensors(sentences), len(sentences) + 1))  # it may never end
        except CtxexpError:
            raise
        except Exception as error:
            raise EncodingError(
                f"encoder {self.encoder.name!r} could not read the corpus (tensors): {error_text(error)}"
            ) from error
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
            by_row, of_batch = form.word_addends(batch), form.addends(batch)
            for name, values in by_row.items():
                if name not in added:
                    if name not in by_word:
                        by_word[name] = values.new_zeros((self.n_words, *values.shape[1:]))
                    by_word[name].index_add_(0, words, values if len(rows) == len(values) else values[rows])
            for name, value in of_batch.items():
                if name not in added:
                    overall[name] = overall[name] + value if name in overall else value
            added |= {*by_row, *of_batch}

    def save(self, file: SumsFile) -> None:
        """Write the sums of the words that the shard has."""
        words = np.flatnonzero(self.counts[0])
        with file.write() as writer:
            writer.add("words", words)
            writer.add("counts", self.counts[:, words])
            writer.add("tallies", np.array(json.dumps(self.tallies)))
            for layer, sums in enumerate(self.by_word):
                for name, total in sums.items():
                    writer.add(f"word/{layer}/{name}", total.cpu().numpy()[words])
            for layer, sums in enumerate(self.overall):
                for name, total in sums.items():
                    writer.add(f"overall/{layer}/{name}", total.cpu().numpy())


class SumsFile(ShardFile):
    """The sums of a shard on disk, a file in the folder of its run's key."""

    def tallies(self) -> Counter[str]:
        """Counts of its sentences, rows, words without a vector (`skipped`), occurrences `left_out`, `unknown` pieces
        and `pieces`."""
        with self.open() as arrays:
            return Counter(json.loads(str(arrays["tallies"])))

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of its words (v,), and how many rows, sentences and first places each has (3, v)."""
        with self.open() as arrays:
            return arrays["words"], arrays["counts"]

    def sums(self, layer: int) -> Sums:
        """The sums of one layer, over its words."""
        with self.open() as arrays:
            kinds: dict[str, dict[str, np.ndarray]] = {"word": {}, "overall": {}}
            for member in arrays.files:
                kind, _, rest = member.partition("/")
                number, _, name = rest.partition("/")
                if kind in kinds and int(number) == layer:
                    kinds[kind][name] = arrays[member]
            return Sums(arrays["counts"][0].astype(np.int64), kinds["word"], kinds["overall"])


@dataclass(frozen=True)
class Totals:
    """The sums of a text, of all shards that hold a row, over the words in enough sentences.

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

    def share(self, shard: SumsFile, number: int) -> tuple[Sums, np.ndarray]:
        """A shard's share in them, and which of the words it holds."""
        place = np.full(len(self.text.words), -1)
        place[self._word_counts[0]] = np.arange(len(self._word_counts[0]))
        at = place[shard.counts()[0]]
        return shard.sums(number).subset(np.flatnonzero(at >= 0)), at[at >= 0]
