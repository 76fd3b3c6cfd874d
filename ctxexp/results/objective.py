"""The number that stands for a run where something optimises over runs, as Hydra's sweepers do."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ctxexp.dataset import Corpus
from ctxexp.errors import ConfigError, MetricError, near, short
from ctxexp.metric import Group, Metric, Pairs
from ctxexp.report.wording import AVERAGE
from ctxexp.results import Results
from ctxexp.results.values import LAYER, Key

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
        found = re.fullmatch(_FORM, text)
        measure, mix, task, statistic, at = found.groups(default="") if found else [""] * 5
        if bool(at) == bool(mix) or (at and not at.isdecimal() and at not in PLACES):
            raise ConfigError(
                f"objective={short(text)}: expected a curve and a place, as in self_similarity/adjusted@last "
                f"({', '.join(PLACES)}, or a layer's number), or a value of a mix of layers, as in sts.last2/all"
            )
        return cls(text, Key(measure, statistic, task, mix or LAYER), at)

    def check(self, metrics: Mapping[str, Callable[[], Metric]], corpus: Corpus | None = None) -> None:
        """Raise ConfigError unless these metrics, by label, give it; the tasks of gold pairs are known once the corpus
        is."""
        measure, statistic, task, _ = self.key
        if measure not in metrics:
            raise ConfigError(f"objective={self.text}: no measure {measure!r}{near(measure, metrics)}")
        if (known := statistics(metrics[measure])) and statistic not in known:
            raise ConfigError(f"objective={self.text}: {measure} has no {statistic!r}{near(statistic, known)}")
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
        held = results.held.get(self.key)
        if held is None:
            raise MetricError(f"objective={self.text}: this run has no such value{near(self.text, results.named)}")
        if not self.at:
            return float(held.value[0])
        layers = results.info.model.layers or range(len(held.value))
        self.require(layers)
        if self.at.isdecimal() or self.at == "last":
            return float(held.value[max(layers) if self.at == "last" else int(self.at)])
        defined = held.value[np.isfinite(held.value)]
        if not defined.size:
            return float("nan")
        return {"mean": float(defined.mean()), "highest": float(defined.max()), "lowest": float(defined.min())}[self.at]


def statistics(make: Callable[[], Metric]) -> set[str]:
    """The names of what a metric gives of one task, its chance level's among them; empty where it can't be asked."""
    try:
        metric = make()
        if metric.over == "pair":
            gold, x = np.array([0.0, 1, 0, 1]), np.random.default_rng(0).normal(size=(4, 2, 8))
            metric.update(Group("task", x, pairs=Pairs(gold, [("a word", "some words")] * 4)))
        found = set(metric.compute())
    except Exception:  # it needs files, or rows of its own kind; what it says is said by the run
        return set()
    if metric.has_null and "raw" in found:
        found |= {"baseline", "adjusted"} | ({"corrected"} if metric.cosine_level == "baseline" else set())
    if metric.size_matched and metric.baseline == "run":
        found |= {f"size_matched_{name}" for name in {"baseline", "adjusted", "corrected"} & found}
    return found
