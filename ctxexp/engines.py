"""The built-in engine, which runs the encoding work on this machine: in the process itself, or in a few of them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from ctxexp.engine import Engine
from ctxexp.errors import ConfigError, CtxexpError
from ctxexp.plugins import Register, hookimpl

T = TypeVar("T")
R = TypeVar("R")
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

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, name="watch parent", daemon=True).start()
    _own["work"] = work


def _do(item: bytes) -> Any:
    from cloudpickle import loads

    if "function" not in _own:
        _own["function"] = loads(_own["work"])()
    return _own["function"](loads(item))


@hookimpl
def register_engines(register: Register) -> None:
    register(Local.name, Local)
