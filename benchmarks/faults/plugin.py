"""A plugin with a model whose vectors are drawn from its name and a sentence's words, and an engine that stops."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ctxexp_scale.encoding import Engine

from ctxexp import Corpus, CtxexpError, EncodedSentence, Encoder, Register, Sentence, hookimpl
from ctxexp.command import Experiment, configured

CORPORA = {name: Corpus.of(name, [(name, *"abcdefg"[: i % 7], str(i)) for i in range(80)]) for name in ("one", "two")}
STOPPED = "stopped here"


class Drawn(Encoder):
    """`seconds`: that it takes for each sentence."""

    n_layers, dim = 3, 32

    def __init__(self, source: str = "one", seconds: float = 0) -> None:
        self.name, self.seconds = source, seconds

    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        for s in batch:
            time.sleep(self.seconds)
            rng = np.random.default_rng(zlib.crc32(f"{self.name} {s.text}".encode()))
            yield EncodedSentence(s.words, rng.normal(size=(3, len(s), 32)).astype(np.float32))


class Stopped(Engine):
    """Two workers' shards, by this process, which stops after so many."""

    name, workers, shard_tokens = "stopped", 2, 40

    def __init__(self, after: int = 999) -> None:
        self.after = after

    def map_unordered(self, make: Callable[[], Callable[[Any], Any]], items: Iterable[Any]) -> Iterator[Any]:
        work = make()
        for i, item in enumerate(items):
            if i == self.after:
                raise CtxexpError(STOPPED)
            yield work(item)


@hookimpl
def register_models(register: Register) -> None:
    register("drawn", Drawn)


@hookimpl
def register_engines(register: Register) -> None:
    register("stopped", Stopped)


def open_store(cache: Path, name: str, text: str = "one", **options: object) -> Any:
    """The store of one of CORPORA's vectors by the model of that name, as a run with these options opens it."""
    chosen = {"plugins": [__file__], "model.source": name, "cache.folder": str(cache), "min_contexts": 2, **options}
    experiment = Experiment(configured("drawn", CORPORA[text], {"cache.limit_gb": None, **chosen}))
    return experiment.study.space(experiment.vectors)[0]
