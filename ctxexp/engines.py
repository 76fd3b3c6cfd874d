"""The contract of engines, work on many items by as many workers as the engine has; and the built-in one, which works
on this machine: in the process itself, or in a few others.
"""

from __future__ import annotations

import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar, TypeVar

from ctxexp.errors import ConfigError, CtxexpError
from ctxexp.files.process import defer_signals, process_identity, watch_parent

T = TypeVar("T")
R = TypeVar("R")


class Engine(ABC):
    """Where texts are read and sentences encoded: in this process, in others, on a cluster.

    Work comes in items that don't depend on each other, and leaves what it makes in files that workers and driver
    share, or gives it back; done again, an item gives the same. So an engine may do one twice, and a run that is begun
    again asks for what is missing only. Everything else stays in the driver, sinks too.

    What watches over workers is here too: `defer_signals` keeps a library's wait from being cut short, and
    `process_identity` tells whether a process is still the one that it was.

    Example:
        >>> from ctxexp.command import registry
        >>> local = registry().find("engine", "local").factory()
        >>> sorted(local.map_unordered(lambda: abs, [-1, 2]))
        [1, 2]
    """

    name: ClassVar[str] = ""
    workers: int = 1  # one: the driver does the work itself, without shards
    shard_tokens: int = 32_768  # of the model's tokens that are encoded as one item
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
            The results, in any order. An item whose worker dies may be given to another, but not for ever, since it
            may be what kills them. No worker outlives the driver.

        Raises:
            CtxexpError: Workers died too often.
            Exception: Whatever `make` or the handling of an item raised.

        Example:
            >>> from ctxexp.engines import Local
            >>> sorted(Local().map_unordered(lambda: abs, [-1, 2, -3]))
            [1, 2, 3]
        """


_own: dict[str, Any] = {}  # of a worker: its work as bytes, and as a function once it is asked for


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
        from concurrent.futures import FIRST_COMPLETED, Future, wait

        from cloudpickle import dumps
        from joblib.externals.loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

        pool = ProcessPoolExecutor(self.workers, initializer=_begin, initargs=(dumps(make), os.getpid()))
        source, running = iter(items), set[Future[R]]()
        try:
            while True:
                running |= {pool.submit(_do, dumps(item)) for item in islice(source, self.workers - len(running))}
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for one in done:
                    yield one.result()
        except BrokenProcessPool as error:
            raise CtxexpError(
                f"engine {self.name}: a worker died; is there memory for {self.workers} processes? What was done is "
                "kept: the same command goes on from it"
            ) from error
        finally:
            pool.shutdown(kill_workers=True)  # that is safe, since their files are written atomically


def _begin(work: bytes, parent: int) -> None:
    """Let this worker end with its parent, whatever ends that; Ctrl-C in a terminal is the driver's to hear."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch_parent(parent)
    _own["work"] = work


def _do(item: bytes) -> Any:
    from cloudpickle import loads

    if "function" not in _own:
        _own["function"] = loads(_own["work"])()
    return _own["function"](loads(item))
