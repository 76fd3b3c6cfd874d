"""Laws of metrics over sentence pairs: order of sub-sets, borrowed memory, seeds, intervals, odd vectors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ctxexp.groups import Group, Pairs
from ctxexp.metric import Metric
from ctxexp.testing.report import (
    Breach,
    Report,
    check_outputs,
    check_statistics,
    difference,
    equal,
    numbers,
    updated_metric,
)

DIM = 8
SIZES = (23, 40, 9)
REPLICATES = 30

Make = Callable[[], Metric]


def pair_laws(make: Make, report: Report) -> Report:
    """The laws of a metric over pairs, checked on random ones whose gold is 0 or 1, added to the report; raises
    ConformanceError naming each that is broken."""
    report.notes += _without_effect(make())
    parts = _parts(0)
    with report.law("statistics"):
        _statistics(make, parts)
    if report.failures:
        return report.conclude()
    for law, check in (
        ("order of sub-sets", _order),
        ("lent memory", _memory),
        ("the generator decides all chance", _seeded),
        ("no intervals without replicates", _intervals),
        ("float32 agrees with float64", _precision),
        ("degenerate pairs", _degenerate),
        ("rows and save", _output),
    ):
        with report.law(law):
            check(make, parts)
    return report.conclude()


def _without_effect(metric: Metric) -> list[str]:
    """A note on what a metric over pairs declares in vain: no baseline is drawn for pairs."""
    declared = [f"baselines={metric.baselines!r}"] if metric.baselines != Metric.baselines else []
    declared += ["baseline_value()"] if type(metric).baseline_value is not Metric.baseline_value else []
    hint = "a metric over pairs gives its own `baseline` and `adjusted` from compute()"
    return [f"{' and '.join(declared)}: without effect; {hint}"] if declared else []


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


def _compute(make: Make, parts: Sequence[Group], replicates: int = 0) -> dict[str, float]:
    metric = updated_metric(make, parts)
    metric.set_resampling(np.random.default_rng(1), replicates)
    return numbers(metric.compute())


def _statistics(make: Make, parts: Sequence[Group]) -> None:
    for some in (parts, parts[2:]):
        metric = updated_metric(make, some)
        metric.set_resampling(np.random.default_rng(1), REPLICATES)
        stats = metric.compute()
        check_statistics(stats)
        main = make().main
        if main and not any(key.rsplit("/", 1)[-1] == main for key in stats):
            raise Breach(f"main is {main!r}, which compute() doesn't give: {', '.join(stats)}")


def _order(make: Make, parts: Sequence[Group]) -> None:
    a, b = _compute(make, parts), _compute(make, parts[::-1])
    if not equal(a, b):
        raise Breach(f"sub-sets in another order give other numbers: {difference(a, b)}")


def _memory(make: Make, parts: Sequence[Group]) -> None:
    expected, metric = _compute(make, parts), make()
    for group in parts:
        x, gold = group.x.copy(), _pairs_of(group).gold.copy()
        metric.update(replace(group, x=x, pairs=Pairs(gold, list(_pairs_of(group).texts))))
        x[:], gold[:] = 0, 0
    metric.set_resampling(np.random.default_rng(1), 0)
    got = numbers(metric.compute())
    if not equal(expected, got):
        raise Breach(f"it kept arrays that were only lent: copy in update(): {difference(expected, got)}")


def _seeded(make: Make, parts: Sequence[Group]) -> None:
    a, b = _compute(make, parts, REPLICATES), _compute(make, parts, REPLICATES)
    if not equal(a, b):
        raise Breach(f"the same generator gives other numbers; draw from `rng` alone: {difference(a, b)}")


def _intervals(make: Make, parts: Sequence[Group]) -> None:
    without, resampled = _compute(make, parts), _compute(make, parts, REPLICATES)
    if without.keys() != resampled.keys():
        raise Breach("the names of statistics depend on the number of replicates")
    for key, value in without.items():
        if key.endswith(("_ci_low", "_ci_high")):
            if np.isfinite(value):
                raise Breach(f"{key} is {value:.6g} without replicates; undefined is NaN")
        elif not equal({key: value}, {key: resampled[key]}):
            raise Breach(f"{key} depends on the number of replicates: {value!r}, {resampled[key]!r}")


def _precision(make: Make, parts: Sequence[Group]) -> None:
    wide = [replace(group, x=group.x.astype(np.float64)) for group in parts]
    a, b = _compute(make, parts), _compute(make, wide)
    if not equal(a, b, tolerance=1e-4):
        raise Breach(f"the same numbers as float64 give others: {difference(a, b)}")


def _degenerate(make: Make, parts: Sequence[Group]) -> None:
    """Zero vectors, equal vectors, a single pair: a value or NaN, never an exception."""
    p, gold = parts[0], _pairs_of(parts[0])
    half_zero = p.x.copy()
    half_zero[:, 0] = 0
    cases = {
        "zero vectors": replace(p, x=half_zero),
        "equal vectors": replace(p, x=np.ones_like(p.x)),
        "one pair": replace(p, x=p.x[:1], pairs=Pairs(gold.gold[:1], list(gold.texts)[:1])),
        "one gold value": replace(p, pairs=Pairs(0 * gold.gold, gold.texts)),
    }
    for what, group in cases.items():
        for some in ([group], [group, *parts[1:]]):
            try:
                _compute(make, some, REPLICATES)
            except Exception as error:
                raise Breach(f"{what}: it raised {type(error).__name__}: {error}; undefined is NaN") from error


def _output(make: Make, parts: Sequence[Group]) -> None:
    metric = updated_metric(make, parts)
    metric.set_resampling(np.random.default_rng(1), REPLICATES)
    metric.compute()
    with tempfile.TemporaryDirectory() as folder:
        check_outputs(metric, Path(folder))


def _pairs_of(group: Group) -> Pairs:
    assert group.pairs is not None
    return group.pairs
