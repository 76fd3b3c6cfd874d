"""What is measured in every layer alike: random groups, which groups each metric sees, and how it is fed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ctxexp.baselines.drawn import Baseline, Matched, SizeMatched
from ctxexp.baselines.matched import Twins, twin_means
from ctxexp.errors import CtxexpError, MetricError, said, short, stranger
from ctxexp.maths.geometry import sharing
from ctxexp.maths.influence import of_mean_cosine
from ctxexp.measuring.assemble import INFLUENCED, Chance, Shares
from ctxexp.measuring.levels import Blocks, Level, Over
from ctxexp.measuring.occurrences import Groups, Occurrences
from ctxexp.measuring.strata import StrataLevel, strata_level
from ctxexp.measuring.streams import Stream
from ctxexp.metric import GroupBy, GroupMean, Metric, guard

log = logging.getLogger("ctxexp")

KINDS: tuple[GroupBy, ...] = ("word", "sense", "sentence", "corpus")  # gathered in this order


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
        self.main_is_matched = isinstance(baseline, SizeMatched)
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
        self.closed: Over | None = getattr(baseline, "closed", None)
        self.twins: dict[GroupBy, list[Groups]] = {}
        self.strata: tuple[np.ndarray, np.ndarray] | None = None  # of the measured rows, where levels are closed
        if isinstance(baseline, Twins):
            if self.closed:
                rows = np.unique(occurrences.by_sentence.rows)
                self.strata = rows, baseline.strata(occurrences, rows)
            for kind in sorted({probe.over for probe in probes.values() if isinstance(probe, GroupMean)}):
                if kind in ("word", "sentence"):
                    rng = np.random.default_rng([seed, Stream.TWINS])
                    self.twins[kind] = list(baseline.twins(occurrences.groups(kind), occurrences, rng))

    def level_words(self, label: str) -> str:
        """How a measure's chance level came about: `exact`, `drawn`, or nothing where it has none to speak of."""
        probe = self.probes[label]
        if probe.over in self.twins:
            return "exact" if self.strata and _is_cosine(probe) else "drawn"
        if label in self.matched and self.main_is_matched:
            return "drawn"
        return "exact" if self.closed and probe.cosine_level else "drawn" if _has_null(probe) else ""

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
        shares: Mapping[str, Shares],
    ) -> None:
        """Give every metric its groups of one layer; one gather serves all metrics of a kind, and occurrences too.

        What units move each measure goes to `shares`; without those nothing of it is computed.
        """
        for kind in KINDS:
            users = [label for label, m in instances.items() if m.over == kind]
            singles = [label for label, m in instances.items() if m.over == "occurrence"] if kind == "sentence" else []
            if not users and not singles:
                continue
            at = 0
            for keys, rows, x in blocks(self.occurrences.groups(kind)):
                with sharing(x):
                    for label in users:
                        self._update(instances[label], label, layer, at, keys, rows, x, shares.get(label))
                    for label in singles:
                        flat, metric, names = x.reshape(-1, 1, x.shape[-1]), instances[label], rows.ravel().tolist()
                        call = partial(metric.update_block, names, flat)
                        self.guard(label, layer, f"row {names[0]} (or one of {len(names) - 1} more)", call)
                at += len(keys)

    def _update(
        self,
        metric: Metric,
        label: str,
        layer: int,
        at: int,
        keys: Sequence[Hashable],
        rows: np.ndarray,
        x: np.ndarray,
        shares: Shares | None,
    ) -> None:
        index = self.index[label]
        if index is not None:
            first, last = np.searchsorted(index, [at, at + len(keys)])
            chosen = index[first:last] - at
            if not len(chosen):
                return
            if len(chosen) < len(keys):
                keys, rows, x = [keys[i] for i in chosen.tolist()], rows[chosen], x[chosen]
        more = f" (or one of {len(keys) - 1} more of {x.shape[1]} rows)" if len(keys) > 1 else ""
        self.guard(label, layer, f"{metric.over} {keys[0]!r}{more}", partial(metric.update_block, keys, x))
        if shares is not None and isinstance(metric, GroupMean) and metric.over in INFLUENCED:
            where = f"{metric.over} {keys[0]!r}{more}, contributions()"
            shares.add(rows, self.guard(label, layer, where, partial(metric.contributions, keys, x)))

    def twin_levels(
        self,
        layer: int,
        blocks: Blocks,
        gather: Callable[[np.ndarray], np.ndarray],
        instances: Mapping[str, Metric],
    ) -> dict[str, StrataLevel]:
        """Label -> its groups' levels, where the baseline gives groups twins."""
        levels: dict[str, StrataLevel] = {}
        nothing = np.zeros(self.occurrences.units.n_blocks)
        for kind, twins in self.twins.items():
            users = {label: m for label, m in instances.items() if m.over == kind and isinstance(m, GroupMean)}
            closed = [label for label, m in users.items() if self.strata and _is_cosine(m)]
            if closed and self.strata:
                groups = self.occurrences.groups(kind)
                for label in closed:
                    index = self.index[label]
                    chosen = groups if index is None else groups.taken(index)
                    levels[label] = strata_level(gather, self.occurrences, chosen, *self.strata)
                    del users[label]
            found = twin_means(twins, users, blocks, partial(self._guarded, layer, f"twins of {kind}s"))
            for label, level in found.items():
                index = self.index[label]
                levels[label] = StrataLevel(level if index is None else level[index], nothing)
        return levels

    def chance(
        self,
        layer: int,
        gather: Callable[[np.ndarray], np.ndarray],
        instances: Mapping[str, Metric],
        *,
        influence: bool,
    ) -> Iterator[tuple[str, Chance]]:
        """Each label's chance level in one layer; with `influence`, how much units move it too."""
        units = self.occurrences.units
        drawn: dict[str, Level | None] = dict.fromkeys(instances)
        for i, sample in enumerate(self.samples):
            users = {label: m for label, m in instances.items() if i == 0 or m.over == "sample"}
            if not users:
                break
            x = gather(sample[None])
            with sharing(x):
                for label, metric in users.items():
                    where = f"baseline group {i}"
                    if metric.over == "sample":
                        self.guard(label, layer, where, partial(metric.update, i, x[0]))
                    if i == 0:
                        value = float(self.guard(label, layer, where, partial(_null, metric, x)))
                        moved = np.full(units.n_blocks, np.nan)
                        if influence and (of := _null_influence(metric)) and np.isfinite(value):
                            moved = units.summed(units.of_row[sample], self.guard(label, layer, where, partial(of, x)))
                        drawn[label] = Level(value, moved, len(sample))
        rungs: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {label: [] for label in instances}
        for matched in {id(m): m for m in self.matched.values()}.values():
            labels = [label for label, m in self.matched.items() if m is matched]
            for draws in matched.draws:
                x = gather(draws)
                with sharing(x):
                    for label in labels:
                        metric, where = instances[label], f"random groups of {draws.shape[1]} rows"
                        assert isinstance(metric, GroupMean)
                        scores = self.guard(label, layer, where, partial(metric.score, x))
                        moved = np.zeros(units.n_blocks)
                        if influence:
                            found = self.guard(label, layer, where, partial(metric.influence, x))
                            moved = units.summed(units.of_row[draws], found) / max(np.isfinite(scores).sum(), 1)
                        rungs[label].append((scores, moved))
        for label in instances:
            yield label, Chance(drawn[label], [s for s, _ in rungs[label]], [m for _, m in rungs[label]])

    def _guarded(self, layer: int, where: str, label: str, call: Callable[[], Any]) -> Any:
        return self.guard(label, layer, where, call)

    def guard(self, label: str, layer: int, where: str, call: Callable[[], Any]) -> Any:
        """The call's result; what it raises is named as the metric's, with layer and group."""
        return guard(label, self.probes[label], f"layer {layer}, {where}", call)


