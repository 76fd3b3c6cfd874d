"""What holds for every metric over sentence pairs: order of sub-sets, lent memory, seeds, intervals, odd vectors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ctxexp.metric import Group, Metric, Pairs
from ctxexp.testing.report import Broken, Report, check_statistics, difference, equal, fed, numbers, written

DIM = 8
SIZES = (23, 40, 9)
REPLICATES = 30

Make = Callable[[], Metric]


def pair_laws(make: Make, report: Report) -> Report:
    """The laws of a metric over pairs, checked on random ones whose gold is 0 or 1, added to the report; raises
    ConformanceError naming each that is broken."""
    parts = _parts(0)
    with report.law("statistics"):
        _statistics(make, parts)
    if report.failures:
        return report.conclude()
    for law, check in (
        ("order of sub-sets", _order),
        ("lent memory", _lent),
        ("the generator decides all chance", _seeded),
        ("no intervals without replicates", _intervals),
        ("float32 agrees with float64", _precision),
        ("degenerate pairs", _degenerate),
        ("rows and save", _written),
    ):
        with report.law(law):
            check(make, parts)
    return report.conclude()


def _parts(seed: int) -> list[Group]:
    """Three sub-sets of two tasks; similar vectors and texts where gold is 1."""
    rng = np.random.default_rng(seed)
    parts = []
    for subset, n in zip(("one/a", "one/b", "two"), SIZES, strict=True):
        gold = (np.arange(n) % 3 == 0).astype(np.float64)
        x = rng.normal(size=(n, DIM)).astype(np.float32)
        y = (x + rng.normal(size=(n, DIM)) * (2 - gold)[:, None]).astype(np.float32)
        texts = [("some words here", "some words" if g else f"others {i}") for i, g in enumerate(gold)]
        parts.append(_group(subset, x, y, gold, texts))
    return parts


def _group(subset: str, x: np.ndarray, y: np.ndarray, gold: np.ndarray, texts: Sequence[tuple[str, str]]) -> Group:
    return Group(subset, np.stack([x, y], axis=1), pairs=Pairs(gold, texts))


def _computed(make: Make, parts: Sequence[Group], replicates: int = 0) -> dict[str, float]:
    metric = fed(make, parts)
    metric.resample(np.random.default_rng(1), replicates)
    return numbers(metric.compute())


def _statistics(make: Make, parts: Sequence[Group]) -> None:
    for some in (parts, parts[2:]):
        metric = fed(make, some)
        metric.resample(np.random.default_rng(1), REPLICATES)
        stats = metric.compute()
        check_statistics(stats)
        main = make().main
        if main and not any(key.rsplit("/", 1)[-1] == main for key in stats):
            raise Broken(f"main is {main!r}, which compute() doesn't give: {', '.join(stats)}")


def _order(make: Make, parts: Sequence[Group]) -> None:
    a, b = _computed(make, parts), _computed(make, parts[::-1])
    if not equal(a, b):
        raise Broken(f"sub-sets in another order give other numbers: {difference(a, b)}")


def _lent(make: Make, parts: Sequence[Group]) -> None:
    expected, metric = _computed(make, parts), make()
    for group in parts:
        x, gold = group.x.copy(), _known(group).gold.copy()
        metric.update(replace(group, x=x, pairs=Pairs(gold, list(_known(group).texts))))
        x[:], gold[:] = 0, 0
    metric.resample(np.random.default_rng(1), 0)
    got = numbers(metric.compute())
    if not equal(expected, got):
        raise Broken(f"it kept arrays that were only lent: copy in update(): {difference(expected, got)}")


def _seeded(make: Make, parts: Sequence[Group]) -> None:
    a, b = _computed(make, parts, REPLICATES), _computed(make, parts, REPLICATES)
    if not equal(a, b):
        raise Broken(f"the same generator gives other numbers; draw from `rng` alone: {difference(a, b)}")


def _intervals(make: Make, parts: Sequence[Group]) -> None:
    without, drawn = _computed(make, parts), _computed(make, parts, REPLICATES)
    if without.keys() != drawn.keys():
        raise Broken("the names of statistics depend on the number of replicates")
    for key, value in without.items():
        if key.endswith(("_ci_low", "_ci_high")):
            if np.isfinite(value):
                raise Broken(f"{key} is {value:.6g} without replicates; undefined is NaN")
        elif not equal({key: value}, {key: drawn[key]}):
            raise Broken(f"{key} depends on the number of replicates: {value!r}, {drawn[key]!r}")


def _precision(make: Make, parts: Sequence[Group]) -> None:
    wide = [replace(group, x=group.x.astype(np.float64)) for group in parts]
    a, b = _computed(make, parts), _computed(make, wide)
    if not equal(a, b, tolerance=1e-4):
        raise Broken(f"the same numbers as float64 give others: {difference(a, b)}")


def _degenerate(make: Make, parts: Sequence[Group]) -> None:
    """Zero vectors, equal vectors, a single pair: a value or NaN, never an exception."""
    p, known = parts[0], _known(parts[0])
    half_zero = p.x.copy()
    half_zero[:, 0] = 0
    cases = {
        "zero vectors": replace(p, x=half_zero),
        "equal vectors": replace(p, x=np.ones_like(p.x)),
        "one pair": replace(p, x=p.x[:1], pairs=Pairs(known.gold[:1], list(known.texts)[:1])),
        "one gold value": replace(p, pairs=Pairs(0 * known.gold, known.texts)),
    }
    for what, group in cases.items():
        for some in ([group], [group, *parts[1:]]):
            try:
                _computed(make, some, REPLICATES)
            except Exception as error:
                raise Broken(f"{what}: it raised {type(error).__name__}: {error}; undefined is NaN") from error


def _written(make: Make, parts: Sequence[Group]) -> None:
    metric = fed(make, parts)
    metric.resample(np.random.default_rng(1), REPLICATES)
    metric.compute()
    with tempfile.TemporaryDirectory() as folder:
        written(metric, Path(folder))


def _known(group: Group) -> Pairs:
    assert group.pairs is not None
    return group.pairs
