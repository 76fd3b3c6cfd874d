"""Places x groups x metrics -> curves: the single code path of all measuring."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, SupportsFloat, get_args

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from ctxexp.errors import MetricError, plugin_call, short
from ctxexp.groups import Block, Place, Reader, call_metric
from ctxexp.maths.resampling import Stream
from ctxexp.measuring.curves import INFLUENCED, ClusterInfluence, MetricRecord, PartIndex, write
from ctxexp.measuring.rows import Rows
from ctxexp.metrics import Estimate, GroupMean, Metric, Output, Over, measure_info
from ctxexp.progress import Progress
from ctxexp.results import Results
from ctxexp.results.run_info import RunInfo
from ctxexp.results.values import Values

if TYPE_CHECKING:
    import pandas as pd

Factory = Callable[[], Metric]
Outputs = dict[tuple[str, str], dict[str, Output]]
"""Label of a metric and name of its output to the outputs of places, by the names of their folders."""


def measure_places(
    sources: Sequence[Rows],
    metrics: Mapping[str, Factory],
    *,
    seed: int = 0,
    bootstrap: int = 1000,
    progress: Progress | None = None,
    folder: Path | None = None,
    title: str = "",
) -> Results:
    """Measure every metric (label -> factory, one instance per place) on the rows that it is for, at each of their
    places.

    Random groups, samples of groups and bootstrap resamples are the same at each place, so that layers differ by their
    vectors only. One place is in memory at a time. Metrics' outputs are written in `folder`, those of a place
    under `<label>/<place>`. Without bootstrap resamples (0) the intervals are NaN. Raises MetricError naming the
    metric, the place and the group.
    """
    prototypes = {label: build(label, factory) for label, factory in metrics.items()}
    values, info = Values(), RunInfo()
    tables: dict[str, pd.DataFrame] = {}
    outputs: Outputs = {}
    for rows in sources:
        mine = {label: factory for label, factory in metrics.items() if rows.kind_of(prototypes[label])}
        work = _Pass(rows, mine, prototypes, seed, bootstrap, folder, outputs)
        begun = Progress.of(progress).stage(rows.stage[0], len(rows.places), rows.stage[1])
        with threadpool_limits(rows.threads, "blas"):
            with begun as stage:
                for place in rows.places:
                    work.measure_place(place)
                    stage.advance(1)
            tables |= write(values, rows, work.collected, seed=seed, bootstrap=bootstrap)
            tables |= rows.own_tables(tables)
        measures = {
            label: measure_info(label, prototype, rows.baseline_source(label))
            for label, prototype in work.prototypes.items()
        }
        info = rows.info() | RunInfo(measures=measures) | info
    for (label, name), by_place in outputs.items():
        if folder is not None:
            (folder / label).mkdir(parents=True, exist_ok=True)
            first = next(iter(by_place.values()))
            call = partial(first.write_together, by_place, folder / label, n_layers=info.model.n_layers, title=title)
            call_metric(label, prototypes[label], f"output {name!r}, write_together()", call)
    if info.model.layers:
        values = values.expand_layers(info.model.layers, info.model.n_layers)
    return Results.of(values, tables=tables, info=info | RunInfo(seed=seed, bootstrap=bootstrap))


class _Pass:
    """One kind of rows put through the metrics that are for them, place by place."""

    def __init__(
        self,
        rows: Rows,
        metrics: Mapping[str, Factory],
        prototypes: Mapping[str, Metric],
        seed: int,
        bootstrap: int,
        folder: Path | None,
        outputs: Outputs,
    ) -> None:
        self.rows, self.metrics, self.seed, self.bootstrap = rows, metrics, seed, bootstrap
        self.folder, self.outputs = folder, outputs
        self.prototypes = {label: prototypes[label] for label in metrics}
        rows.prepare(self.prototypes)
        self.indices = {label: rows.group_indices(prototype) for label, prototype in self.prototypes.items()}
        self.part_index = PartIndex(rows.clusters) if bootstrap and rows.clusters else None
        self.collected = {
            label: MetricRecord(prototype, self.indices[label], rows.mixed_words(prototype, self.indices[label]))
            for label, prototype in self.prototypes.items()
        }

    def measure_place(self, place: Place) -> None:
        """Feed the rows at a place to a new instance of each metric, and record its statistics."""
        reader = self.rows.at(place)
        instances = {label: build(label, factory) for label, factory in self.metrics.items()}
        for label, instance in instances.items():
            instance.resampling = np.random.default_rng([self.seed, Stream.PAIRS]), self.bootstrap
            reader.call_metric(label, instance, "bind_text()", partial(self.rows.bind_text, instance))
            if (mixed := self.collected[label].mixed) is not None and isinstance(instance, GroupMean):
                instance._set_weights(mixed.weights)
        influences = {label: ClusterInfluence(self.part_index) for label in instances} if self.part_index else {}
        with_groups = self._feed(reader, instances, influences)
        self.rows.observe_layer(instances, influence=self.bootstrap > 0)
        for label, instance in instances.items():
            outcome: dict[str, float | Estimate] = {}
            if label in with_groups or reader.left_out is None:
                outcome = self._compute(reader, label, instance)
            if reader.left_out is not None:
                outcome["undefined"] = _number(outcome.get("undefined", 0.0)) + reader.left_out  # and its own
            self.collected[label].take(place, outcome, instance, influences.get(label))

    def _feed(
        self, reader: Reader, instances: Mapping[str, Metric], influences: Mapping[str, ClusterInfluence]
    ) -> set[str]:
        """Give every metric its groups at one place; one gather serves all metrics of a kind. Returns the labels of the
        metrics that got at least one block."""
        by_kind: dict[str, dict[str, Metric]] = {}
        for label, metric in instances.items():
            by_kind.setdefault(str(self.rows.kind_of(metric)), {})[label] = metric
        with_groups: set[str] = set()
        for kinds in self.rows.kinds:
            if not by_kind.keys() & set(kinds):
                continue
            at = dict.fromkeys(kinds, 0)
            for block in reader.blocks(kinds[0]):
                for kind in kinds:
                    if not (users := by_kind.get(kind)):
                        continue
                    groups = block if kind == kinds[0] else block.rows_as_groups()
                    for label, metric in users.items():
                        if part := _subset(groups, self.indices[label], at[kind]):
                            self._update(reader, label, metric, kind, part, influences.get(label))
                    at[kind] += len(groups)
                    with_groups |= users.keys()
        return with_groups

    def _update(
        self, reader: Reader, label: str, metric: Metric, kind: str, block: Block, influences: ClusterInfluence | None
    ) -> None:
        """Give a metric a block, and add each row's influence on it to `influences`, for bootstrap intervals."""
        n = block.x.shape[1]
        more = f" (or one of {len(block) - 1} more of {n} rows)" if len(block) > 1 else ""
        where = f"{_NAMES.get(kind, kind)} {block.keys[0]!r}{more}"
        reader.call_metric(label, metric, where, partial(metric.update_block, block))
        if (
            influences is None
            or block.rows is None
            or metric.over not in INFLUENCED
            or not isinstance(metric, GroupMean)
        ):
            return
        call = partial(metric._row_influence, block)
        influences.add(block.rows, reader.call_metric(label, metric, f"{where}, influence()", call))

    def _compute(self, reader: Reader, label: str, metric: Metric) -> dict[str, float | Estimate]:
        """The metric's statistics at a place; its other outputs are written."""
        values = reader.call_metric(label, metric, "compute()", metric.compute)
        place = reader.place
        for name, output in reader.call_metric(label, metric, "outputs()", metric.outputs).items():
            if isinstance(output, Output):
                self._write(reader, label, metric, name, output)
            else:
                layer = place.layer if place.layer is not None else place.name
                self.collected[label].rows += [{"layer": layer, **row} for row in output]
        return checked_statistics(label, values)

    def _write(self, reader: Reader, label: str, metric: Metric, name: str, output: Output) -> None:
        """Write a place's output, and keep it where it is also written together with other places'."""
        if type(output).write_together is not Output.write_together:
            self.outputs.setdefault((label, name), {})[reader.place.folder] = output
        if self.folder is not None and type(output).write is not Output.write:
            target = self.folder / label / reader.place.folder
            target.mkdir(parents=True, exist_ok=True)
            reader.call_metric(label, metric, f"output {name!r}, write()", partial(output.write, target))


