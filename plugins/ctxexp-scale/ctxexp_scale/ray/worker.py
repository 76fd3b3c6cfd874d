"""Ray's actors, each of which keeps its model between items; Ray begins one that died anew, and repeats its item."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle
import ray
from ray import exceptions

from ctxexp import CtxexpError, Engine
from ctxexp.errors import error_text

log = logging.getLogger("ctxexp")
Driver = tuple[int, str]
"""A process on this machine: its number, and a text that differs for another process of the same number."""
TRIES = 3  # of an item at most: Ray may spend one on the worker that has just died
WAIT = 60  # seconds without a result, after which a run says what it waits for


@ray.remote(max_task_retries=TRIES - 1)
class RayWorker:
    """Unpickles its working function at its first item, and keeps it. It ends with the driver of a cluster that was
    begun for the run (`driver`, else None); elsewhere Ray ends it."""

    def __init__(self, work: bytes, driver: Driver | None) -> None:
        self.work = work
        self.function: Callable[[Any], Any] | None = None
        if driver:
            threading.Thread(target=_end_with, args=driver, daemon=True).start()

    def ready(self) -> None:
        """Returns once the cluster has placed the actor."""

    def do(self, item: Any) -> Any:
        self.function = self.function or cloudpickle.loads(self.work)()
        return self.function(item)


def _end_with(pid: int, start: str) -> None:
    """End this process when the driver is gone: a killed one's raylet may go before it tells its workers."""
    while Engine.process_identity(pid) in (start, None):
        time.sleep(1)
    os._exit(1)


def map_items(actors: list[Any], items: Iterator[Any]) -> Iterator[Any]:
    """Yield what the actors make of the items, as it arrives; each gets an item once it is ready, and the next once
    that is done. The actors end with the items.

    Raises the exceptions of the work function, and CtxexpError for an item whose workers died at each of at most TRIES
    tries.
    """
    running: dict[Any, tuple[Any, tuple[Any, ...]]]  # an actor and its item, if it has one, by the task
    running = {actor.ready.remote(): (actor, ()) for actor in actors}
    try:
        while running:
            task = _next(running)
            actor, item = running.pop(task)
            try:
                with Engine.defer_signals():
                    value = ray.get(task)
            except exceptions.RayTaskError as error:
                raise error.cause if isinstance(error.cause, Exception) else CtxexpError(error_text(error)) from None
            except exceptions.RayError as error:
                at = f"at item {str(*item)[:200]}" if item else "before it had anything to do"
                raise CtxexpError(
                    f"engine ray: a worker died {at}, which was tried {TRIES} times at most (engine.max_restarts): is "
                    f"there memory for it on its node? What was done is kept: the same command goes on from it. "
                    f"({error_text(error)})"
                ) from error
            for following in items:
                running[actor.do.remote(following)] = actor, (following,)
                break
            else:
                if not any(item for _, item in running.values()):
                    running.clear()  # actors without room wait for nothing
            if item:
                yield value
    finally:
        for actor in actors:
            ray.kill(actor)


def _next(running: dict[Any, Any]) -> Any:
    """A task that has ended. Signals are answered between waits: inside of one, Ray would turn their handlers'
    exceptions into another exit status."""
    since = time.monotonic()
    while True:
        with Engine.defer_signals():
            done, _ = ray.wait(list(running), num_returns=1, timeout=1)
        if done:
            return done[0]
        if time.monotonic() - since > WAIT and (n := sum(not item for _, item in running.values())):
            log.warning("engine ray: %d workers wait for room; free are %s", n, ray.available_resources())
            since = time.monotonic()
