"""This machine: the process itself, or a few of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from ctxexp.engine import Engine, WorkerDeaths
from ctxexp.errors import ConfigError

MAIN_GUARD_HINT = "A script that begins them needs `if __name__ == '__main__':`."
T = TypeVar("T")
R = TypeVar("R")


class Local(Engine):
    """This process (`processes` 1), or so many worker processes of this machine, each with a model of its own.

    `shard_tokens`: about so many of the model's tokens are encoded as one item of work.
    """

    name = "local"

    def __init__(self, *, processes: int = 1, shard_tokens: int = Engine.shard_tokens) -> None:
        if processes < 1 or shard_tokens < 1:
            raise ConfigError(
                f"engine local: expected processes and shard_tokens of at least 1, got processes={processes}, "
                f"shard_tokens={shard_tokens}"
            )
        self.workers, self.shard_tokens = processes, shard_tokens

    def map_unordered(self, make: Callable[[], Callable[[T], R]], items: Iterable[T]) -> Iterator[R]:
        if self.workers == 1:
            yield from map(make(), items)
            return
        from cloudpickle import dumps

        from ctxexp.engines.processes import LocalWorker, answers

        source, work = enumerate(items), dumps(make)
        waiting = deque(islice(source, self.workers))
        workers = [LocalWorker(work) for _ in waiting]
        deaths = WorkerDeaths(f"engine {self.name}", f"is there memory for {self.workers} processes? {MAIN_GUARD_HINT}")
        try:
            while workers:
                for worker, outcome, value in answers(workers):
                    item, worker.item = worker.item, None
                    if outcome == "failed":
                        raise value
                    if outcome == "dead":
                        deaths.count(item)
                        waiting.extendleft([item] if item else [])
                        workers[workers.index(worker)] = LocalWorker(work)
                        continue
                    deaths.begun()
                    if not waiting:
                        waiting.extend(islice(source, 1))
                    if waiting:
                        worker.give(waiting.popleft())
                    else:
                        workers.remove(worker)
                        worker.kill()
                    if outcome == "done":
                        yield value
        finally:
            for worker in workers:
                worker.kill()
