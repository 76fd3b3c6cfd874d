"""An encoder for tests of engines: it records each sentence that it encodes, and may kill its process."""

from __future__ import annotations

import os
import signal
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp import Corpus, EncodedSentence, Encoder, Engine, Sentence
from ctxexp.vectors.encoding import open_store


class TracingEncoder(Encoder):
    """Writes each sentence that it encodes to a file of its process. The process that first gets to the sentence
    `deadly` dies there, if `folder` has no file `dead` (with `always`, each time); each batch takes `seconds`."""

    n_layers, dim = 2, 8

    def __init__(self, folder: Path, *, deadly: str = "", always: bool = False, seconds: float = 0.0) -> None:
        self.name, self.folder, self.deadly, self.always, self.seconds = "traced", folder, deadly, always, seconds

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        time.sleep(self.seconds)
        for sentence in batch:
            if self.deadly and sentence.text == self.deadly and (self.always or self._first()):
                os.kill(os.getpid(), signal.SIGKILL)
            with (self.folder / f"seen-{os.getpid()}.txt").open("a", encoding="utf-8") as file:
                file.write(sentence.text + "\n")
            seeds = [zlib.crc32(f"{word} {sentence.text}".encode()) for word in sentence.words]
            rows = [np.random.default_rng(seed).normal(size=(2, 8)).astype(np.float32) for seed in seeds]
            yield EncodedSentence(sentence.words, np.stack(rows, axis=1))

    def _first(self) -> bool:
        try:
            (self.folder / "dead").touch(exist_ok=False)
            return True
        except FileExistsError:
            return False


def encoding_counts(folder: Path) -> Counter[str]:
    """The number of times that each sentence was encoded, by any process."""
    return Counter(line for file in folder.glob("seen-*.txt") for line in file.read_text(encoding="utf-8").splitlines())


def wait_for_end(processes: Iterable[int]) -> None:
    """Return when none of these processes is left; AssertionError after 20 seconds."""
    deadline = time.monotonic() + 20
    while alive := [pid for pid in processes if Engine.process_identity(pid)]:
        assert time.monotonic() < deadline, f"{len(alive)} workers go on without their driver"
        time.sleep(0.05)


def numbered_corpus(n: int = 120) -> Corpus:
    """Sentences of 2 to 10 words, the last the sentence's number."""
    rng = np.random.default_rng(0)
    return Corpus.of("text", [[*(f"w{i}" for i in rng.integers(0, 9, 1 + j % 9)), str(j)] for j in range(n)])


def encoded(
    cache: Path,
    engine: Engine | None = None,
    encoder: TracingEncoder | None = None,
    *,
    worker_encoder: TracingEncoder | None = None,
) -> Any:
    """The stored vectors of `numbered_corpus()`, encoded by the engine's workers (None: here)."""
    cache.mkdir(exist_ok=True)
    encoder = encoder or TracingEncoder(cache)
    make = partial(_same, worker_encoder or encoder)
    return open_store(numbered_corpus(), encoder, cache=cache, batch_tokens=20, engine=engine, make=make)


def _same(encoder: TracingEncoder) -> TracingEncoder:
    return encoder


def layers(cache: Path) -> bytes:
    """The bytes of all layers and of the row index of the only store in the cache."""
    (entry,) = [path for path in cache.iterdir() if len(path.name) == 32]
    names = ["layer_00.npy", "layer_01.npy", "unit_codes.npy", "offsets.npy", "order.npy", "positions.npy"]
    return b"".join((entry / name).read_bytes() for name in [*names, "vocabulary.json"])


class Counted(Encoder):
    """An encoder whose vectors say where they are from: a word's code points, its place, its layer."""

    n_layers, dim = 3, 4

    def __init__(
        self, name: str = "counted", *, change: Callable[[Sentence, EncodedSentence], EncodedSentence] | None = None
    ) -> None:
        self.name, self.change = name, change
        self.batches = []

    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        self.batches.append(list(batch))
        for sentence in batch:
            one = vectors(sentence)
            yield self.change(sentence, one) if self.change else one


def vectors(sentence: Sentence) -> EncodedSentence:
    rows = [[sum(map(ord, word)), place, len(word), 1] for place, word in enumerate(sentence)]
    base = np.array(rows, dtype=np.float32).reshape(1, -1, 4)
    return EncodedSentence(sentence.words, base * np.arange(1, 4, dtype=np.float32)[:, None, None])


def corpus(n: int = 60, name: str = "c") -> Corpus:
    rng = np.random.default_rng(0)
    words = ["the", "dog", "river", "bank", "👍🏽", "\u200b", "naïve", "ran"]
    return Corpus.of(name, [tuple(rng.choice(words, size=rng.integers(1, 9))) for _ in range(n)] + [("the", "dog")] * 3)
