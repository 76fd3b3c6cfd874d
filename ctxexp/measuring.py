"""Layers x groups x metrics -> curves: raw, baseline and adjusted, with their uncertainty."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp.assemble import Collected, assemble
from ctxexp.baselines import Baseline, Matched, SizeMatched
from ctxexp.described import describe
from ctxexp.errors import CtxexpError, MetricError, said, stranger
from ctxexp.geometry import precision, sharing
from ctxexp.layers import Layers, lent
from ctxexp.matched import Blocks, Twins, twin_means
from ctxexp.metric import GroupBy, GroupMean, Metric, guard
from ctxexp.occurrences import Groups, Occurrences
from ctxexp.progress import Progress, Silent
from ctxexp.results import Results
from ctxexp.streams import Stream

log = logging.getLogger("ctxexp")

BLOCK_BYTES = 2**20  # vectors that are measured at a time: about a core's second-level cache
KINDS: tuple[GroupBy, ...] = ("word", "sense", "sentence", "corpus")  # gathered in this order


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
    (`ctxexp.geometry.precision`). Without bootstrap resamples (0) the intervals are NaN. Raises MetricError naming the
    metric, the layer and the group.
    """
    plan = Plan(occurrences, {label: _build(label, f) for label, f in metrics.items()}, baseline, seed)
    plan.warn()
    collected = {label: Collected(plan.probes[label]) for label in metrics}
    gather = Gather(store.dim, block_bytes, plan.largest())
    with (progress or Silent()).stage("measuring", store.n_layers, "layers") as stage, _one_thread():
        for layer in range(store.n_layers):
            vectors = np.asarray(store.layer(layer))
            instances = {label: _build(label, factory) for label, factory in metrics.items()}
            with precision(max(eps or 0.0, float(np.finfo(vectors.dtype).eps))):
                plan.feed(layer, partial(gather.blocks, vectors), instances)
                for label, level in plan.twin_levels(layer, partial(gather.blocks, vectors), instances).items():
                    collected[label].twins.append(level)
                for label, draws, levels in plan.chance(layer, partial(gather, vectors), instances):
                    collected[label].nulls.append(draws)
                    collected[label].levels.append(levels)
            for label, instance in instances.items():
                if folder is not None and type(instance).save is not Metric.save:
                    place = folder / label / f"layer_{layer:02d}"
                    place.mkdir(parents=True, exist_ok=True)
                    plan.guard(label, layer, "save()", partial(instance.save, place))
                collected[label].take(plan.guard(label, layer, "compute()", instance.compute), instance)
            del vectors
            stage.advance(1)
    results = assemble(collected, plan.index, occurrences, plan.matched, baseline, seed=seed, replicates=bootstrap)
    results.info |= {
        "n_layers": store.n_layers,
        "dim": store.dim,
        "n_occurrences": occurrences.n_occurrences,
        "n_words": len(occurrences.words),
        "baseline": getattr(baseline, "name", type(baseline).__name__),
        "baseline_size": len(plan.samples[0]),
        "baseline_matched": isinstance(baseline, SizeMatched | Twins),
        "seed": seed,
        "bootstrap": bootstrap,
        "measures": {label: describe(label, probe) for label, probe in plan.probes.items()},
    }
    return results


