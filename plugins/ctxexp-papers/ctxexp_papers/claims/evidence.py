"""Evidence on claims: curves of a model, and families of runs that may be compared with each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ctxexp import Results
from ctxexp.report.references import UNTRAINED, control_lines
from ctxexp.report.wording import baseline_label
from ctxexp.results import LAYER, Estimates, Key, RunInfo
from ctxexp_papers.claims.protocol import Protocol
from ctxexp_papers.claims.source import LinkedResults, Source
from ctxexp_papers.claims.spans import NotMeasuredError, Span

if TYPE_CHECKING:
    import pandas as pd

SAMPLED = ("one_per_sentence", "uniform", "")  # baselines of random occurrences, as the paper's


@dataclass(frozen=True)
class Evidence:
    """One run's curves by layer, or released figures: points, or with intervals and word tables. `twin` is the same run
    of untrained weights, `model` is elmo, bert or gpt2, `link` leads to the run.
    """

    model: str
    by_key: Mapping[Key, Estimates]
    label: str = ""
    link: str = ""
    info: RunInfo = field(default_factory=RunInfo)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    replicates: Mapping[Key, np.ndarray] = field(default_factory=dict)
    twin: Evidence | None = None
    points: bool = False

    def curve(self, key: Key) -> np.ndarray | None:
        """The curve, if it has any value."""
        estimates = self.by_key.get(key)
        return estimates.value if estimates and np.isfinite(estimates.value).any() else None

    def span(self, key: Key, other: Evidence | None = None) -> Span:
        """The curve with its intervals, and its replicates unless `other` drew other resamples; raises NotMeasuredError
        if it isn't there."""
        if self.curve(key) is None:
            raise NotMeasuredError(f"{key} was not released" if self.points else f"no {key} in its runs")
        if self.points:
            return Span(*[self.by_key[key].value] * 3)
        same_resamples = other is None or _resampling(self.info) == _resampling(other.info)
        return Span(*self.by_key[key], self.replicates.get(key) if same_resamples else None)

    def less(self, other: Evidence, key: Key, one: int, two: int) -> tuple[float, float, float]:
        """This run's value at a layer less the other's at one of its own, low and high; raises NotMeasuredError."""
        a, b = self.span(key, other), other.span(key, self)
        a.require(key, [one])
        b.require(key, [two])
        return a.less(b, one, two)

    def with_interval(self, value: float, low: float, high: float) -> tuple[float, float, float]:
        """An effect as a report has it: the ends of its interval are NaN where the evidence brings none."""
        return (value, math.nan, math.nan) if self.points else (value, low, high)

    def n(self, key: Key, layer: int) -> float:
        """How many groups the value of this layer is over; NaN if unknown."""
        counts = self.by_key.get(key._replace(statistic="n", baseline=""))
        return float(counts.value[layer]) if counts and layer < len(counts.value) else math.nan


@dataclass
class Family(Source):
    """Runs that may stand in one sentence: the same weights, corpus, protocol, transform and control; newest first.

    Its `controls` are a line a curve and model (`ctxexp.report.references`).
    """

    corpus: str = ""
    members: list[Evidence] = field(default_factory=list)

    def find(self, model: str, *keys: Key) -> Evidence | None:
        """The newest run of the model that has all these curves."""
        for member in self.members:
            if member.model == model and all(member.curve(key) is not None for key in keys):
                return member
        return None

    def models(self) -> list[str]:
        """The models in it, in the order of its members."""
        return list(dict.fromkeys(member.model for member in self.members))

    def links(self) -> list[str]:
        return list(dict.fromkeys(f"{m.label or m.model}: {m.link}" for m in self.members if m.link))


