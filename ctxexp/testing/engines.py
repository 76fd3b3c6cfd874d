"""What holds for every engine: work is made once a worker, every item comes back, and what is raised arrives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from ctxexp.engine import Engine
from ctxexp.testing.report import Broken, Report, called

ITEMS = 12


def check_engine(make: Callable[[], Engine], *, name: str = "") -> Report:
    """The laws of `ctxexp.engine.Engine`; raises ConformanceError naming each that is broken.

    An engine of several workers is put to work: each begins a process.
    """
    report = Report(name or called("engine", make))
    with report.law("interface"):
        engine = make()
        if not isinstance(engine, Engine):
            raise Broken(f"it built {type(engine).__name__}; expected a ctxexp.engine.Engine")
        if not engine.name:
            raise Broken("name is empty; configs choose an engine by it")
        if engine.workers < 1 or engine.shard_tokens < 1:
            raise Broken(f"workers={engine.workers}, shard_tokens={engine.shard_tokens}: expected at least 1 of each")
    if report.failures:
        return report.conclude()
    with report.law("every item's result comes back once"):
        found = Counter(engine.each(_Squares, range(ITEMS)))
        if found != Counter(i * i for i in range(ITEMS)):
            raise Broken(f"each() of the squares below {ITEMS}² gave {sorted(found.elements())}")
    with report.law("no item, no result"):
        if list(engine.each(_Squares, [])):
            raise Broken("each() gave results of no item")
    with report.law("the work is made by workers, not for every item"):
        made = set(engine.each(_Counted, range(ITEMS)))
        if max(made) == 0:
            raise Broken("each() made the work anew for every item: a worker would load its model as often")
    with report.law("what the work raises is raised"):
        try:
            list(engine.each(partial(_Refusing, ITEMS // 2), range(ITEMS)))
        except LookupError as error:
            if "no such number" not in str(error):
                raise Broken(f"another error arrived: {error}") from None
        else:
            raise Broken("each() went on after the work had raised an error")
    return report.conclude()


class _Squares:
    def __call__(self, item: int) -> int:
        return item * item


class _Counted:
    """How many items the same worker did before."""

    def __init__(self) -> None:
        self.done = -1

    def __call__(self, item: int) -> int:
        self.done += 1
        return self.done


class _Refusing:
    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self, item: int) -> int:
        if item == self.at:
            raise LookupError("no such number")
        return item