class Plan:
    """What is measured in every layer alike: the random groups, and which groups each metric sees."""

    def __init__(self, occurrences: Occurrences, probes: dict[str, Metric], baseline: Baseline, seed: int) -> None:
        self.occurrences, self.probes = occurrences, probes
        if any(probe.over == "word" for probe in probes.values()):
            occurrences.require_contexts()  # before the baseline says that there is nothing to draw
        self.samples = _samples(baseline, occurrences, np.random.default_rng([seed, Stream.BASELINE]))
        self.index: dict[str, np.ndarray | None] = {}  # label -> the groups in its sample, None for all
        for label, probe in probes.items():
            size = getattr(probe, "sample", None)
            groups = self._groups(probe)
            if size is None or groups is None or size >= len(groups):
                self.index[label] = None
            else:
                chosen = np.random.default_rng([seed, Stream.SAMPLE]).choice(len(groups), size, replace=False)
                self.index[label] = np.sort(chosen)
        self.matched: dict[str, Matched] = {}
        scheme = baseline if isinstance(baseline, SizeMatched) else SizeMatched()
        by_kind: dict[str, Matched] = {}
        for label, probe in probes.items():
            groups = self._groups(probe)
            if not isinstance(probe, GroupMean) or groups is None or not len(groups) or probe.over == "sense":
                continue  # labels have their own chance level
            if probe.size_matched or isinstance(baseline, SizeMatched):
                if probe.over not in by_kind:
                    rng = np.random.default_rng([seed, Stream.MATCHED])
                    by_kind[probe.over] = scheme.matched(groups.counts, occurrences, rng)
                self.matched[label] = by_kind[probe.over]
        self.twins: dict[GroupBy, list[Groups]] = {}
        if isinstance(baseline, Twins):
            for kind in sorted({probe.over for probe in probes.values() if isinstance(probe, GroupMean)}):
                if kind in ("word", "sentence"):
                    rng = np.random.default_rng([seed, Stream.TWINS])
                    self.twins[kind] = list(baseline.twins(occurrences.groups(kind), occurrences, rng))

    def _groups(self, probe: Metric) -> Groups | None:
        return None if probe.over == "sample" else self.occurrences.groups(probe.over)

    def largest(self) -> int:
        """Rows of the largest group that is gathered whole."""
        sizes = [len(s) for s in self.samples] + [d.shape[1] for m in self.matched.values() for d in m.draws]
        for kind in {probe.over for probe in self.probes.values()}.intersection(KINDS):
            sizes.extend(self.occurrences.groups(kind).counts[-1:].tolist())
        return max(sizes, default=1)

    def warn(self) -> None:
        """Say which measures no group of the corpus is large enough for: their curves are NaN."""
        idle: dict[GroupBy, list[str]] = {}
        for label, probe in self.probes.items():
            if isinstance(probe, GroupMean) and probe.over in ("word", "sense", "sentence"):
                counts = self.occurrences.groups(probe.over).counts
                if not len(counts) or (probe.over == "sentence" and counts[-1] < 2 <= probe.min_rows):
                    idle.setdefault(probe.over, []).append(label)
        if labels := idle.get("word"):
            word, contexts = self.occurrences.commonest
            log.warning(
                f"{', '.join(labels)}: undefined (NaN) in every layer, since no word reaches "
                f"min_contexts={self.occurrences.min_contexts} distinct sentences; the most frequent, {word[:40]!r}, "
                f"has {contexts:,}"
            )
        if labels := idle.get("sense"):
            log.warning(
                f"{', '.join(labels)}: undefined (NaN) in every layer, since no measured unit has a sense label"
            )
        if labels := idle.get("sentence"):
            log.warning(f"{', '.join(labels)}: undefined (NaN) in every layer, since no sentence has 2 measured words")

    def feed(
        self,
        layer: int,
        blocks: Blocks,
        instances: Mapping[str, Metric],
    ) -> None:
        """Give every metric its groups of one layer; one gather serves all metrics of a kind, and occurrences too."""
        for kind in KINDS:
            users = [label for label, m in instances.items() if m.over == kind]
            singles = [label for label, m in instances.items() if m.over == "occurrence"] if kind == "sentence" else []
            if not users and not singles:
                continue
            at = 0
            for keys, rows, x in blocks(self.occurrences.groups(kind)):
                with sharing(x):
                    for label in users:
                        self._update(instances[label], label, layer, at, keys, x)
                    for label in singles:
                        flat, metric, names = x.reshape(-1, 1, x.shape[-1]), instances[label], rows.ravel().tolist()
                        call = partial(metric.update_block, names, flat)
                        self.guard(label, layer, f"row {names[0]} (or one of {len(names) - 1} more)", call)
                at += len(keys)

    def _update(self, metric: Metric, label: str, layer: int, at: int, keys: Sequence[Hashable], x: np.ndarray) -> None:
        index = self.index[label]
        if index is not None:
            first, last = np.searchsorted(index, [at, at + len(keys)])
            chosen = index[first:last] - at
            if not len(chosen):
                return
            if len(chosen) < len(keys):
                keys, x = [keys[i] for i in chosen.tolist()], x[chosen]
        more = f" (or one of {len(keys) - 1} more of {x.shape[1]} rows)" if len(keys) > 1 else ""
        self.guard(label, layer, f"{metric.over} {keys[0]!r}{more}", partial(metric.update_block, keys, x))

    def twin_levels(self, layer: int, blocks: Blocks, instances: Mapping[str, Metric]) -> dict[str, np.ndarray]:
        """Label -> each of its groups' level (groups,), where the baseline gives groups twins."""
        levels: dict[str, np.ndarray] = {}
        for kind, twins in self.twins.items():
            users = {label: m for label, m in instances.items() if m.over == kind and isinstance(m, GroupMean)}
            found = twin_means(twins, users, blocks, partial(self._guarded, layer, f"twins of {kind}s"))
            for label, level in found.items():
                index = self.index[label]
                levels[label] = level if index is None else level[index]
        return levels

    def chance(
        self, layer: int, gather: Callable[[np.ndarray], np.ndarray], instances: Mapping[str, Metric]
    ) -> Iterator[tuple[str, np.ndarray, list[np.ndarray]]]:
        """Each label's values on the baseline's groups (draws,), and its scores on the size-matched ones by rung."""
        nulls: dict[str, list[float]] = {label: [] for label in instances}
        for i, sample in enumerate(self.samples):
            x = gather(sample[None])
            with sharing(x):
                for label, metric in instances.items():
                    where = f"baseline group {i}"
                    if metric.over == "sample":
                        self.guard(label, layer, where, partial(metric.update, i, x[0]))
                    nulls[label].append(float(self.guard(label, layer, where, partial(_null, metric, x))))
        levels: dict[str, list[np.ndarray]] = {label: [] for label in instances}
        for matched in {id(m): m for m in self.matched.values()}.values():
            users = [label for label, m in self.matched.items() if m is matched]
            for draws in matched.draws:
                x = gather(draws)
                with sharing(x):
                    for label in users:
                        metric = instances[label]
                        assert isinstance(metric, GroupMean)
                        where = f"random groups of {draws.shape[1]} rows"
                        levels[label].append(self.guard(label, layer, where, partial(metric.score, x)))
        for label in instances:
            yield label, np.array(nulls[label]), levels[label]

    def _guarded(self, layer: int, where: str, label: str, call: Callable[[], Any]) -> Any:
        return self.guard(label, layer, where, call)

    def guard(self, label: str, layer: int, where: str, call: Callable[[], Any]) -> Any:
        """The call's result; what it raises is named as the metric's, with layer and group."""
        return guard(label, self.probes[label], f"layer {layer}, {where}", call)


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


