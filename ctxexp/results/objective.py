"""The number that stands for a run where something optimises over runs, as Hydra's sweepers do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ctxexp.dataset import Corpus
from ctxexp.errors import ConfigError, MetricError, near, short
from ctxexp.measuring.groups import Group, Pairs
from ctxexp.metric import Metric
from ctxexp.report.wording import AVERAGE
from ctxexp.results import Results
from ctxexp.results.values import BY_BASELINE, LAYER, Key

PLACES = ("last", "mean", "highest", "lowest")  # of a curve, beside the number of a layer
_FORM = r"([\w-]+)(?:\.([\w-]+))?/(?:([^/@]+)/)?([^/@]+)(?:@(\w+))?"


@dataclass(frozen=True)
class Objective:
    """A curve at a place: `self_similarity/adjusted@last`; or a value off the layers: `sts.last2/all`."""

    text: str
    key: Key
    at: str  # empty off the layers

    @classmethod
    def read(cls, text: str) -> Objective:
        """The objective of `<measure>/<statistic>@<place>` or `<measure>/<task>/<statistic>@<place>`, the names those
        of curves in sinks, or of `<measure>.<mix>/<statistic>`. Raises ConfigError for other texts."""
        match = re.fullmatch(_FORM, text)
        measure, mix, task, statistic, at = match.groups(default="") if match else [""] * 5
        if bool(at) == bool(mix) or (at and not at.isdecimal() and at not in PLACES):
            raise ConfigError(
                f"objective={short(text)}: expected a curve and a place, as in self_similarity/adjusted@last "
                f"({', '.join(PLACES)}, or a layer's number), or a value of a mix of layers, as in sts.last2/all"
            )
        return cls(text, Key.of(measure, statistic, task, mix or LAYER), at)

    def check(self, metrics: Mapping[str, Callable[[], Metric]], corpus: Corpus | None = None) -> None:
        """Raise ConfigError unless these metrics, by label, give it; the tasks of gold pairs are known once the corpus
        is."""
        measure, statistic, task = self.key.measure, self.key.name, self.key.task
        if measure not in metrics:
            raise ConfigError(f"objective={self.text}: no measure {measure!r}{near(measure, metrics)}")
        if (names := statistics(metrics[measure])) and statistic not in names:
            raise ConfigError(f"objective={self.text}: {measure} has no {statistic!r}{near(statistic, names)}")
        if corpus and (tasks := {pair.subset.split("/")[0] or "other" for pair in corpus.pairs}):
            tasks = {*tasks, AVERAGE} if len(tasks) > 1 else {""}
            if task not in tasks and metrics[measure]().over == "pair":
                named = [f"{measure}/{each}/{statistic}".replace("//", "/") for each in tasks]
                raise ConfigError(f"objective={self.text}: no such task{near(str(self.key), named)}")

    def require(self, layers: Sequence[int]) -> None:
        """Raise ConfigError unless the layer, where one is asked for by number, is among these."""
        if self.at.isdecimal() and int(self.at) not in layers:
            there = ", ".join(map(str, layers))
            raise ConfigError(f"objective={self.text}: no layer {self.at}; the model gives {there}")

    def of(self, results: Results) -> float:
        """The run's number; `mean` is over layers, `highest` and `lowest` are the curve's values there; NaN where it is
        undefined. Raises MetricError where the run has no such value."""
        estimates = results.by_key.get(self.key)
        if estimates is None:
            raise MetricError(f"objective={self.text}: this run has no such value{near(self.text, results.by_name)}")
        if not self.at:
            return float(estimates.value[0])
        layers = results.info.model.layers or range(len(estimates.value))
        self.require(layers)
        if self.at.isdecimal() or self.at == "last":
            return float(estimates.value[max(layers) if self.at == "last" else int(self.at)])
        defined = estimates.value[np.isfinite(estimates.value)]
        if not defined.size:
            return float("nan")
        return {"mean": float(defined.mean()), "highest": float(defined.max()), "lowest": float(defined.min())}[self.at]


def statistics(make: Callable[[], Metric]) -> set[str]:
    """The names of a metric's statistics of one task, those by its baselines among them; empty where it can't be
    asked."""
    try:
        metric = make()
        if metric.over == "pair":
            gold, x = np.array([0.0, 1, 0, 1]), np.random.default_rng(0).normal(size=(4, 2, 8))
            metric.update(Group("task", x, pairs=Pairs(gold, [("a word", "some words")] * 4)))
        names = set(metric.compute())
    except Exception:  # it needs files, or rows of its own kind; what it says is said by the run
        return set()
    if metric.has_baseline and "raw" in names:
        names |= {"baseline", "adjusted"} | ({"corrected"} if metric.cosine_statistic == "baseline" else set())
        by_first = names & {*BY_BASELINE}
        names |= {Key("", name, baseline=other).name for other in metric.baselines[1:] for name in by_first}
    return names
