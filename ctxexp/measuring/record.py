"""What the metrics of a run give, place by place: statistics, rows of their tables, and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, SupportsFloat, get_args

import numpy as np

from ctxexp.errors import MetricError, plugin_call, short
from ctxexp.groups import Block, Place, call_metric
from ctxexp.maths.resampling import Stream
from ctxexp.metrics import Estimate, GroupMean, Metric, Output, Over, measure_info
from ctxexp.occurrences import Layers, layer_subset
from ctxexp.results import Results
from ctxexp.results.run_info import MeasureInfo, ModelInfo, RunInfo
from ctxexp.results.values import LAYER, Values, metric_key

if TYPE_CHECKING:
    import pandas as pd

Factory = Callable[[], Metric]
Statistics = Mapping[str, float | Estimate]
NAMES = {
    "pair": "sub-set",
    "occurrence": "row",
    "sample": "baseline group",
}  # of groups in messages; others: their kind


class Record:
    """The metrics of a run, and what they gave: values, tables, and files in `folder`.

    `prototypes` has one of each metric, by label, of which only the attributes are read (None: they are built here);
    every place gets instances of its own. `info` is the run's metadata, to which each kind of rows adds what it knows.
    Raises MetricError naming the label of what is no metric.
    """

    def __init__(
        self,
        metrics: Mapping[str, Factory],
        prototypes: Mapping[str, Metric] | None = None,
        *,
        seed: int = 0,
        bootstrap: int = 1000,
        folder: Path | None = None,
        info: RunInfo | None = None,
    ) -> None:
        self.factories, self.seed, self.bootstrap, self.folder = metrics, seed, bootstrap, folder
        built = prototypes or checked_metrics({label: factory() for label, factory in metrics.items()})
        self.prototypes = {label: built[label] for label in metrics}
        self.values, self.info = Values(), replace(info or RunInfo(), seed=seed, bootstrap=bootstrap)
        self.tables: dict[str, pd.DataFrame] = {}
        self._rows: dict[str, list[dict[str, object]]] = {}  # of metrics' own tables
        self._together: dict[tuple[str, str], dict[str, Output]] = {}  # outputs by label and name, by place's folder

    def instances(self, labels: Iterable[str]) -> dict[str, Metric]:
        """New instances for a place, with the same resamples at each."""
        instances = {label: self.factories[label]() for label in labels}
        for metric in instances.values():
            metric.resampling = np.random.default_rng([self.seed, Stream.OWN]), self.bootstrap
        return instances

    def measure(self, place: Place, labels: Sequence[str], kind: str, blocks: Iterable[Block]) -> dict[str, Statistics]:
        """The statistics of these metrics on all blocks of one kind of groups; none where there is no block."""
        instances, some = self.instances(labels), False
        for block in blocks:
            some = True
            for label, metric in instances.items():
                self.update(place, label, metric, kind, block)
        return {label: self.compute(place, label, metric) if some else {} for label, metric in instances.items()}

    def update(self, place: Place, label: str, metric: Metric, kind: str, block: Block) -> str:
        """Give a metric a block of groups; returns what messages call these."""
        n = block.x.shape[1]
        more = f" (or one of {len(block) - 1} more of {n} rows)" if len(block) > 1 else ""
        where = f"{place}, {NAMES.get(kind, kind)} {block.keys[0]!r}{more}"
        call_metric(label, metric, where, partial(metric.update_block, block))
        return where

    def compute(self, place: Place, label: str, metric: Metric) -> Statistics:
        """The metric's statistics at a place; its other outputs are kept or written."""
        values = call_metric(label, metric, f"{place}, compute()", metric.compute)
        for name, output in call_metric(label, metric, f"{place}, outputs()", metric.outputs).items():
            if isinstance(output, Output):
                self._write_output(place, label, metric, name, output)
            else:
                layer = place.layer if place.layer is not None else place.name
                self._rows.setdefault(label, []).extend({"layer": layer, **row} for row in output)
        return checked_statistics(label, values)

    def _write_output(self, place: Place, label: str, metric: Metric, name: str, output: Output) -> None:
        """Write a place's output, and keep it where it is also written together with other places'."""
        if type(output).write_together is not Output.write_together:
            self._together.setdefault((label, name), {})[place.folder] = output
        if self.folder is not None and type(output).write is not Output.write:
            target = self.folder / label / place.folder
            target.mkdir(parents=True, exist_ok=True)
            call_metric(label, metric, f"{place}, output {name!r}, write()", partial(output.write, target))

    def add_statistics(self, by_place: Mapping[str, Mapping[Place, Statistics]]) -> None:
        """Add what metrics, by label, gave at each of their places: curves over the layers, a value at each other
        place, and the tables of their rows; what a place lacks is NaN."""
        for label, places in by_place.items():
            for statistic in dict.fromkeys(name for found in places.values() for name in found):
                _write_statistic(
                    self.values, label, statistic, {place: places[place].get(statistic) for place in places}
                )
        self.tables |= {label: _frame(rows) for label in by_place if (rows := self._rows.pop(label, []))}

    def set_info(self, info: RunInfo, baselines: Mapping[str, str]) -> None:
        """Take this metadata, with that of measures that were measured, by the sources of their baselines."""
        measures: dict[str, MeasureInfo] = {
            label: measure_info(label, self.prototypes[label], source) for label, source in baselines.items()
        }
        self.info = replace(info, measures={**measures, **info.measures})

    def results(self) -> Results:
        """The results, once all places were measured."""
        values, model = self.values, self.info.model
        for (label, name), by_place in self._together.items():
            if self.folder is not None:
                (self.folder / label).mkdir(parents=True, exist_ok=True)
                write = next(iter(by_place.values())).write_together
                call = partial(write, by_place, self.folder / label, n_layers=model.n_layers, title=self.info.title)
                call_metric(label, self.prototypes[label], f"output {name!r}, write_together()", call)
        if model.layers:
            values = values.expand_layers(model.layers, model.n_layers)
        return Results.of(values, tables=self.tables, info=self.info)