_NAMES = {"pair": "sub-set", "occurrence": "row", "sample": "baseline group"}  # in messages; others by their kind


def build(label: str, factory: Factory) -> Metric:
    """The metric that the factory builds. Raises MetricError naming the label unless that is a metric."""
    metric = factory()
    if wrong := contract_violation(metric):
        with plugin_call("metric", label):
            raise MetricError(f"metric {label!r}: {wrong}")
    return metric


def contract_violation(metric: object) -> str:
    """The reason why this is no valid metric; empty if it is one."""
    if not isinstance(metric, Metric):
        return f"expected a ctxexp.Metric, got {type(metric).__name__}"
    if isinstance(metric, GroupMean) and "_scores" not in vars(metric):
        return f"{type(metric).__name__}.__init__ leaves its base's out: begin it with super().__init__()"
    if (over := getattr(metric, "over", None)) not in get_args(Over):
        return f"over={short(over)}; expected one of {', '.join(get_args(Over))}"
    return ""


def _subset(block: Block, indices: np.ndarray | None, at: int) -> Block | None:
    """The groups among `indices` of a block that begins with group `at`; None if there are none."""
    if indices is None:
        return block
    first, last = np.searchsorted(indices, [at, at + len(block)])
    which = indices[first:last] - at
    return block if len(which) == len(block) else block.subset(which) if len(which) else None


def checked_statistics(label: str, found: object) -> dict[str, float | Estimate]:
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


def _number(value: float | Estimate) -> float:
    return value.value if isinstance(value, Estimate) else float(value)
