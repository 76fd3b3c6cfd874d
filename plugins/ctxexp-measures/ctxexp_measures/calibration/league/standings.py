"""Standings of transforms: effects on sentence vectors' isotropy and on their agreement with people, run by run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ctxexp import Results
from ctxexp.maths import interval
from ctxexp.report import LabelledResults, unique_labels
from ctxexp.results import Key, RunInfo

MAIN = "all"
GEOMETRY = ("mean_cosine", "isoscore", "effective_rank")
NONE = "none"
AVERAGE = "avg"  # the task that is the mean over tasks


@dataclass(frozen=True)
class SentencePlace:
    """Place where sentence vectors are read: a layer (its number) or a mix (its name)."""

    name: str  # `last layer`, `best layer of none`, or the mix
    at: int | str
    last: bool = False  # it is the last layer
    best: bool = False  # it is the layer that is best without a transform

    def __str__(self) -> str:
        return f"{self.name} ({self.at})" if isinstance(self.at, int) else self.name


@dataclass(frozen=True)
class Standing:
    """One transform at one place of one model; numbers are means over seeds where there are several."""

    model: str
    place: SentencePlace
    transform: str
    runs: tuple[Results, ...]
    rank: int  # 1 is the best mean Spearman of the place
    geometry: dict[str, float]
    scores: dict[str, float]  # Spearman x 100 over all pairs of each task, in the corpus's order
    score: float  # their mean, or the only task's
    gain: float  # over none; NaN without a run of it
    low: float
    high: float
    over: str  # what the gain's interval is over: `pairs`, `5 seeds`, `pairs and 5 seeds`, or empty
    less_cosine: float  # how much lower the mean cosine is than without a transform
    more_isoscore: float  # how much higher IsoScore is
    transductive: bool | None  # None: nothing is fitted
    lead: float = math.nan  # over the transform that is next; NaN of the last one
    lead_low: float = math.nan
    lead_high: float = math.nan

    @property
    def is_level(self) -> bool:
        """Whether the transform that is next isn't told apart: the lead's interval is unknown or holds 0."""
        return not self.lead_low > 0


def standings(runs: Sequence[LabelledResults]) -> list[Standing]:
    """Every transform of every model whose runs measured `sts` and `sentence_geometry` with two transforms or more.

    Places: the last layer, the layer that is best without a transform, and the mixes that all of a model's runs have.
    Runs that differ in nothing but seeds are one standing, their mean.
    """
    result: list[Standing] = []
    for model, members in _leagues(runs):
        plain = members.get(NONE, [])
        for place in _places([run for some in members.values() for run in some], plain):
            rows = [_standing(model, place, name, some, plain) for name, some in members.items()]
            rows.sort(key=lambda s: (math.isnan(s.score), -s.score))
            for rank, (row, after) in enumerate(zip(rows, [*rows[1:], None], strict=True), start=1):
                low, high, _ = _interval(row.runs, after.runs, place.at) if after else (math.nan, math.nan, "")
                lead = row.score - after.score if after else math.nan
                result.append(replace(row, rank=rank, lead=lead, lead_low=low, lead_high=high))
    return result


def measure_of(results: Results, metric: str) -> str | None:
    """The first label under which a run measured the metric over pairs; None if it didn't."""
    return next((label for label, about in results.info.measures.items() if about.name == metric), None)


def tasks(results: Results, label: str) -> list[str]:
    """The tasks that a run has scores of; [""] for a corpus of one, whose statistics have none."""
    names = [task for measure, task in results.measure_tasks() if measure == label and task != AVERAGE]
    return [task for task in names if Key(label, MAIN, task) in results.by_key]


def value(results: Results, key: Key, at: int | str) -> float:
    """A key's value at a layer or mix; NaN where the run hasn't it."""
    estimate = results.by_key.get(key._replace(place=at) if isinstance(at, str) else key)
    if estimate is None or (isinstance(at, int) and at >= len(estimate.value)):
        return math.nan
    return float(estimate.value[0 if isinstance(at, str) else at])


