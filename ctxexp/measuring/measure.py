"""Layers x groups x metrics -> curves: raw, baseline and adjusted, with their uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, SupportsFloat, get_args

import numpy as np

from ctxexp.baselines.drawn import Baseline, SizeMatched
from ctxexp.baselines.matched import Twins
from ctxexp.errors import short
from ctxexp.maths.geometry import precision
from ctxexp.measuring.assemble import Collected, Shares, assemble
from ctxexp.measuring.bootstrap import Resamples
from ctxexp.measuring.described import describe
from ctxexp.measuring.levels import mean_cosine_level
from ctxexp.measuring.occurrences import Groups, Occurrences
from ctxexp.measuring.plan import Plan, failure
from ctxexp.measuring.streams import Stream
from ctxexp.metric import GroupBy, GroupMean, Metric
from ctxexp.progress import Progress, Silent
from ctxexp.results import Results
from ctxexp.run_info import BaselineInfo, CorpusInfo, ModelInfo, Resampled, RunInfo
from ctxexp.vectors.layers import Layers, lent

BLOCK_BYTES = 2**20  # vectors that are measured at a time: about a core's second-level cache


def measure(
    store: Layers,
    occurrences: Occurrences,
    metrics: Mapping[str, Callable[[], Metric]],
    baseline: Baseline,
    *,
    seed: int,
    bootstrap: int = 1000,
    progress: Progress | None = None,
    block_bytes: int = BLOCK_BYTES,
    folder: Path | None = None,
    eps: float | None = None,
) -> Results:
    """Every metric (label -> factory, one instance a layer) over every layer of the store.

    Random groups, samples of groups and bootstrap resamples are the same in each layer, so that layers differ by
    their vectors only. Results don't depend on `block_bytes` (up to the last bits of float32 sums). One layer and one
    block (or the largest single group) are in memory at a time. Metrics that save something of their own do so in
    `folder`, each layer under `<label>/layer_<number>`. `eps` is the machine epsilon of the type that the vectors were
    computed in, where that is coarser than the type they come in: rows that differ by less than its rounding are equal
    (`ctxexp.maths.geometry.precision`). Without bootstrap resamples (0) the intervals are NaN. Raises MetricError
    naming the metric, the layer and the group.
    """
    plan = Plan(occurrences, {label: _build(label, f) for label, f in metrics.items()}, baseline, seed)
    plan.warn()
    closed = plan.closed if any(probe.cosine_level for probe in plan.probes.values()) else None
    collected = {label: Collected(plan.probes[label]) for label in metrics}
    gather = Gather(store.dim, block_bytes, plan.largest())
    with (progress or Silent()).stage("measuring", store.n_layers, "layers") as stage, _one_thread():
        for layer in range(store.n_layers):
            vectors = np.asarray(store.layer(layer))
            instances = {label: _build(label, factory) for label, factory in metrics.items()}
            with precision(max(eps or 0.0, float(np.finfo(vectors.dtype).eps))):
                blocks = partial(gather.blocks, vectors)
                shares = {label: Shares(occurrences.units) for label in metrics if bootstrap}
                plan.feed(layer, blocks, instances, shares)
                for label, levels in plan.twin_levels(layer, blocks, partial(gather, vectors), instances).items():
                    collected[label].twins.append(levels)
                for label, chance in plan.chance(layer, partial(gather, vectors), instances, influence=bootstrap > 0):
                    collected[label].chance.append(chance)
                level = mean_cosine_level(blocks, occurrences, closed) if closed else None
            for label, instance in instances.items():
                if folder is not None and type(instance).save is not Metric.save:
                    place = folder / label / f"layer_{layer:02d}"
                    place.mkdir(parents=True, exist_ok=True)
                    plan.guard(label, layer, "save()", partial(instance.save, place))
                stats = plan.guard(label, layer, "compute()", instance.compute)
                collected[label].take(_statistics(label, stats), instance, shares.get(label), level)
            del vectors
            stage.advance(1)
    resamples = Resamples(occurrences.units, bootstrap, np.random.default_rng([seed, Stream.RESAMPLE]))
    results = assemble(collected, plan.index, occurrences, plan.matched, baseline, resamples)
    matched = isinstance(baseline, SizeMatched | Twins)
    name = getattr(baseline, "name", type(baseline).__name__)
    info = RunInfo(
        model=ModelInfo(n_layers=store.n_layers, dim=store.dim),
        corpus=CorpusInfo(occurrences=occurrences.n_occurrences, words=len(occurrences.words)),
        baseline=BaselineInfo(name=name, size=len(plan.samples[0]), matched=matched),
        resampled=Resampled(unit=occurrences.units.name, n=occurrences.units.n),
        seed=seed,
        bootstrap=bootstrap,
        measures={label: describe(label, probe, plan.level_words(label)) for label, probe in plan.probes.items()},
    )
    return replace(results, info=info)


class Gather:
    """Copies rows out of a layer into one float32 buffer that is used again and again."""

    def __init__(self, dim: int, block_bytes: int, largest: int) -> None:
        self.dim = dim
        self.most_rows = max(1, block_bytes // (4 * dim))
        self.buffer = np.empty(max(self.most_rows, largest) * dim, np.float32)

    def __call__(self, vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(*rows.shape, dim) float32; valid until the next call."""
        if rows.size * self.dim > self.buffer.size:
            self.buffer = np.empty(rows.size * self.dim, np.float32)
        x = self.buffer[: rows.size * self.dim].reshape(rows.size, self.dim)
        if vectors.dtype == np.float32:
            np.take(vectors, rows.ravel(), axis=0, out=x, mode="clip")  # "clip" skips a copy; rows are the store's own
        else:
            x[...] = vectors[rows.ravel()]
        return lent(x.reshape(*rows.shape, self.dim))

    def blocks(
        self, vectors: np.ndarray, groups: Groups
    ) -> Iterator[tuple[Sequence[Hashable], np.ndarray, np.ndarray]]:
        """(keys, rows (w, n), x (w, n, dim)) of all groups."""
        for keys, rows in groups.blocks(self.most_rows):
            yield keys, rows, self(vectors, rows)


def _statistics(label: str, found: Any) -> dict[str, float]:
    """What a metric's `compute` gave; MetricError unless these are numbers by name."""
    pairs = found.items() if isinstance(found, Mapping) else [(None, None)]
    if all(isinstance(name, str) and isinstance(value, SupportsFloat) for name, value in pairs):
        return dict(found)
    raise failure("metric", label, f"metric {label!r}: compute() gave {short(found)}; expected numbers by name")


def _build(label: str, factory: Callable[[], Metric]) -> Metric:
    metric: Any = factory()  # a stranger's may build anything
    if not isinstance(metric, Metric):
        got = type(metric).__name__
        raise failure("metric", label, f"metric {label!r}: expected a ctxexp.metric.Metric, got {got}")
    if isinstance(metric, GroupMean) and not hasattr(metric, "size_matched"):
        words = f"{type(metric).__name__}.__init__ leaves its base's out: begin it with super().__init__()"
        raise failure("metric", label, f"metric {label!r}: {words}")
    if (over := getattr(metric, "over", None)) not in get_args(GroupBy):
        kinds = ", ".join(get_args(GroupBy))
        raise failure("metric", label, f"metric {label!r}: over={short(over)}; expected one of {kinds}")
    return metric


def _one_thread() -> AbstractContextManager[Any]:
    """Products here are small: a second BLAS thread costs more than it brings."""
    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(1, "blas")
    return limits
