"""Actors that work on items: begun when the cluster has room, two items each on their way, replaced when they die."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import ray
from ray import exceptions

from ctxexp.engine import Deaths
from ctxexp.errors import EngineError, said
from ctxexp.sinks.disk.process import held_back

log = logging.getLogger("ctxexp")

IN_FLIGHT = 2  # items of an actor: it begins the second while the first's result is on its way
WAIT = 60.0  # seconds without a word, after which a run says what it waits for
DEATH = (
    exceptions.RayActorError,
    exceptions.OutOfMemoryError,
    exceptions.WorkerCrashedError,
    exceptions.NodeDiedError,
    exceptions.ObjectLostError,
)
Item = tuple[int, Any]  # with its number


class Place:
    """The place of one worker: its actor, or the one that follows when that dies.

    `given` are the actor's tasks in the order in which it does them, first the one by which it says that it is ready.
    """

    def __init__(self, begin: Callable[[], Any]) -> None:
        self.begin, self.restarts = begin, -1
        self.start()

    def start(self) -> None:
        """Begin an actor, the first or another."""
        self.restarts += 1
        self.actor = self.begin()
        self.given: deque[tuple[ray.ObjectRef, Item | None]] = deque([(self.actor.node.remote(), None)])

    def give(self, item: Item) -> None:
        self.given.append((self.actor.do.remote(item[1]), item))

    @property
    def items(self) -> list[Item]:
        """The items that it was given and hasn't done."""
        return [item for _, item in self.given if item]


class Pool:
    """Works on items by actors.

    Args:
        begin: begins an actor.
        size: how many places for actors there are at most.
        max_restarts: how often the actor of a place is replaced; -1: always.
        wanted: resources of an actor by name, for messages.
    """

    def __init__(self, begin: Callable[[], Any], size: int, max_restarts: int, wanted: dict[str, float]) -> None:
        self.begin, self.size, self.max_restarts, self.wanted = begin, size, max_restarts, wanted
        self.places: list[Place] = []
        self.waiting: deque[Item] = deque()
        self.deaths = Deaths("engine ray", "is there memory for it on its node?")

    def each(self, items: Iterable[Any]) -> Iterator[Any]:
        """The results, in whatever order. Raises what the work raises, and EngineError for what kills workers."""
        source, began, ready = enumerate(items), time.monotonic(), 0
        self.waiting.extend(islice(source, self.size))
        try:
            self.places = [Place(self.begin) for _ in self.waiting]
            while self.waiting or any(place.items for place in self.places):
                place = self._next()
                try:
                    with held_back():
                        value = ray.get(place.given[0][0])
                except DEATH as error:
                    self._bury(place, error)
                    continue
                except exceptions.RayTaskError as error:
                    raise error.cause if isinstance(error.cause, Exception) else EngineError(said(error)) from None
                except exceptions.RayError as error:
                    raise EngineError(f"engine ray: no worker can be begun: {said(error)}") from error
                _, item = place.given.popleft()
                if item is None:
                    ready += 1
                    self.deaths.begun()
                    log.info("engine ray: worker %d of %d is ready after %.1f s, on node %s", ready,
                             len(self.places), time.monotonic() - began, value[:8])  # fmt: skip
                self.waiting.extend(islice(source, max(0, IN_FLIGHT * len(self.places) - len(self.waiting))))
                self._feed(place)
                if item is not None:
                    yield value
        finally:
            for place in self.places:
                ray.kill(place.actor)

    def _next(self) -> Place:
        """A place whose first task has ended; waits for it. Signals are answered between waits: inside, Ray would make
        another exit status of what their handlers raise."""
        firsts = {place.given[0][0]: place for place in self.places if place.given}
        since = time.monotonic()
        while True:
            with held_back():
                heard, _ = ray.wait(list(firsts), num_returns=1, timeout=1)
            if heard:
                return firsts[heard[0]]
            if time.monotonic() - since > WAIT:
                self._say_what_is_lacking()
                since = time.monotonic()

    def _feed(self, place: Place) -> None:
        """Give the place what it can take: a second item only while there is one for every place, and none beside an
        item that a worker died at, so that the right one is blamed."""
        most = IN_FLIGHT if len(self.waiting) >= len(self.places) else 1
        while self.waiting and len(place.given) < most:
            beside = [self.waiting[0], *place.items]
            if len(beside) > 1 and any(self.deaths.by_number[number] for number, _ in beside):
                return
            place.give(self.waiting.popleft())

    def _bury(self, place: Place, error: Exception) -> None:
        """Count the death of an actor at its first item, and have another in its place do what it was given."""
        items, (_, first) = place.items, place.given[0]
        if not getattr(error, "preempted", False):  # its node was taken away: no item's fault
            self.deaths.count(first)
        self.waiting.extendleft(reversed(items))
        if self.max_restarts < 0 or place.restarts < self.max_restarts:
            place.start()
            return
        self.places.remove(place)
        if not self.places:
            raise EngineError(
                f"engine ray: no worker is left, each was begun anew {self.max_restarts} times (engine.max_restarts): "
                f"{said(error)}; what was done is kept: the same command goes on from it"
            ) from error

    def _say_what_is_lacking(self) -> None:
        if pending := sum(place.given[0][1] is None for place in self.places if place.given):
            has = {name: n for name, n in ray.available_resources().items() if name in ("CPU", "GPU")}
            log.warning("engine ray: %d of %d workers wait for %s each; free are %s", pending, len(self.places),
                        self.wanted, has)  # fmt: skip
