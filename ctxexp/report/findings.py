"""Findings: one sentence on each curve, made from its numbers, that claims a change only where the data show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report.changes import (
    Leg,
    Trend,
    claimed_order,
    claimed_steps,
    halves,
    interval_estimates,
    is_too_short,
    least,
    opposite_steps,
    trend,
)
from ctxexp.report.wording import AVERAGE, LabelledResults, full_title, mix_labels, unique_labels
from ctxexp.results.results import mix_mark
from ctxexp.results.values import LAYER, Key

if TYPE_CHECKING:
    from ctxexp.results import Results

LEADING = "self_similarity"  # the measure that a run's one sentence is of, where it was measured
FEW = 3  # runs whose changes a chart says one by one
MOST_WORDS = 30  # of a sentence
OPPOSITE = "adjusted moves the other way: its ceiling, 1 − chance, moved"
MARKED = f"* from the layer before, {OPPOSITE}"
MOST_LISTED = 6  # parts that a sentence names


def findings(results: Results, label: str = "") -> list[str]:
    """A sentence on each measure's main curve, the leading one first; `label` names the run (its title)."""
    return [finding_of(results, key, label) for key in leading_keys(results)]


def finding(results: Results, label: str = "") -> str:
    """The sentence on the leading measure's main curve; empty where nothing was measured by layer."""
    return next((finding_of(results, key, label) for key in leading_keys(results)[:1]), "")


def change(results: Results, label: str = "") -> str:
    """The same without its numbers."""
    return next((change_of(results, key, label) for key in leading_keys(results)[:1]), "")


def finding_of(results: Results, key: Key, label: str = "") -> str:
    """The sentence on one curve by layer.

    A change is claimed by the rule of `ctxexp.report.changes`, with the values that it rests on, or the
    sentence says why none is.

    Args:
        results: The run.
        key: A curve of it.
        label: The run's name in the sentence; empty: its title.

    Returns:
        The sentence, with a full stop, of at most `MOST_WORDS` words where that leaves room for its numbers.
    """
    course, opening = _course(results, key), _opening(results, key, label)
    if not course.layers:
        return f"{opening}."
    first, last = course.layers[0], course.layers[-1]
    legs = course.legs
    layers = [legs[0].start, *(leg.end for leg in legs)] if legs else [first, last]
    values = _values(results, key, list(dict.fromkeys(layers)))
    names = {"share_of_room": ["share of the room above chance ", "share of the room "]}
    texts = [f"{opening} ({name}{values})." for name in [*names.get(key.statistic, []), ""]]
    return next((text for text in texts if len(text.split()) <= MOST_WORDS), texts[-1])


def change_of(results: Results, key: Key, label: str = "") -> str:
    """The same without its numbers: "In bert, words grow more context-specific up to layer 3."; of a measure that says
    nothing of its direction "Rogue dimensions in bert: a fall up to layer 3."."""
    return f"{_opening(results, key, label)}."


def _opening(results: Results, key: Key, label: str) -> str:
    """The claimed changes of a curve, or why none is claimed, without a full stop."""
    course, info = _course(results, key), results.info.measure(key.measure)
    label = label or results.info.title or "this run"
    name = f"{full_title(key.measure, key.task, [results])} in {label}"
    if not course.legs:
        return f"{name}: {_no_change(results, key, course)}"
    words = {1: info.higher, -1: info.lower} if info.subject else {1: "a rise", -1: "a fall"}
    clauses = ", then ".join(f"{words[leg.sign]} {_span(leg, course)}" for leg in course.legs)
    if not info.subject:
        return f"{name}: {clauses}"
    task = "mean over tasks" if key.task == AVERAGE else key.task
    which = ", ".join(filter(None, [task, info.variant, mix_mark(results, key.measure)]))
    return f"In {label}, {info.subject}{f' ({which})' if which else ''} grow {clauses}"


def marked_steps(results: Results, key: Key) -> str:
    """The line below a table or chart on the steps at which `adjusted` moves against its share; empty without one."""
    layers = opposite_steps(results, key)
    which = f"layer{'s' * (len(layers) > 1)} {enumeration([str(layer) for layer in layers])}"
    return f"* at {which}, {OPPOSITE}" if layers else ""


def chart_finding(runs: Sequence[LabelledResults], key: Key) -> str:
    """The sentences on one curve of a chart of runs: of one run with its numbers, of up to three their changes, of
    more their order at the last layer."""
    runs = [(label, results) for label, results in unique_labels(runs) if key in results.by_key]
    if runs and not any(_course(results, key).has_interval for _, results in runs):
        title = full_title(key.measure, key.task, [results for _, results in runs])
        runs = list(zip(mix_labels(key.measure, runs), (results for _, results in runs), strict=True))
        ranges = ", ".join(_range(results, key, label) for label, results in runs[:6])
        return f"{title}: {ranges}; without intervals no change is claimed."
    if len(runs) == 1:
        return finding_of(runs[0][1], key, runs[0][0])
    if len(runs) > FEW:
        return comparison_finding(runs, key)
    return " ".join(f"{_opening(results, key, label)}." for label, results in runs)


def _range(results: Results, key: Key, label: str) -> str:
    """The curve's lowest and highest value: "1.9 to 244.1 in gpt2"."""
    values = results.by_key[key].value
    if not np.isfinite(values).any():
        return f"undefined in {label}"
    ends = np.array([np.nanmin(values), np.nanmax(values)])
    low, high = (number(end, ends) for end in ends.tolist())
    return f"{low} in {label}" if low == high else f"{low} to {high} in {label}"


