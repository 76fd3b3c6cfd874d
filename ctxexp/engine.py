"""The contract of engines: work on many items, by as many workers as the engine has."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, TypeVar

from ctxexp.errors import CtxexpError, line
from ctxexp.files.process import defer_signals, process_identity

log = logging.getLogger("ctxexp")

MOST_DEATHS = 3  # of workers at one item, or before they had any
T = TypeVar("T")
R = TypeVar("R")


class WorkerDeaths:
    """Counts the workers that die, so that no item is tried for ever: one that kills its worker kills the next too.

    Args:
        engine: who says so, such as `engine local`.
        hint: what may be the matter, and what to do.
    """

    def __init__(self, engine: str, hint: str) -> None:
        self.engine, self.hint = engine, hint
        self.by_number: Counter[int] = Counter()
        self.before = 0  # workers that died before they had an item, since one last got so far

    def begun(self) -> None:
        """Take note that a worker got so far that it can be given an item."""
        self.before = 0

    def count(self, item: tuple[int, object] | None) -> None:
        """Count a worker that died at this item (its number and itself), or before it had any.

        Raises CtxexpError, which names the item, for the third.
        """
        if item is None:
            self.before += 1
            deaths, at = self.before, "before it had anything to do"
        else:
            self.by_number[item[0]] += 1
            deaths, at = self.by_number[item[0]], f"at item {line(str(item[1]), 200)}"
        if deaths >= MOST_DEATHS:
            raise CtxexpError(
                f"{self.engine}: a worker died {deaths} times {at}: {self.hint} What was done is kept: the same "
                "command goes on from it"
            )
        log.warning("a worker of %s died %s: it is done again", self.engine, at)


class Engine(ABC):
    """Where texts are read and sentences encoded: in this process, in others, on a cluster.

    Work comes in items that don't depend on each other, and leaves what it makes in files that workers and driver
    share, or gives it back; done again, an item gives the same. So an engine may do one twice, and a run that is begun
    again asks for what is missing only. Everything else stays in the driver, sinks too.

    What watches over workers is here too: `worker_deaths` counts those that die, `defer_signals` keeps a library's wait
    from being cut short, and `process_identity` tells whether a process is still the one that it was.

    Example:
        >>> from ctxexp.command import registry
        >>> local = registry().find("engine", "local").factory()
        >>> sorted(local.map_unordered(lambda: abs, [-1, 2]))
        [1, 2]
    """

    name: ClassVar[str] = ""
    workers: int = 1  # one: the driver does the work itself, without shards
    shard_tokens: int = 32_768  # of the model's tokens that are encoded as one item
    worker_deaths = WorkerDeaths
    defer_signals = staticmethod(defer_signals)
    process_identity = staticmethod(process_identity)

    @abstractmethod
    def map_unordered(self, make: Callable[[], Callable[[T], R]], items: Iterable[T]) -> Iterator[R]:
        """The results of `make()` for each item.

        Args:
            make: Called once by each worker, whose items its result then handles: it loads the model, say. It can be
                pickled, by cloudpickle where it is a notebook's.
            items: The items, which can be pickled as well.

        Returns:
            The results, in any order. An item whose worker dies is given to another, `MOST_DEATHS` times in all
            (`worker_deaths`). No worker outlives the driver.

        Raises:
            CtxexpError: Workers died too often.
            Exception: Whatever `make` or the handling of an item raised.

        Example:
            >>> from ctxexp.engines import Local
            >>> sorted(Local().map_unordered(lambda: abs, [-1, 2, -3]))
            [1, 2, 3]
        """
