"""What holds for every metric over sentence pairs: order of sub-sets, lent memory, seeds, intervals, odd vectors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ctxexp.measuring.pairs import PairMetric, Pairs
from ctxexp.testing.report import Broken, Report, difference, equal

DIM = 8
SIZES = (23, 40, 9)
REPLICATES = 30

Make = Callable[[], PairMetric]
Part = tuple[str, Pairs]


def pair_laws(make: Make, report: Report) -> Report:
    """The laws of `ctxexp.measuring.pairs.PairMetric`, checked on random pairs whose gold is 0 or 1, added to the
    report; raises ConformanceError naming each that is broken."""
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


def _parts(seed: int) -> list[Part]:
    """Three sub-sets of two tasks; similar vectors and texts where gold is 1."""
    rng = np.random.default_rng(seed)
    parts = []
    for subset, n in zip(("one/a", "one/b", "two"), SIZES, strict=True):
        gold = (np.arange(n) % 3 == 0).astype(np.float64)
        x = rng.normal(size=(n, DIM)).astype(np.float32)
        y = (x + rng.normal(size=(n, DIM)) * (2 - gold)[:, None]).astype(np.float32)
        texts = [("some words here", "some words" if g else f"others {i}") for i, g in enumerate(gold)]
        parts.append((subset, Pairs(x, y, gold, texts)))
    return parts


def _fed(make: Make, parts: Sequence[Part]) -> PairMetric:
    metric = make()
    for subset, pairs in parts:
        metric.update(subset, pairs)
    return metric


def _computed(make: Make, parts: Sequence[Part], replicates: int = 0) -> dict[str, float]:
    return _fed(make, parts).compute(np.random.default_rng(1), replicates)


def _statistics(make: Make, parts: Sequence[Part]) -> None:
    for some in (parts, parts[2:]):
        stats = _computed(make, some, REPLICATES)
        if not isinstance(stats, dict) or not stats:
            raise Broken(f"compute() gave {stats!r}; expected at least one statistic by name")
        for key, value in stats.items():
            if not isinstance(key, str) or not isinstance(value, float | int | np.floating):
                raise Broken(f"compute() gave {key!r}: {value!r}; expected numbers by name")
        main = make().main
        if main and not any(key.rsplit("/", 1)[-1] == main for key in stats):
            raise Broken(f"main is {main!r}, which compute() doesn't give: {', '.join(stats)}")


def _order(make: Make, parts: Sequence[Part]) -> None:
    a, b = _computed(make, parts), _computed(make, parts[::-1])
    if not equal(a, b):
        raise Broken(f"sub-sets in another order give other numbers: {difference(a, b)}")


def _lent(make: Make, parts: Sequence[Part]) -> None:
    expected, metric = _computed(make, parts), make()
    for subset, pairs in parts:
        lent = Pairs(pairs.x.copy(), pairs.y.copy(), pairs.gold.copy(), list(pairs.texts))
        metric.update(subset, lent)
        for array in (lent.x, lent.y, lent.gold):
            array[:] = 0
    got = metric.compute(np.random.default_rng(1), 0)
    if not equal(expected, got):
        raise Broken(f"it kept arrays that were only lent: copy in update(): {difference(expected, got)}")


def _seeded(make: Make, parts: Sequence[Part]) -> None:
    a, b = _computed(make, parts, REPLICATES), _computed(make, parts, REPLICATES)
    if not equal(a, b):
        raise Broken(f"the same generator gives other numbers; draw from `rng` alone: {difference(a, b)}")


def _intervals(make: Make, parts: Sequence[Part]) -> None:
    without, drawn = _computed(make, parts), _computed(make, parts, REPLICATES)
    if without.keys() != drawn.keys():
        raise Broken("the names of statistics depend on the number of replicates")
    for key, value in without.items():
        if key.endswith(("_ci_low", "_ci_high")):
            if np.isfinite(value):
                raise Broken(f"{key} is {value:.6g} without replicates; undefined is NaN")
        elif not equal({key: value}, {key: drawn[key]}):
            raise Broken(f"{key} depends on the number of replicates: {value!r}, {drawn[key]!r}")


def _precision(make: Make, parts: Sequence[Part]) -> None:
    wide = [(s, Pairs(p.x.astype(np.float64), p.y.astype(np.float64), p.gold, p.texts)) for s, p in parts]
    a, b = _computed(make, parts), _computed(make, wide)
    if not equal(a, b, tolerance=1e-4):
        raise Broken(f"the same numbers as float64 give others: {difference(a, b)}")


def _degenerate(make: Make, parts: Sequence[Part]) -> None:
    """Zero vectors, equal vectors, a single pair: a value or NaN, never an exception."""
    _, p = parts[0]
    cases = {
        "zero vectors": Pairs(0 * p.x, p.y, p.gold, p.texts),
        "equal vectors": Pairs(np.ones_like(p.x), np.ones_like(p.y), p.gold, p.texts),
        "one pair": Pairs(p.x[:1], p.y[:1], p.gold[:1], list(p.texts)[:1]),
        "one gold value": Pairs(p.x, p.y, 0 * p.gold, p.texts),
    }
    for what, pairs in cases.items():
        for some in ([("one/a", pairs)], [("one/a", pairs), *parts[1:]]):
            try:
                _computed(make, some, REPLICATES)
            except Exception as error:
                raise Broken(f"{what}: it raised {type(error).__name__}: {error}; undefined is NaN") from error


def _written(make: Make, parts: Sequence[Part]) -> None:
    metric = _fed(make, parts)
    metric.compute(np.random.default_rng(1), REPLICATES)
    rows = metric.rows()
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "layer" not in row for row in rows):
        raise Broken(f"rows() gave {rows!r:.80}; expected dicts without a key `layer`, which is added")
    with tempfile.TemporaryDirectory() as folder:
        metric.save(Path(folder))
