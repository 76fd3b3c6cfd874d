"""The number that stands for a run where something optimises over runs, as Hydra's sweepers do."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from ctxexp.errors import ConfigError, MetricError, near, short
from ctxexp.results.results import Results
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
        match = re.fullmatch(_FORM, text)
        measure, mix, task, statistic, at = match.groups(default="") if match else [""] * 5
        if bool(at) == bool(mix) or (at and not at.isdecimal() and at not in PLACES):
            raise ConfigError(
                f"objective={short(text)}: expected a curve and a place, as in self_similarity/adjusted@last "
                f"({', '.join(PLACES)}, or a layer's number), or a value of a mix of layers, as in sts.last2/all"
            )
        return cls(text, Key.of(measure, statistic, task, mix or LAYER), at)

    def check(self, measures: Collection[str]) -> None:
        """Raise ConfigError unless its measure is among these."""
        if self.key.measure not in measures:
            raise ConfigError(
                f"objective={self.text}: no measure {self.key.measure!r}{near(self.key.measure, measures)}"
            )

    def of(self, results: Results) -> float:
        """The run's number; `mean` is over layers, `highest` and `lowest` are the curve's values there; NaN where it is
        undefined. Raises MetricError where the run has no such value."""
        estimates = results.by_key.get(self.key)
        if estimates is None:
            raise MetricError(f"objective={self.text}: this run has no such value{near(self.text, results.by_name)}")
        values = estimates.value
        if not self.at:
            return float(values[0])
        layers = results.info.model.layers or range(len(values))
        if self.at == "last" or self.at.isdecimal():
            layer = max(layers) if self.at == "last" else int(self.at)
            if layer not in layers:
                there = ", ".join(map(str, layers))
                raise MetricError(f"objective={self.text}: no layer {layer}; the model gives {there}")
            return float(values[layer])
        defined = values[np.isfinite(values)]
        summaries = {"mean": defined.mean, "highest": defined.max, "lowest": defined.min}
        return float(summaries[self.at]()) if defined.size else float("nan")