def with_sizes(model: ModelInfo, vectors: Layers) -> ModelInfo:
    """The record of a model with the sizes of its vectors as they are measured."""
    return replace(model, n_layers=vectors.n_layers, layers=layer_subset(vectors), dim=vectors.dim)


def _write_statistic(
    values: Values, label: str, statistic: str, found: Mapping[Place, float | Estimate | None]
) -> None:
    of = {place: one if isinstance(one, Estimate) else _bare(one) for place, one in found.items()}
    all_replicates = [one.replicates for one in of.values() if one.replicates is not None]
    missing = np.full(max(map(len, all_replicates), default=0), np.nan, np.float32)
    for name in dict.fromkeys(LAYER if place.layer is not None else place.name for place in of):
        here = [one for place, one in of.items() if name == (LAYER if place.layer is not None else place.name)]
        draws = [missing if one.replicates is None else np.asarray(one.replicates, np.float32) for one in here]
        values.set(
            metric_key(label, statistic, name),
            np.array([one.value for one in here]),
            low=np.array([one.low for one in here]),
            high=np.array([one.high for one in here]),
            replicates=np.stack(draws) if name == LAYER else draws[0],
        )


def _bare(value: float | None) -> Estimate:
    nan = float("nan")
    return Estimate(nan if value is None else float(value), nan, nan)


def _frame(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Rows as a table, columns in order of first appearance; what a row lacks is empty."""
    import pandas as pd

    names = dict.fromkeys(name for row in rows for name in row)
    return pd.DataFrame({name: [row.get(name, "") for row in rows] for name in names})


def checked_metrics(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """The metrics, by label. Raises MetricError naming the label of what is none."""
    for label, metric in metrics.items():
        if wrong := contract_violation(metric):
            with plugin_call("metric", label):
                raise MetricError(f"metric {label!r}: {wrong}")
    return dict(metrics)


def contract_violation(metric: object) -> str:
    """The reason why this is no valid metric; empty if it is one."""
    if not isinstance(metric, Metric):
        return f"expected a ctxexp.Metric, got {type(metric).__name__}"
    if isinstance(metric, GroupMean) and "_scores" not in vars(metric):
        return f"{type(metric).__name__}.__init__ leaves its base's out: begin it with super().__init__()"
    if (over := getattr(metric, "over", None)) not in get_args(Over):
        return f"over={short(over)}; expected one of {', '.join(get_args(Over))}"
    return ""


def number(value: float | Estimate) -> float:
    """A statistic without its interval."""
    return value.value if isinstance(value, Estimate) else float(value)


def checked_statistics(label: str, found: object) -> Statistics:
    """The statistics that a metric's `compute` gave; MetricError unless these are numbers by name."""
    stats: dict[str, float | Estimate] = dict(found) if isinstance(found, Mapping) else {}
    sound = all(isinstance(name, str) and isinstance(value, SupportsFloat | Estimate) for name, value in stats.items())
    if isinstance(found, Mapping) and sound:
        return stats
    with plugin_call("metric", label):
        raise MetricError(
            f"metric {label!r}: compute() gave {short(found)}; expected numbers by name; "
            "with an interval ctxexp.Estimate(value, low, high)"
        )
