"""One tester of metrics: a metric is a row of data, held against its naive reference, its invariances, its edges and
the laws of the contract. A test module subclasses `MetricTester` with its `cases`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from ctxexp import Estimate, Group, GroupMean, Metric
from ctxexp.errors import CtxexpError
from ctxexp.testing import check
from tests.shipped import shipped

Statistics = Mapping[str, Any]  # numbers, or what pytest.approx makes of them
Values = Callable[[Sequence[Group]], Statistics]
Edge = tuple[Any, Any]  # rows (n, d) or groups, and the statistics (a number: `raw`)

SIZES = {"occurrence": [1] * 40, "corpus": [40], "sample": [40] * 4}


def rows(rng: np.random.Generator, n: int, d: int = 6) -> np.ndarray:
    """Rows (n, d) about a common direction, with correlated columns, and of unlike lengths."""
    return (rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)) * rng.uniform(0.5, 2, (n, 1))


def groups_of(over: str, parts: Sequence[np.ndarray]) -> list[Group]:
    return [Group(f"word{i:03d}" if over in ("word", "sense") else i, x) for i, x in enumerate(parts)]


def changes(rng: np.random.Generator, d: int) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Changes of rows (..., d) by the invariance that makes them harmless."""
    turn, by = np.linalg.qr(rng.normal(size=(d, d)))[0], 3 * rng.normal(size=d)
    return {
        "rotation": lambda x: x @ turn,
        "scale": lambda x: 3.7 * x,
        "row_scale": lambda x: x * rng.uniform(0.2, 5, (*x.shape[:-1], 1)),
        "shift": lambda x: x + by,
        "permutation": rng.permutation,
    }


