"""Laws of engines: each worker builds its function once, every item's result comes back, exceptions reach the
caller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from ctxexp.engine import Engine
from ctxexp.testing.report import Breach, Report, subject_label

ITEMS = 12


def check_engine(make: Callable[[], Engine], *, name: str = "") -> Report:
    """The laws of `ctxexp.engine.Engine`; raises ConformanceError naming each that is broken.

    An engine of several workers starts them, each a process of its own.
    """
    report = Report(name or subject_label("engine", make))
    with report.law("interface"):
        engine = make()
        if not isinstance(engine, Engine):
            raise Breach(f"it built {type(engine).__name__}; expected a ctxexp.engine.Engine")
        if not engine.name:
            raise Breach("name is empty; configs choose an engine by it")
        if engine.workers < 1 or engine.shard_tokens < 1:
            raise Breach(f"workers={engine.workers}, shard_tokens={engine.shard_tokens}: expected at least 1 of each")
    if report.failures:
        return report.conclude()
    with report.law("every item's result comes back once"):
        results = Counter(engine.map_unordered(_Squares, range(ITEMS)))
        if results != Counter(i * i for i in range(ITEMS)):
            raise Breach(f"map_unordered() of the squares below {ITEMS}² gave {sorted(results.elements())}")
    with report.law("no item, no result"):
        if list(engine.map_unordered(_Squares, [])):
            raise Breach("map_unordered() gave results for an empty list of items")
    with report.law("the work is made by workers, not for every item"):
        counts = set(engine.map_unordered(_CallCount, range(ITEMS)))
        if max(counts) == 0:
            raise Breach("map_unordered() made the work anew for every item: a worker would load its model as often")
    with report.law("what the work raises is raised"):
        try:
            list(engine.map_unordered(partial(_RaiseAt, ITEMS // 2), range(ITEMS)))
        except LookupError as error:
            if "no such number" not in str(error):
                raise Breach(f"another error arrived: {error}") from None
        else:
            raise Breach("map_unordered() went on after the work had raised an error")
    return report.conclude()


class _Squares:
    def __call__(self, item: int) -> int:
        return item * item


class _CallCount:
    """Returns the number of items that the same worker did before."""

    def __init__(self) -> None:
        self.done = -1

    def __call__(self, item: int) -> int:
        self.done += 1
        return self.done


class _RaiseAt:
    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self, item: int) -> int:
        if item == self.at:
            raise LookupError("no such number")
        return item