def summary_key(results: Results, label: str) -> Key:
    """Key of a run's main value: `all` of the mean over several tasks, or of the only one."""
    return Key(label, MAIN, "" if tasks(results, label) == [""] else AVERAGE)


def transform_name(results: Results) -> str:
    """The transform without its seed, as labels have it, and the text that it was fitted on unless that is measured."""
    transform = results.info.transform
    name = transform.name
    head, _, arguments = name.partition(" (")
    parts = [
        part
        for part in arguments.removesuffix(")").split(", ")
        if part and part != f"seed={transform.arguments.get('seed')}"
    ]
    name = f"{head} ({', '.join(parts)})" if parts else head
    fit_on = transform.fit.text if transform.fit else "target"
    return name if fit_on == "target" or name == NONE else f"{name} fitted on {fit_on}"


def _leagues(runs: Sequence[LabelledResults]) -> Iterator[tuple[str, dict[str, list[Results]]]]:
    """A model's label, and its runs by transform."""
    leagues: dict[str, dict[str, list[Results]]] = {}
    for _, results in runs:
        if measure_of(results, "sts") and measure_of(results, "sentence_geometry"):
            identity = json.dumps(_league_identity(results.info), default=str)
            members = leagues.setdefault(identity, {}).setdefault(transform_name(results), [])
            if _seeds(results) not in map(_seeds, members):  # the same run again is no other seed
                members.append(results)
    leagues_of_several = [members for members in leagues.values() if len(members) > 1]
    first = [next(iter(members.values()))[0] for members in leagues_of_several]
    names = [model_name(one) for one in first]
    poolings = [
        f", sentence pooling {one.info.pooling.name}" if names.count(n) > 1 else ""
        for n, one in zip(names, first, strict=True)
    ]
    named = unique_labels([(n + pooling, one) for n, pooling, one in zip(names, poolings, first, strict=True)])
    yield from ((label, members) for (label, _), members in zip(named, leagues_of_several, strict=True))


def _league_identity(info: RunInfo) -> list[object]:
    """Values that all runs of a league have in common."""
    model, corpus = info.model, info.corpus
    measures = [(label, *vars(about).values()) for label, about in info.measures.items()]
    identity = [model.name, model.weights, model.encoder, model.dtype, corpus.name, corpus.fingerprint, corpus.choices]
    return [*identity, info.control, info.pooling.name, measures]


def _seeds(results: Results) -> tuple[int, object]:
    return results.info.seed, results.info.transform.arguments.get("seed")


def model_name(results: Results) -> str:
    """The run's label without its transform, with the weights that it used."""
    info = results.info
    name = info.title or "run"
    if info.transform.name != NONE:
        name = name.partition(f" + {info.transform.name}")[0]
    return info.with_weights(name)


def _places(members: Sequence[Results], plain: Sequence[Results]) -> list[SentencePlace]:
    last = members[0].n_layers - 1
    places = [SentencePlace("last layer", last, last=True)]
    if plain:
        label = measure_of(plain[0], "sts")
        estimate = None if label is None else plain[0].by_key.get(summary_key(plain[0], label))
        if estimate is not None and np.isfinite(estimate.value).any():
            best = int(np.nanargmax(estimate.value))
            if best == last:
                places = [SentencePlace("last layer, best of none", last, last=True, best=True)]
            else:
                places.append(SentencePlace("best layer of none", best, best=True))
    mixes = [set(run.info.pooling.mixes) for run in members]
    shared = set.intersection(*mixes)
    return places + [SentencePlace(mix, mix) for mix in members[0].info.pooling.mixes if mix in shared]


