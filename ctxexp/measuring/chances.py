"""Which chance level each measure is held against: its groups' own where the baseline gives them, else the sample's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ctxexp.baseline import Baseline, Chance, Levels, User
from ctxexp.baselines.size_matched import SizeMatched
from ctxexp.measuring.occurrences import Occurrences
from ctxexp.measuring.reader import WordReader
from ctxexp.measuring.sample import SampleLevel
from ctxexp.measuring.streams import Stream
from ctxexp.metric import GroupMean, Metric


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
        for label, probe in probes.items():
            if not probe.scored:
                continue
            for scheme, held in ((baseline, self.own), (SizeMatched(), self.beside)):
                if held is self.beside and (not probe.size_matched or baseline.name == scheme.name):
                    continue
                key = scheme.name, probe.over
                if key not in made:
                    made[key] = scheme.chance(occurrences, probe.over, seed)
                if chance := made[key]:
                    held[label] = chance

    def look(self, reader: WordReader, metrics: Mapping[str, Metric], *, influence: bool) -> None:
        """Take one layer's levels; each random group is gathered once for all measures."""
        shared = {label: metric for label, metric in metrics.items() if label not in self.own}
        self.sample.look(reader, shared, influence=influence)
        for held in (self.own, self.beside):
            for chance in dict.fromkeys(held.values()):
                users = {
                    label: User(metric, self.chosen[label])
                    for label, metric in metrics.items()
                    if held.get(label) is chance and isinstance(metric, GroupMean)
                }
                chance.look(reader, users, influence=influence)

    def levels(self, label: str, scores: np.ndarray) -> dict[str, Levels]:
        """The levels of a measure's groups, whose scores are (n_groups, n_layers), by what their statistics' names
        begin with."""
        main = self.own.get(label, self.sample).levels(label, scores, self.chosen[label])
        if label not in self.beside:
            return {"": main}
        return {"": main, "size_matched_": self.beside[label].levels(label, scores, self.chosen[label])}

    def words(self, label: str) -> str:
        """How the measure's level came about: `exact`, `drawn`, or nothing where it has none to speak of."""
        return self.own.get(label, self.sample).words(self.probes[label])
