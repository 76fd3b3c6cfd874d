"""Which chance level each measure is held against: its groups' own where the baseline gives them, else the sample's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import islice

import numpy as np

from ctxexp.baseline import Baseline, Chance, Levels, Subject
from ctxexp.baselines.size_matched import SizeMatched
from ctxexp.errors import CtxexpError, MetricError, said, short, stranger
from ctxexp.maths.geometry import sharing
from ctxexp.measuring.bootstrap import Curve
from ctxexp.measuring.levels import Level, mean_cosine_level
from ctxexp.measuring.occurrences import Occurrences
from ctxexp.measuring.reader import WordReader
from ctxexp.measuring.streams import Stream
from ctxexp.metric import GroupMean, Metric, Over


class SampleLevel:
    """The chance levels that come from the first of the baseline's random groups."""

    def __init__(self, baseline: Baseline, occurrences: Occurrences, rng: np.random.Generator) -> None:
        self.closed, self.occurrences = baseline.closed, occurrences
        self.samples = draw(baseline, occurrences, rng)
        self._levels: dict[str, list[Level]] = {}

    def words(self, metric: Metric) -> str:
        """How the measure's level came about: `exact`, `drawn`, or nothing where it has none to speak of."""
        return "exact" if self.closed and metric.cosine_level else "drawn" if metric.has_null else ""

    def look(self, reader: WordReader, metrics: Mapping[str, Metric], *, influence: bool) -> None:
        """Take one layer's level of each measure; with `influence`, how much units move it too."""
        cosine = None
        if self.closed and any(metric.cosine_level for metric in metrics.values()):
            cosine = mean_cosine_level(reader.blocks_of, self.occurrences, self.closed)
        x = reader.gather(self.samples[0][None])  # (1, n, d)
        with sharing(x):
            for label, metric in metrics.items():
                exact = cosine if metric.cosine_level else None
                level = exact or self._drawn(reader, label, metric, x, influence=influence)
                self._levels.setdefault(label, []).append(level)

    def _drawn(self, reader: WordReader, label: str, metric: Metric, x: np.ndarray, *, influence: bool) -> Level:
        rows, units = self.samples[0], self.occurrences.units
        value = float(reader.guard(label, metric, "baseline group 0", partial(metric.level, x)))
        moved = np.full(units.n_blocks, np.nan)
        if influence and np.isfinite(value):
            of_row = reader.guard(label, metric, "baseline group 0", partial(metric.level_influence, x))
            if of_row is not None:
                moved = units.summed(units.of_row[rows], of_row)
        return Level(value, moved, len(rows))

    def curve(self, label: str) -> Curve:
        """The measure's level by layer."""
        levels = self._levels[label]
        return Curve(np.array([level.value for level in levels]), np.stack([level.moved for level in levels]))

    def levels(self, label: str, scores: np.ndarray, chosen: np.ndarray | None) -> Levels:
        """The same as what every group has."""
        curve = self.curve(label)
        return Levels(curve.value, curve)

    def sizes(self, label: str) -> np.ndarray:
        """(n_layers,) how many sentences or occurrences the level is over."""
        return np.array([float(level.n) for level in self._levels[label]])


MAX_GROUPS = 20_000  # of a baseline: 160 MB of them, of 1,000 rows each


def draw(baseline: Baseline, occurrences: Occurrences, rng: np.random.Generator) -> list[np.ndarray]:
    """The baseline's random groups, checked; MetricError names the baseline."""
    who = f"baseline {baseline.name!r}"
    try:
        with stranger():
            drawn = islice(baseline.groups(occurrences, rng), MAX_GROUPS + 1)  # it may never end
            samples = [np.asarray(rows) for rows in drawn]
    except CtxexpError:
        raise
    except Exception as error:  # a stranger's baseline may raise anything
        raise _failure(f"{who} failed: {said(error)}") from error
    if len(samples) > MAX_GROUPS:
        raise _failure(f"{who} gave more than {MAX_GROUPS:,} groups: a first one and redraws of it are expected")
    if not samples or min(rows.size for rows in samples) < 1:
        raise _failure(f"{who} gave no group, or an empty one")
    last = len(occurrences.places) - 1
    for rows in samples:  # what is gathered isn't checked again
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() > last:
            raise _failure(f"{who} gave {short(rows)}; expected numbers of rows, from 0 to {last:,}")
    return samples


def _failure(message: str) -> MetricError:
    error = MetricError(message)
    error.of = "baseline", ""
    return error


class Chances:
    """The chance levels of all measures of words, in all layers. Its making draws: rows are the same in every layer."""

    def __init__(
        self,
        occurrences: Occurrences,
        baseline: Baseline,
        probes: Mapping[str, Metric],
        chosen: Mapping[str, np.ndarray | None],
        seed: int,
    ) -> None:
        self.probes, self.chosen = probes, chosen
        self.sample = SampleLevel(baseline, occurrences, np.random.default_rng([seed, Stream.BASELINE]))
        self.own: dict[str, Chance] = {}  # label -> its groups' own levels
        self.beside: dict[str, Chance] = {}  # label -> those by size, where the metric asks for them too
        made: dict[tuple[str, str], Chance | None] = {}

        def chance(scheme: Baseline, over: Over) -> Chance | None:
            key = scheme.name, over
            if key not in made:
                made[key] = scheme.chance(occurrences, over, seed)
            return made[key]

        for label, probe in probes.items():
            if not probe.scored:
                continue
            own, by_size = chance(baseline, probe.over), None
            if baseline.name != SizeMatched.name and (probe.size_matched or probe.baseline == "size_matched"):
                by_size = chance(SizeMatched(), probe.over)
            if own is None and probe.baseline == "size_matched":
                own, by_size = by_size, None
            if own:
                self.own[label] = own
            if by_size and probe.size_matched:
                self.beside[label] = by_size

    def look(self, reader: WordReader, metrics: Mapping[str, Metric], *, influence: bool) -> None:
        """Take one layer's levels; each random group is gathered once for all measures."""
        shared = {label: metric for label, metric in metrics.items() if label not in self.own}
        self.sample.look(reader, shared, influence=influence)
        for held in (self.own, self.beside):
            for chance in dict.fromkeys(held.values()):
                subjects = {
                    label: Subject(metric, self.chosen[label])
                    for label, metric in metrics.items()
                    if held.get(label) is chance and isinstance(metric, GroupMean)
                }
                chance.look(reader, subjects, influence=influence)

    def levels(self, label: str, scores: np.ndarray) -> dict[str, Levels]:
        """The levels of a measure's groups, whose scores are (n_groups, n_layers), by what their statistics' names
        begin with."""
        main = self.own.get(label, self.sample).levels(label, scores, self.chosen[label])
        if label not in self.beside:
            return {"": main}
        return {"": main, "size_matched_": self.beside[label].levels(label, scores, self.chosen[label])}

    def words(self, label: str) -> str:
        """How the measure's level came about: `exact`, `drawn`, `size-matched`, or nothing where it has none to speak
        of."""
        return self.own.get(label, self.sample).words(self.probes[label])
