"""Text to training streams: the same segments in the same order for every model, tokenised once to a mapped array."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from filelock import FileLock

from ctxexp.datasets import text_lines
from ctxexp.errors import ConfigError, DataError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Ids 0-4 of the tokenizer. BOUNDARY stands between segments in the stream; the masked model reads it as SEP.
SPECIAL = ("<|endoftext|>", "[PAD]", "[CLS]", "[SEP]", "[MASK]")
BOUNDARY, PAD, CLS, SEP, MASK = range(5)


@dataclass(frozen=True)
class TextSource:
    """Text to train on: the first `words` words of `files` (names without `.txt.xz`) in `folder` less the first
    `skip`, shuffled by `seed`."""

    folder: Path
    files: tuple[str, ...]
    held_out: str
    words: int | None
    seed: int
    skip: int = 0

    def segments(self) -> list[str]:
        """Training segments in training order."""
        rows = list(_segments((self.folder / f"{name}.txt.xz" for name in self.files), self.words, self.skip))
        order = np.random.default_rng(self.seed).permutation(len(rows))
        return [rows[i] for i in order]

    def lines(self) -> Iterator[str]:
        """Lines of the training files, in file order, blank ones between documents; no limit and no skip is kept."""
        for name in self.files:
            yield from _lines(_existing_file(self.folder / f"{name}.txt.xz"))

    def held_out_lines(self) -> Iterator[str]:
        """Lines of the held-out file."""
        yield from _lines(_existing_file(self.folder / f"{self.held_out}.txt.xz"))

    def held_out_segments(self) -> list[str]:
        """Held-out segments, in file order."""
        return list(_segments([self.folder / f"{self.held_out}.txt.xz"], None))

    def key(self) -> str:
        """Hex digest that changes whenever the segments would."""
        sizes = [_existing_file(self.folder / f"{name}.txt.xz").stat().st_size for name in (*self.files, self.held_out)]
        state = [self.files, self.held_out, sizes, self.words, self.seed, self.skip, _LONGEST]
        return hashlib.sha256(json.dumps(state).encode()).hexdigest()[:12]


# Words: a segment is whole lines of one document up to about this length, so that a batch mixes many documents.
_LONGEST = 100


def _existing_file(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"no training text {path}: text= must be a folder that holds {path.name}")
    return path


def _lines(path: Path) -> Iterator[str]:
    return (line for _, line in text_lines(path))


def _segments(paths: Iterator[Path] | Sequence[Path], words: int | None, skip: int = 0) -> Iterator[str]:
    n_words = 0
    for path in paths:
        lines: list[str] = []
        length = 0
        for line in _lines(_existing_file(path)):
            text = line.strip()
            n = len(text.split())
            if lines and (not text or length + n > _LONGEST):
                if n_words >= skip:
                    yield " ".join(lines)
                n_words += length
                lines, length = [], 0
                if words is not None and n_words >= words:
                    return
            if text:
                lines.append(text)
                length += n
        if lines:
            if n_words >= skip:
                yield " ".join(lines)
            n_words += length


def train_tokenizer(segments: Sequence[str], size: int) -> Tokenizer:
    """Cased byte-level BPE of `size` pieces; a word has the same pieces at the start of a text as within it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(segments, trainer)
    if tokenizer.get_vocab_size() != size:
        raise ConfigError(
            f"the text gave a vocabulary of {tokenizer.get_vocab_size()} pieces, not {size}: "
            f"lower vocabulary= or give more text"
        )
    return tokenizer


@dataclass(frozen=True)
class PieceStreams:
    """Streams of piece ids, (n,) uint16: segments one after another, BOUNDARY after each; and their tokenizer."""

    tokenizer_file: Path
    train: np.ndarray
    held_out: np.ndarray

    @classmethod
    def of(cls, text: TextSource, *, vocabulary: int, cache: Path) -> PieceStreams:
        """Tokenises once; later calls map the files. The tokenizer learns from the first of the text's files."""
        folder = cache / f"pieces-{text.key()}-{vocabulary}"
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):  # trainings that begin together split the text once
            if not (folder / "held_out.npy").is_file():
                first = TextSource(text.folder, text.files[:1], text.held_out, text.words, text.seed)
                tokenizer = train_tokenizer(first.segments(), vocabulary)
                tokenizer.save(str(folder / "tokenizer.json"))
                np.save(folder / "train.npy", _stream(tokenizer, text.segments()))
                np.save(folder / "held_out.npy", _stream(tokenizer, text.held_out_segments()))
        train = np.load(folder / "train.npy", mmap_mode="r")
        return cls(folder / "tokenizer.json", train, np.load(folder / "held_out.npy", mmap_mode="r"))

    def unigram(self, vocabulary: int) -> np.ndarray:
        """Log probability of each piece in the training stream, add-one smoothed: (vocabulary,) float64, in nats."""
        return log_unigram(self.train, vocabulary)


def _stream(tokenizer: Tokenizer, segments: Sequence[str]) -> np.ndarray:
    parts: list[np.ndarray] = []
    for start in range(0, len(segments), 4096):
        for encoding in tokenizer.encode_batch_fast(segments[start : start + 4096], add_special_tokens=False):
            parts.append(np.array([*encoding.ids, BOUNDARY], dtype=np.uint16))
    return np.concatenate(parts)


def log_unigram(ids: np.ndarray, size: int) -> np.ndarray:
    """Log of (count + 1) / (n + size) for each id, (size,) float64, in nats."""
    counts = np.bincount(ids, minlength=size).astype(np.float64) + 1.0
    return np.log(counts / counts.sum())


def windows(stream: np.ndarray, start: int, rows: int, width: int) -> np.ndarray:
    """(rows, width) int64 windows of `stream` from `start` on, each beginning with the last unit of the one before.

    So `rows * (width - 1)` units are new, and each unit of the stream is predicted once by a causal model. The stream
    begins again at its end.
    """
    at = start + np.arange(rows)[:, None] * (width - 1) + np.arange(width)[None, :]
    return stream[at % len(stream)].astype(np.int64)
