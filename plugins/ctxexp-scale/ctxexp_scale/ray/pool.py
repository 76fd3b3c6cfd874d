"""Pool of actors that work on items: started when the cluster has room, two items in flight each, replaced if dead."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import ray
from ray import exceptions

from ctxexp import CtxexpError, Engine
from ctxexp.errors import error_text

log = logging.getLogger("ctxexp")

IN_FLIGHT = 2  # items of an actor: it starts the second while the first's result is on its way
WAIT = 60.0  # seconds without a result, after which a run says what it waits for
DEATH = (  # exceptions that mean that an actor died
    exceptions.RayActorError,
    exceptions.OutOfMemoryError,
    exceptions.WorkerCrashedError,
    exceptions.NodeDiedError,
    exceptions.ObjectLostError,
)
MOST_DEATHS = 3  # of workers at one item, or before they had any
Item = tuple[int, Any]  # number of the item, and its payload


class WorkerSlot:
    """Slot of one worker: its actor, or the successor when that dies.

    `tasks` are the actor's tasks in the order in which it does them, each with its item; the first one, without an
    item, reports that the actor is ready.
    """

    def __init__(self, start_actor: Callable[[], Any]) -> None:
        self.start_actor, self.restarts = start_actor, 0
        self.start()

    def restart(self) -> None:
        """Start a successor of the actor, which died."""
        self.restarts += 1
        self.start()

    def start(self) -> None:
        """Start an actor."""
        self.actor = self.start_actor()
        self.tasks: deque[tuple[ray.ObjectRef, Item | None]] = deque([(self.actor.node.remote(), None)])

    def submit(self, item: Item) -> None:
        self.tasks.append((self.actor.do.remote(item[1]), item))

    @property
    def items(self) -> list[Item]:
        """The items of unfinished tasks."""
        return [item for _, item in self.tasks if item]


class WorkerDeaths:
    """Counts the workers that die, so that no item is tried for ever: one that kills its worker kills the next too."""

    def __init__(self) -> None:
        self.by_number: Counter[int] = Counter()
        self.before = 0  # workers that died before they had an item, since one last got so far

    def count(self, item: Item | None) -> None:
        """Count a worker that died at this item, or before it had any. Raises CtxexpError for the third."""
        if item is None:
            self.before += 1
            deaths, at = self.before, "before it had anything to do"
        else:
            self.by_number[item[0]] += 1
            deaths, at = self.by_number[item[0]], f"at item {str(item[1])[:200]}"
        if deaths >= MOST_DEATHS:
            raise CtxexpError(
                f"engine ray: a worker died {deaths} times {at}: is there memory for it on its node? What was done is "
                "kept: the same command goes on from it"
            )
        log.warning("a worker of engine ray died %s: it is done again", at)


class Pool:
    """Actors that work on items.

    Args:
        start_actor: Starts an actor, and returns its handle.
        size: Largest number of slots for actors.
        max_restarts: Number of times that the actor of a slot is replaced; -1: no bound.
        resources: Resources of an actor, by name, for messages.
    """

    def __init__(
        self, start_actor: Callable[[], Any], size: int, max_restarts: int, resources: dict[str, float]
    ) -> None:
        self.start_actor, self.size, self.max_restarts, self.resources = start_actor, size, max_restarts, resources
        self.slots: list[WorkerSlot] = []
        self.waiting: deque[Item] = deque()
        self.deaths = WorkerDeaths()

    def map_unordered(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the results in the order in which they arrive. Raises the exceptions of the work function, and
        CtxexpError for items that kill workers."""
        source, began, ready = enumerate(items), time.monotonic(), 0
        self.waiting.extend(islice(source, self.size))
        try:
            self.slots = [WorkerSlot(self.start_actor) for _ in self.waiting]
            while self.waiting or any(slot.items for slot in self.slots):
                slot = self._next()
                try:
                    with Engine.defer_signals():
                        value = ray.get(slot.tasks[0][0])
                except DEATH as error:
                    self._replace(slot, error)
                    continue
                except exceptions.RayTaskError as error:
                    raise (
                        error.cause if isinstance(error.cause, Exception) else CtxexpError(error_text(error))
                    ) from None
                except exceptions.RayError as error:
                    raise CtxexpError(f"engine ray: no worker can be begun: {error_text(error)}") from error
                _, item = slot.tasks.popleft()
                if item is None:
                    ready += 1
                    self.deaths.before = 0
                    log.info("engine ray: worker %d of %d is ready after %.1f s, on node %s", ready,
                             len(self.slots), time.monotonic() - began, value[:8])  # fmt: skip
                self.waiting.extend(islice(source, max(0, IN_FLIGHT * len(self.slots) - len(self.waiting))))
                self._feed(slot)
                if item is not None:
                    yield value
        finally:
            for slot in self.slots:
                ray.kill(slot.actor)

    def _next(self) -> WorkerSlot:
        """Wait for a slot whose first task has ended. Signals are answered between waits: inside of one, Ray would turn
        their handlers' exceptions into another exit status."""
        firsts = {slot.tasks[0][0]: slot for slot in self.slots if slot.tasks}
        since = time.monotonic()
        while True:
            with Engine.defer_signals():
                done, _ = ray.wait(list(firsts), num_returns=1, timeout=1)
            if done:
                return firsts[done[0]]
            if time.monotonic() - since > WAIT:
                self._report_missing_resources()
                since = time.monotonic()

    def _feed(self, slot: WorkerSlot) -> None:
        """Give the slot items: a second one only while there is one for every slot, and none beside an item at which a
        worker died, so that the next death is counted at the right item."""
        limit = IN_FLIGHT if len(self.waiting) >= len(self.slots) else 1
        while self.waiting and len(slot.tasks) < limit:
            together = [self.waiting[0], *slot.items]
            if len(together) > 1 and any(self.deaths.by_number[number] for number, _ in together):
                return
            slot.submit(self.waiting.popleft())

    def _replace(self, slot: WorkerSlot, error: Exception) -> None:
        """Count the death of an actor at its items, and start another one, which does the unfinished ones.

        Both are counted where two were in flight: the first may have been done, and its result lost with the actor.
        Each is then tried alone, so that every later death is counted at the right item.
        """
        items = slot.items
        if not getattr(error, "preempted", False):  # its node was taken away: no item's fault
            for item in items if slot.tasks[0][1] else [None]:  # None: it died before it was ready
                self.deaths.count(item)
        self.waiting.extendleft(reversed(items))
        if self.max_restarts < 0 or slot.restarts < self.max_restarts:
            slot.restart()
            return
        self.slots.remove(slot)
        if not self.slots:
            raise CtxexpError(
                f"engine ray: no worker is left, each was begun anew {self.max_restarts} times (engine.max_restarts): "
                f"{error_text(error)}; what was done is kept: the same command goes on from it"
            ) from error

    def _report_missing_resources(self) -> None:
        if pending := sum(slot.tasks[0][1] is None for slot in self.slots if slot.tasks):
            has = {name: n for name, n in ray.available_resources().items() if name in ("CPU", "GPU")}
            log.warning("engine ray: %d of %d workers wait for %s each; free are %s", pending, len(self.slots),
                        self.resources, has)  # fmt: skip
