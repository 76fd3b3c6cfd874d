"""The kit of engines passes what ships, in processes too, and fails engines with a bug by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from ctxexp import Engine
from ctxexp.errors import ConformanceError
from ctxexp.testing import check
from tests.shipped import Local


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_what_ships_conforms(processes: int) -> None:
    assert len(check("engine", lambda: Local(processes=processes)).passed) == 5


class Good(Engine):
    name = "good"

    def map_unordered(self, make: Callable[[], Callable[[Any], Any]], items: Iterable[Any]) -> Iterator[Any]:
        work = make()
        for item in items:
            yield work(item)


class Nameless(Good):
    name = ""


class Idle(Good):
    workers = 0


class Twice(Good):
    def map_unordered(self, make: Callable[[], Callable[[Any], Any]], items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            yield from super().map_unordered(make, [item, item])


class Lossy(Good):
    def map_unordered(self, make: Callable[[], Callable[[Any], Any]], items: Iterable[Any]) -> Iterator[Any]:
        yield from super().map_unordered(make, list(items)[1:])


class Chatty(Good):
    def map_unordered(self, make: Callable[[], Callable[[Any], Any]], items: Iterable[Any]) -> Iterator[Any]:
        yield from super().map_unordered(make, list(items) or [0])


class Forgetful(Good):
    def map_unordered(self, make: Callable[[], Callable[[Any], Any]], items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            yield make()(item)


class Deaf(Good):
    def map_unordered(self, make: Callable[[], Callable[[Any], Any]], items: Iterable[Any]) -> Iterator[Any]:
        work = make()
        for item in items:
            try:
                yield work(item)
            except LookupError:
                continue


class Muffled(Good):
    def map_unordered(self, make: Callable[[], Callable[[Any], Any]], items: Iterable[Any]) -> Iterator[Any]:
        try:
            yield from super().map_unordered(make, items)
        except LookupError:
            raise KeyError("a worker failed") from None


@pytest.mark.parametrize(
    ("engine", "law", "cause"),
    [
        (Nameless, "interface", "name is empty"),
        (Idle, "interface", "workers=0"),
        (object, "interface", "it built object"),
        (Twice, "every item's result comes back once", "gave [0, 0, 1, 1"),
        (Lossy, "every item's result comes back once", "gave [1, 4"),
        (Chatty, "no item, no result", "gave results for an empty list of items"),
        (Forgetful, "the work is made by workers, not for every item", "load its model as often"),
        (Deaf, "what the work raises is raised", "went on after"),
        (Muffled, "what the work raises is raised", "another error arrived"),
    ],
)
def test_engines_with_a_bug(engine: Callable[[], Engine], law: str, cause: str) -> None:
    assert len(check("engine", Good).passed) == 5
    with pytest.raises(ConformanceError) as error:
        check("engine", engine)
    (broken,) = [line for line in str(error.value).splitlines() if "BROKEN" in line]
    assert law in broken
    assert cause in broken