@dataclass(frozen=True, kw_only=True)
class Case:
    """A metric's data: its registered name (or its class) and options, and what is known of it."""

    metric: str | Callable[..., Metric]
    options: Mapping[str, Any] = field(default_factory=dict)
    values: Values
    """The naive reference: statistics of groups whose rows are float64."""
    baseline: Callable[[np.ndarray], float] = lambda x: np.nan
    draw: Callable[[np.random.Generator], Sequence[Group]] | None = None
    """Groups to try; by default such as the metric is over, those of words and sentences with some of no value."""
    edges: Mapping[str, Edge] = field(default_factory=dict)
    also: frozenset[str] = frozenset()
    """Invariances that hold though they aren't declared."""
    refused: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options that are refused, by what is said of them."""
    within: float = 1e-9

    def __str__(self) -> str:
        name = self.metric if isinstance(self.metric, str) else getattr(self.metric, "__name__", "")
        return ", ".join([name, *(f"{key}={value}" for key, value in self.options.items())])

    def make(self) -> Metric:
        factory = shipped("metric", self.metric) if isinstance(self.metric, str) else self.metric
        return factory(**self.options)  # type: ignore[no-any-return]

    def groups(self, seed: int) -> list[Group]:
        """Groups (float64) that have a value each."""
        rng = np.random.default_rng(seed)
        if self.draw:
            return [replace(group, x=group.x.astype(np.float64)) for group in self.draw(rng)]
        over = self.make().over
        return groups_of(over, [rows(rng, n) for n in SIZES.get(over, [3, 3, 4, 4, 5, 7, 20])])

    def compute(self, groups: Sequence[Group], *, between: bool = False) -> dict[str, float]:
        """Statistics of the groups; `between`: computed after each of them, too."""
        metric = self.make()
        metric.resampling = np.random.default_rng(0), 0
        for group in groups:
            metric.update(group)
            if between:
                metric.compute()
        return {name: v.value if isinstance(v, Estimate) else v for name, v in metric.compute().items()}


def same(got: Mapping[str, float], expected: Statistics, within: float, what: str) -> None:
    """Each expected statistic is there."""
    for name, value in expected.items():
        near = pytest.approx(value, rel=within, abs=within, nan_ok=True) if isinstance(value, float | int) else value
        assert got[name] == near, f"{what}: {name} is {got[name]!r} instead of {value!r}"


class MetricTester:
    """The tests of each case."""

    cases: ClassVar[Sequence[Case]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        metafunc.parametrize("case", self.cases, ids=str)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_it_equals_its_naive_reference_in_any_order(self, case: Case, dtype: type) -> None:
        for seed in range(3):
            drawn = case.groups(seed)
            if isinstance(case.make(), GroupMean) and not case.draw:  # one without a pair, and zeros
                drawn += [Group("word998", drawn[0].x[:1]), Group("word999", 0 * drawn[0].x)]
            groups = [replace(group, x=group.x.astype(dtype)) for group in drawn]
            got = case.compute(groups)
            exact = [replace(group, x=group.x.astype(np.float64)) for group in groups]
            same(got, case.values(exact), case.within, f"seed {seed}")
            other = case.compute(groups[::-1], between=len(groups) < 9)
            same(other, got, 0 if isinstance(case.make(), GroupMean) else 1e-10, "in another order")
            for group in exact:
                level = {"baseline": case.make().baseline_value(group.x)}
                same(level, {"baseline": case.baseline(group.x)}, case.within, f"seed {seed}")

    def test_it_keeps_the_laws_of_a_metric(self, case: Case) -> None:
        report = check("metric", case.make)
        assert not any(note.startswith("warned") for note in report.notes), report

    def test_invariances_are_those_that_are_declared(self, case: Case) -> None:
        groups = case.groups(0)
        expected, held = case.compute(groups), set()
        for name, change in changes(np.random.default_rng(1), groups[0].x.shape[-1]).items():
            got = case.compute([replace(group, x=change(group.x)) for group in groups])
            if got == pytest.approx(expected, rel=1e-7, abs=1e-9, nan_ok=True):
                held.add(name)
        assert held == case.make().invariances | case.also, f"{sorted(held)} hold"

    def test_edges_are_known(self, case: Case) -> None:
        over = case.make().over
        if over != "pair":  # of which a corpus has some
            counts = {name: value for name, value in case.compute([]).items() if np.isfinite(value)}
            assert not any(counts.values()), f"without a group: {counts}"
        for what, (x, expected) in case.edges.items():
            if isinstance(x, np.ndarray):
                x = groups_of(over, list(x[:, None]) if over == "occurrence" else [x])
            same(case.compute(x), expected if isinstance(expected, Mapping) else {"raw": expected}, 1e-6, what)

    def test_options_out_of_range_are_refused(self, case: Case) -> None:
        for said, options in case.refused.items():
            with pytest.raises(CtxexpError, match=re.escape(said)):
                replace(case, options={**case.options, **options}).make()


def mean_over_groups(score: Callable[[np.ndarray], float], *, least: int = 2) -> Values:
    """Of a score: its mean over the groups that have one."""

    def values(groups: Sequence[Group]) -> Statistics:
        scores = [score(group.x) if len(group.x) >= least else np.nan for group in groups]
        known = [one for one in scores if np.isfinite(one)]
        spread = {"raw": np.mean(known), "median": np.median(known), "sd": np.std(known, ddof=1)}
        return {**spread, "n": len(known), "undefined": len(scores) - len(known)}

    return values


def first_sample(statistics: Callable[[np.ndarray], Statistics], *, redraws: int = 0) -> Values:
    """Of statistics of a sample: the first one's, and the spread of `raw` over so many others (NaN of fewer than 2)."""

    def values(groups: Sequence[Group]) -> Statistics:
        others = [statistics(group.x)["raw"] for group in groups[1 : 1 + redraws]]
        spread = np.std(others, ddof=1) if redraws > 1 else np.nan
        return {"n": len(groups[0].x), **statistics(groups[0].x), "sd": spread}

    return values


def all_rows(statistics: Callable[[np.ndarray], Statistics]) -> Values:
    """Of statistics of all rows together."""
    return lambda groups: {"n": sum(len(g.x) for g in groups), **statistics(np.concatenate([g.x for g in groups]))}