def families(runs: Iterable[LinkedResults], protocol: Protocol) -> list[Family]:
    """Finished runs, newest first, sorted into families; the paper's own first.

    Only runs of the paper's models count. The paper's own: its weights, its text and its protocol
    (`Protocol.departures`), whatever a run calls itself.
    """
    by_protocol: dict[tuple[str, ...], Family] = {}
    own: dict[tuple[str, ...], dict[str, Results]] = {}  # the newest of each model, whose controls are told
    pairs = list(runs)
    for results, link in pairs:
        info = results.info
        name = info.model.name
        if name not in protocol.checkpoints:
            continue
        changed = [info.transform.name, info.control]
        reasons = protocol.departures(info)
        weights = info.model.weights or "unknown"
        key = ("own" if not reasons else weights, info.corpus.fingerprint, *changed)
        if key not in by_protocol:
            title = _title("of the paper" if not reasons else weights, info, changed)
            by_protocol[key] = Family("other" if reasons else "protocol", title, corpus=info.corpus.name)
        by_protocol[key].members.append(_evidence(name, results, link))
        own.setdefault(key, {}).setdefault(name, results)
        if reasons:
            by_protocol[key].departures.setdefault(name, reasons)
    twins = [m for family in by_protocol.values() for m in family.members if m.info.model.weights == UNTRAINED]
    order = list(protocol.checkpoints)
    for key, family in by_protocol.items():
        members = [replace(m, twin=_twin(m, twins)) for m in family.members]
        family.members = sorted(members, key=lambda m: order.index(m.model))
        family.controls = control_lines(list(own[key].items()), others=[results for results, _ in pairs])
    return sorted(by_protocol.values(), key=lambda f: (f.kind != "protocol", f.corpus != protocol.corpus, _distance(f)))


def _twin(member: Evidence, twins: Iterable[Evidence]) -> Evidence | None:
    """The newest run that is this one's untrained twin."""
    return next((twin for twin in twins if member.info.control_by(twin.info) == "untrained"), None)


def _evidence(model: str, results: Results, link: str) -> Evidence:
    labels = measure_labels(results)
    keys = {key: name for key in results.by_key if (name := _canonical(results, labels, key))}
    estimates = {name: results.by_key[key] for key, name in keys.items()}
    replicates = {name: results.replicates[key] for key, name in keys.items() if key in results.replicates}
    return Evidence(model, estimates, results.info.title, link, results.info, replicates=replicates)


def measure_labels(results: Results) -> dict[str, str]:
    """The label of each thing that a run measured, by what it is whatever its label: the metric's name with its
    variant. Of several labels that one of the same words, else the first; a measure that doesn't say is left out.
    """
    labels: dict[str, str] = {}
    for label in results.info.measures:
        if results.info.measure(label).variant is not None:
            name = results.info.definition_name(label)
            labels[name] = label if label == name else labels.get(name, label)
    return labels


def _canonical(results: Results, labels: Mapping[str, str], key: Key) -> Key | None:
    """A curve's key by what it is of and what it is adjusted by: where the run's or the measure's own baseline is
    `size_matched`, plain `adjusted` is by that level. None for what isn't evidence.

    Adjusted by another twin of the group (its positions, its frequency), a curve is no reading of the paper.
    """
    name = results.info.definition_name(key.measure)
    if key.place != LAYER or key.task or labels.get(name) != key.measure:
        return None
    if key.baseline or not key.statistic.startswith(("adjusted", "share_of_room")):
        return key._replace(measure=name)
    baseline = results.info.baseline.name
    if baseline == "size_matched" or (baseline in SAMPLED and baseline_label(results, key)):
        return Key(name, key.statistic, baseline="size_matched")
    return Key(name, key.statistic) if baseline in SAMPLED else None


def _resampling(info: RunInfo) -> tuple[int, int, str]:
    """Runs that agree in these drew the same resamples."""
    return info.seed, info.bootstrap, info.corpus.fingerprint


def _distance(family: Family) -> int:
    """In how many ways its runs depart from the paper's experiment at the most."""
    return max(map(len, family.departures.values()), default=0)


def _title(weights: str, info: RunInfo, changed: Sequence[str]) -> str:
    parts = [f"weights {weights}", f"corpus {info.corpus.name or 'unknown'}"]
    parts += [f"{what} {name}" for what, name in zip(("transform", "control"), changed, strict=True) if name != "none"]
    return ", ".join(parts)
