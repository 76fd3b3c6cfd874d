"""This machine: the process itself, or a few of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TypeVar

from ctxexp.engine import Engine
from ctxexp.errors import ConfigError, EngineError

log = logging.getLogger("ctxexp")

DEATHS = 3  # times in a row that a worker may die while nothing gets done
T = TypeVar("T")
R = TypeVar("R")


class Local(Engine):
    """`processes` of this machine, each with a model of its own; one: this process."""

    name = "local"

    def __init__(self, *, processes: int = 1, shard_tokens: int = Engine.shard_tokens) -> None:
        if processes < 1 or shard_tokens < 1:
            raise ConfigError(
                f"engine local: expected processes and shard_tokens of at least 1, got processes={processes}, "
                f"shard_tokens={shard_tokens}"
            )
        self.workers, self.shard_tokens = processes, shard_tokens

    def each(self, make: Callable[[], Callable[[T], R]], items: Iterable[T]) -> Iterator[R]:
        if self.workers == 1:
            yield from map(make(), items)
            return
        from joblib import Parallel, delayed
        from joblib.externals.cloudpickle import dumps
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        left, work, deaths = dict(enumerate(items)), dumps(make), 0
        while left:
            pool = Parallel(n_jobs=self.workers, return_as="generator_unordered", batch_size=1)
            try:
                for i, result in pool(delayed(_done)(work, i, item) for i, item in list(left.items())):
                    del left[i]
                    deaths = 0
                    yield result
            except TerminatedWorkerError as error:
                deaths += 1
                if deaths == DEATHS:
                    raise EngineError(
                        f"engine local: a worker died {DEATHS} times in a row ({len(left)} items left): is there "
                        f"memory for {self.workers} processes? What was done is kept: the same command goes on from it"
                    ) from error
                log.warning("a worker of engine local died: what it was at is done again")


@cache
def _made(work: bytes) -> Callable[[object], object]:
    """What this worker does, made once."""
    from joblib.externals.cloudpickle import loads

    made: Callable[[object], object] = loads(work)()
    return made


def _done(work: bytes, i: int, item: object) -> tuple[int, object]:
    return i, _made(work)(item)