def comparison_finding(runs: Sequence[LabelledResults], key: Key | None = None, *, named: bool = True) -> str:
    """The sentence that lays runs side by side at their last layer, by one curve (None: the leading one that all have),
    which is `named` unless a table beside it does; empty for fewer than two."""
    labelled = [(label, r) for label, r in unique_labels(runs) if not r.info.is_control]
    keys = [key] if key else leading_keys(labelled[0][1]) if labelled else []
    shared = [key for key in keys if all(key in r.by_key for _, r in labelled)]
    points = [(label, r, _last(r, shared[0])) for label, r in labelled] if shared else []
    points = [point for point in points if point[2] >= 0]
    if len(points) < 2:
        return ""
    key, every = shared[0], [results for _, results, _ in points]
    info = every[0].info.measure(key.measure)
    values, order = claimed_order([(results, key, at) for _, results, at in points])
    lowest = int(np.argmin(values))
    labels = mix_labels(key.measure, [(label, results) for label, results, _ in points])
    parts = [f"{label} ({number(v, values)})" for label, v in zip(labels, values, strict=True)]
    above = [i for i in range(len(points)) if order[lowest, i] > 0]
    beside = [i for i in range(len(points)) if i not in (lowest, *above)]
    scale = f", {key.label()}" if key.statistic in ("share_of_room", "adjusted") else ""
    title = full_title(key.measure, key.task, every)
    where = f"At the last measured layer ({title}{scale})" if named else "Last layer:"
    if not above:
        has_ci = all(_course(results, key).has_interval for results in every)
        why = "these data can't tell the models apart" if has_ci else "without intervals no order of models is claimed"
        return f"{where} {why}: {name_or_count(parts, values, 'runs')}."
    meaning = f"{info.subject} are {info.lower}" if info.subject else "values are lower"
    others = [name_or_count([parts[i] for i in at], values, "others", at) for at in (above, beside)]
    than, rest = others[0], f"; these data can't tell {others[1]} from it" if beside else ""
    return f"{where} {meaning} in {parts[lowest]} than in {than}{rest}."


def sweep_finding(runs: Sequence[LabelledResults]) -> str:
    """The sentences on the leading measure that all runs have: their changes by layer, where they are few, and
    their order at the last."""
    every = [leading_keys(results) for _, results in runs]
    key = next((key for key in (every[0] if every else []) if all(key in keys for keys in every)), None)
    sentences = [chart_finding(runs, key), comparison_finding(runs, key)] if key else []
    return " ".join(dict.fromkeys(filter(None, sentences)))


def leading_keys(results: Results) -> list[Key]:
    """The main curves by layer, the leading measure's first."""
    return sorted((key for key in results.main_keys if key.place == LAYER), key=lambda key: key.measure != LEADING)


def _last(results: Results, key: Key) -> int:
    """The last defined layer; -1: none."""
    return max(np.flatnonzero(np.isfinite(results.by_key[key].value)).tolist(), default=-1)


def _course(results: Results, key: Key) -> Trend:
    """The curve's course by the steps that may be claimed; of a negative control none is."""
    estimates, signs = interval_estimates(results, key), claimed_steps(results, key)
    return trend(estimates, np.zeros_like(signs) if results.info.is_control else signs)


def _no_change(results: Results, key: Key, course: Trend) -> str:
    """Why no change is claimed."""
    if not course.layers:
        return "undefined in every layer"
    first, last = course.layers[0], course.layers[-1]
    values = results.by_key[key].value
    if first == last:
        return f"one layer, {first}"
    if results.info.is_control:
        return "a negative control, of which no direction is claimed"
    if not course.has_interval:
        return "without an interval no change is claimed"
    wanted = results.info.mix.wanted
    if is_too_short(results, key):
        return f"no step is claimed; the text needs about {wanted:,} words more"
    if not all(half.is_comparable for half in halves(results, key)):
        return "no step is claimed, since half of the text is too short for all its bands"
    if np.nanmax(values) - np.nanmin(values) < least(results, key):
        return f"flat over layers {first} to {last}"
    return f"no change over layers {first} to {last} that these data can show"


def _span(leg: Leg, course: Trend) -> str:
    """From where to where a change is claimed."""
    last = course.layers[-1]
    start = "" if leg.start in (course.layers[0], course.legs[0].end) else f"from layer {leg.start} "
    end = f"up to layer {leg.end}" if leg.end != last else f"up to the last layer, {last}"
    return f"{start}{end}{', on the whole' if leg.reverses else ''}"


def _values(results: Results, key: Key, layers: Sequence[int]) -> str:
    """The curve's values at the layers: "0.41, 0.29 at layers 0, 3"."""
    curve = results.by_key[key].value[list(layers)]
    numbers = ", ".join(number(value, curve) for value in curve.tolist())
    return f"{numbers} at layer{'s' * (len(layers) > 1)} {', '.join(map(str, layers))}"


def number(value: float, beside: np.ndarray) -> str:
    """The number with two decimals, or as many, up to four, as tell different numbers beside it apart."""
    finite = np.abs(beside[np.isfinite(beside)])
    digits = 1 if finite.max(initial=0) >= 10 else 2
    while digits < 4 and len(set(np.round(finite, digits))) < len(set(finite)):
        digits += 1
    return f"{value:,.{digits}f}"


def name_or_count(parts: Sequence[str], values: np.ndarray, noun: str, at: Sequence[int] | None = None) -> str:
    """The parts, or how many they are and the range of their values: "9 others (0.31 to 0.39)"; `at` are their places
    among the values (None: all)."""
    if len(parts) <= MOST_LISTED:
        return enumeration(parts)
    own = values if at is None else values[list(at)]
    low, high = (number(float(end), values) for end in (own.min(), own.max()))
    return f"{len(parts)} {noun} ({low} to {high})"


def enumeration(parts: Sequence[str]) -> str:
    """The parts as a sentence lists them: "a, b and c"."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