def _standing(
    model: str, place: SentencePlace, transform: str, members: Sequence[Results], plain: Sequence[Results]
) -> Standing:
    scores = [_scores(run, place.at) for run in members]
    geometry = [_geometry(run, place.at) for run in members]
    references = [_counterpart(run, plain) for run in members]
    cosine, iso = [], []
    for shape, reference in zip(geometry, references, strict=True):
        before = _geometry(reference, place.at) if reference else dict.fromkeys(GEOMETRY, math.nan)
        cosine.append(before["mean_cosine"] - shape["mean_cosine"])
        iso.append(shape["isoscore"] - before["isoscore"])
    score = _mean([_score(run, place.at) for run in members])
    low, high, over = _interval(members, plain, place.at) if transform != NONE else (math.nan, math.nan, "")
    fitted = {fit.transductive for run in members if (fit := run.info.transform.fit)}
    return Standing(
        model=model,
        place=place,
        transform=transform,
        runs=tuple(members),
        rank=0,
        geometry={key: _mean([shape[key] for shape in geometry]) for key in GEOMETRY},
        scores={task: _mean([s.get(task, math.nan) for s in scores]) for task in scores[0]},
        score=score,
        gain=score - _mean([_score(run, place.at) for run in plain]),
        low=low,
        high=high,
        over=over,
        less_cosine=_mean(cosine),
        more_isoscore=_mean(iso),
        transductive=True in fitted if fitted else None,
    )


def _interval(runs: Sequence[Results], others: Sequence[Results], at: int | str) -> tuple[float, float, str]:
    """The 95% interval of how much the mean over seeds of some runs is above that of others, and what it is over; NaN
    and nothing where neither is known.

    Over pairs it is that of the first run and its counterpart, by the same resamples; over seeds Student's t for each
    side that has several. As the two are independent, their ends' distances from the difference add as squares.
    """
    from scipy.stats import t

    sides = [[_score(run, at) for run in side] for side in (runs, others)]
    several = [side for side in sides if len(side) > 1]
    counterpart = _counterpart(runs[0], others)
    if counterpart is None or not np.isfinite([*sides[0], *sides[1]]).all():
        return math.nan, math.nan, ""
    (low, high), over = paired_interval(runs[0], counterpart, at)
    if not over and not several:
        return math.nan, math.nan, ""
    lead, first = _mean(sides[0]) - _mean(sides[1]), _score(runs[0], at) - _score(counterpart, at)
    by_pairs = (first - low, high - first) if over else (0.0, 0.0)
    by_seeds = [
        float(t.ppf(0.975, len(side) - 1)) * float(np.std(side, ddof=1)) / math.sqrt(len(side)) for side in several
    ]
    down, up = (math.hypot(end, *by_seeds) for end in by_pairs)
    words = ["pairs"] * bool(over) + [f"{len(side)} seeds" for side in several[:1]]
    return lead - down, lead + up, " and ".join(words)


def paired_interval(run: Results, reference: Results, at: int | str) -> tuple[tuple[float, float], str]:
    """The 95% bootstrap interval of a run's gain over another on the same resamples of pairs, and what it is over;
    NaN and nothing if they didn't draw the same."""
    a, b = (_replicates(results, at) for results in (run, reference))
    if a is None or b is None or len(a) != len(b) or not run.info.shares_resamples(reference.info):
        return (math.nan, math.nan), ""
    low, high = interval((a.astype(np.float64) - b)[None])
    return (float(low[0]), float(high[0])), f"{len(a):,} resamples of the pairs"


def _replicates(results: Results, at: int | str) -> np.ndarray | None:
    label = measure_of(results, "sts") or ""
    key = summary_key(results, label)
    if isinstance(at, str):
        return results.replicates.get(key._replace(place=at))
    rows = results.replicates.get(key)
    return None if rows is None or at >= len(rows) else rows[at]


def _counterpart(run: Results, plain: Sequence[Results]) -> Results | None:
    """The run without a transform to compare with: of the same seed if there is one."""
    same = (p for p in plain if p.info.seed == run.info.seed)
    return next(same, plain[0] if plain else None)


def _score(results: Results, at: int | str) -> float:
    label = measure_of(results, "sts") or ""
    return value(results, summary_key(results, label), at)


def _scores(results: Results, at: int | str) -> dict[str, float]:
    label = measure_of(results, "sts") or ""
    alone = results.info.corpus.name
    return {task or alone: value(results, Key(label, MAIN, task), at) for task in tasks(results, label)}


def _geometry(results: Results, at: int | str) -> dict[str, float]:
    label = measure_of(results, "sentence_geometry") or ""
    return {name: value(results, Key(label, name), at) for name in GEOMETRY}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
