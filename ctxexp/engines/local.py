"""This machine: the process itself, or a few of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from multiprocessing import get_context
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
        from cloudpickle import dumps

        left, work, deaths = dict(enumerate(items)), dumps(make), 0
        while left:
            # joblib's processes are begun anew when their memory grows, as it does with a model
            with ProcessPoolExecutor(self.workers, get_context("spawn"), _begin, (work,)) as pool:
                done = {pool.submit(_done, item): i for i, item in left.items()}
                try:
                    for future in as_completed(done):
                        result: R = future.result()  # type: ignore[assignment]  # what the work makes of an item
                        del left[done[future]]
                        deaths = 0
                        yield result
                except BrokenProcessPool as error:
                    deaths += 1
                    if deaths == DEATHS:
                        raise EngineError(
                            f"engine local: a worker died {DEATHS} times in a row ({len(left)} items left): is there "
                            f"memory for {self.workers} processes? A script that begins them needs `if __name__ == "
                            "'__main__':`. What was done is kept: the same command goes on from it"
                        ) from error
                    log.warning("a worker of engine local died: what it was at is done again")
                finally:
                    pool.shutdown(wait=False, cancel_futures=True)


_work: bytes = b""  # of this process, where it is a worker


def _begin(work: bytes) -> None:
    global _work
    _work = work


@lru_cache(maxsize=1)
def _made(work: bytes) -> Callable[[object], object]:
    """What this worker does, made once."""
    from cloudpickle import loads

    made: Callable[[object], object] = loads(work)()
    return made


def _done(item: object) -> object:
    return _made(_work)(item)
