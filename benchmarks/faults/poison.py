"""A sentence that kills, stops or fails the worker that encodes it, under engine=local: it is named after three deaths,
all else is kept, and the next run makes what is missing."""

from __future__ import annotations

import ctypes
import logging
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.engines.local import Local
from ctxexp.errors import EngineError
from ctxexp.model import EncodedSentence
from ctxexp.vectors.encode import open_store
from ctxexp.vectors.shards import EncodingWorkers
from ctxexp.vectors.store import Store
from tests.traced import TracingEncoder, encoding_counts, layers, text

from . import Lost, Silent
from .damage import heard

TOKENS = 60  # of a shard


class OddError(Exception):
    """An error that can't be pickled."""

    def __reduce__(self) -> str:
        raise TypeError("not to be sent")


def kill(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


def raises(error: BaseException) -> None:
    raise error


POISONS: dict[str, Callable[[], object]] = {
    "kills": partial(kill, signal.SIGKILL),
    "raises": lambda: raises(ValueError("a sentence that it can't read")),
    "waits for ever": lambda: time.sleep(600),
    "crashes": lambda: ctypes.string_at(0),
    "ends it": lambda: os._exit(0),
    "raises what can't be sent": lambda: raises(OddError("odd")),
    "asks it to exit": lambda: sys.exit(3),
    "is asked to end": partial(kill, signal.SIGTERM),
}
FAILURES = ("raises", "raises what can't be sent", "asks it to exit")  # the worker lives on


class Poisoned(TracingEncoder):
    """Does what its poison says at certain sentences: always, or where `folder` has no such file yet, once each."""

    def __init__(self, folder: Path, poison: str = "", sentences: Sequence[str] = (), *, always: bool = False) -> None:
        super().__init__(folder)
        self.poison, self.sentences, self.again = poison, set(sentences), always

    def encode(self, batch: Sequence[Sentence]) -> Iterator[EncodedSentence]:
        for sentence in batch:
            if sentence.text in self.sentences and (self.again or self._mark(sentence)):
                (self.folder / "poisoned").touch()
                POISONS[self.poison]()
            yield from super().encode([sentence])

    def _mark(self, sentence: Sentence) -> bool:
        try:
            (self.folder / f"met {sentence.text}").touch(exist_ok=False)
            return True
        except FileExistsError:
            return False


def itself(encoder: Poisoned) -> Poisoned:
    return encoder


def encoded(folder: Path, encoder: Poisoned | None = None) -> Store:
    """The text's vectors; with an encoder by two workers, else by this process."""
    folder.mkdir(exist_ok=True)
    workers = encoder and EncodingWorkers(Local(processes=2, shard_tokens=TOKENS), partial(itself, encoder))
    return open_store(text(), encoder or Poisoned(folder), cache=folder, batch_tokens=20, workers=workers or None)


@cache
def whole(folder: Path) -> bytes:
    encoded(folder / "whole")
    return layers(folder / "whole")


def cases(seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every poison in turn, always or once by turns, in one to three drawn sentences."""
    for place in range(count):
        rng, poison = np.random.default_rng([seed, place]), list(POISONS)[place % len(POISONS)]
        always = place // len(POISONS) % 2 == 0
        sentences = [text().sentences[i].text for i in rng.choice(120, int(rng.integers(1, 4)), replace=False)]
        yield (
            f"{poison}{'' if always else ', once'}: {len(sentences)} sentences",
            lambda poison=poison, sentences=sentences, always=always, own=folder / str(place): tried(
                poison, sentences, always, own
            ),
        )


def tried(poison: str, sentences: Sequence[str], always: bool, folder: Path) -> None:
    """Encode the poisoned text, then the same text without poison in the same place."""
    expected = whole(folder.parent)
    folder.mkdir()
    logging.getLogger("ctxexp").setLevel(logging.ERROR)
    try:
        error = outcome(folder, Poisoned(folder, poison, sentences, always=always), waits=poison == "waits for ever")
    finally:
        logging.getLogger("ctxexp").setLevel(logging.NOTSET)
    if not (folder / "poisoned").exists():
        raise Silent("no worker got to a poisoned sentence")
    judge(poison, always, error)
    before = encoding_counts(folder)
    if max(before.values()) > 3 * 3:
        raise Silent(f"a sentence was encoded {max(before.values())} times")
    kept = {path.name for path in folder.glob("shards-*/0*")}
    with heard():
        store = encoded(folder, Poisoned(folder))
    if layers(folder) != expected:
        raise Silent("other vectors than those of an undisturbed run")
    if error is not None and kept and store.n_encoded == 120:
        raise Lost(f"{len(kept)} shards were there, and all was encoded again")
    if list(folder.glob("shards-*")):
        raise Lost("shards are left over")
    shutil.rmtree(folder)


def outcome(folder: Path, encoder: Poisoned, *, waits: bool) -> BaseException | None:
    """What the poisoned run raises; one that waits is interrupted, as by Ctrl-C, once a worker is at it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
    if waits:
        threading.Thread(target=interrupt, args=(folder,), daemon=True).start()
    try:
        with heard():
            encoded(folder, encoder)
    except (Exception, KeyboardInterrupt) as error:
        return error
    finally:
        signal.signal(signal.SIGINT, before)
    return None


def interrupt(folder: Path) -> None:
    """Send Ctrl-C to this process half a second after a worker came to a poisoned sentence."""
    deadline = time.monotonic() + 60
    while not (folder / "poisoned").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)


def judge(poison: str, always: bool, error: BaseException | None) -> None:
    """Raise Silent unless that is how such a run ends."""
    words = str(error)
    if poison == "waits for ever":
        right = isinstance(error, KeyboardInterrupt)
    elif poison in FAILURES:
        right = isinstance(error, Exception) and re.search("odd|can't read|exit", words) is not None
    elif always:
        named = re.search(r"died 3 times at item \d{6} of .*\(\d+ sentences from 'w?\d", words)
        right = isinstance(error, EngineError) and named is not None and "kept" in words and "\n" not in words
    else:
        right = error is None  # another worker did it
    if not right:
        raise Silent(f"it ended with {error!r}")