def _samples(baseline: Baseline, occurrences: Occurrences, rng: np.random.Generator) -> list[np.ndarray]:
    who = f"baseline {getattr(baseline, 'name', type(baseline).__name__)!r}"
    try:
        with stranger():
            samples = [np.asarray(rows) for rows in baseline.groups(occurrences, rng)]
    except CtxexpError:
        raise
    except Exception as error:  # a stranger's baseline may raise anything
        failure = MetricError(f"{who} failed: {said(error)}")
        failure.of = "baseline", ""
        raise failure from error
    if not samples or min(map(len, samples)) < 1:
        failure = MetricError(f"{who} gave no group, or an empty one")
        failure.of = "baseline", ""
        raise failure
    return samples


def _null(metric: Metric, x: np.ndarray) -> float:
    """The metric's value on the random group x (1, n, d)."""
    if isinstance(metric, GroupMean) and type(metric).null is GroupMean.null and x.shape[1] >= metric.min_rows:
        return float(metric.score(x)[0])  # the same as null(x[0]), but on the array whose work is shared
    return metric.null(x[0])


def _build(label: str, factory: Callable[[], Metric]) -> Metric:
    metric: Any = factory()  # a stranger's may build anything
    if not isinstance(metric, Metric):
        error = MetricError(f"metric {label!r}: expected a ctxexp.metric.Metric, got {type(metric).__name__}")
        error.of = "metric", label
        raise error
    return metric


def _one_thread() -> AbstractContextManager[Any]:
    """Products here are small: a second BLAS thread costs more than it brings."""
    try:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(1, "blas")
    return limits