def _samples(baseline: Baseline, occurrences: Occurrences, rng: np.random.Generator) -> list[np.ndarray]:
    who = f"baseline {getattr(baseline, 'name', type(baseline).__name__)!r}"
    try:
        with stranger():
            samples = [np.asarray(rows) for rows in baseline.groups(occurrences, rng)]
    except CtxexpError:
        raise
    except Exception as error:  # a stranger's baseline may raise anything
        raise failure("baseline", "", f"{who} failed: {said(error)}") from error
    if not samples or min(rows.size for rows in samples) < 1:
        raise failure("baseline", "", f"{who} gave no group, or an empty one")
    last = len(occurrences.places) - 1
    for rows in samples:  # what is gathered isn't checked again
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() > last:
            raise failure("baseline", "", f"{who} gave {short(rows)}; expected numbers of rows, from 0 to {last:,}")
    return samples


def failure(kind: str, label: str, message: str) -> MetricError:
    """The error that says whose it is: a metric's, a baseline's."""
    error = MetricError(message)
    error.of = kind, label
    return error


def _null(metric: Metric, x: np.ndarray) -> float:
    """The metric's value on the random group x (1, n, d)."""
    if isinstance(metric, GroupMean) and type(metric).null is GroupMean.null and x.shape[1] >= metric.min_rows:
        return float(metric.score(x)[0])  # the same as null(x[0]), but on the array whose work is shared
    return metric.null(x[0])


def _null_influence(metric: Metric) -> Callable[[np.ndarray], np.ndarray] | None:
    """How much rows of a random group (1, n, d) move its value (1, n); None where that isn't known."""
    if isinstance(metric, GroupMean):
        same = type(metric).null is GroupMean.null  # then on the array whose work is shared
        return metric.influence if same else lambda x: metric.null_influence(x[0])[None]
    return of_mean_cosine if metric.cosine_level else None


def _is_cosine(probe: Metric) -> bool:
    """Whether the score itself, and not the chance level alone, is the mean cosine."""
    return isinstance(probe, GroupMean) and bool(probe.cosine_level) and type(probe).null is GroupMean.null


def _has_null(probe: Metric) -> bool:
    return isinstance(probe, GroupMean) or bool(probe.cosine_level) or type(probe).null is not Metric.null
