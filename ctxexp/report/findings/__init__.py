"""Findings: one sentence on each curve, made from its numbers, that claims a change only where the data show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report.differences import share_resamples
from ctxexp.report.findings.phrases import MOST_LISTED, enumeration, name_or_count, number
from ctxexp.report.findings.trend import Leg, Trend, certain_changes, certain_sign, layer_changes, trend
from ctxexp.report.negative_controls import is_control
from ctxexp.report.wording import (
    AVERAGE,
    LabelledResults,
    full_title,
    main_keys,
    measure_info,
    unique_labels,
    unit_label,
)
from ctxexp.results.values import LAYER, Estimates, Key

if TYPE_CHECKING:
    from ctxexp.results import Results

LEADING = "self_similarity"  # the measure that a run's one sentence is of, where it was measured
SHARE = " As a share of the room above chance, "
FEW = 3  # runs whose changes a chart says one by one


def findings(results: Results, label: str = "") -> list[str]:
    """A sentence on each measure's main curve, the leading one first; `label` names the run (its title)."""
    return [finding_of(results, key, label) for key in _keys(results)]


def finding(results: Results, label: str = "") -> str:
    """The sentence on the leading measure's main curve; empty where nothing was measured by layer."""
    return next((finding_of(results, key, label) for key in _keys(results)[:1]), "")


def change(results: Results, label: str = "") -> str:
    """The same without its numbers."""
    return next((change_of(results, key, label) for key in _keys(results)[:1]), "")


def finding_of(results: Results, key: Key, label: str = "") -> str:
    """The sentence on one curve by layer.

    With the curve's shape it says the values that it rests on, and at the layer of the largest change how much of the
    measure chance alone gives. A change is claimed where it is certain (`trend`), or the sentence says that none is.

    Args:
        results: The run.
        key: A curve of it.
        label: The run's name in the sentence; empty: its title.

    Returns:
        The sentence, with a full stop.
    """
    course, opening = _course(results, key), _opening(results, key, label)
    if not course.layers:
        return f"{opening}."
    first, last = course.layers[0], course.layers[-1]
    legs = course.legs
    layers = [legs[0].start, *(leg.end for leg in legs)] if legs else list(dict.fromkeys([first, last]))
    chance = _chance(results, key, legs[0].end if legs else last, len(course.layers))
    return f"{opening} ({_values(results, key, layers)}){chance}.{_share_doubt([(label, results)], key)}"


def change_of(results: Results, key: Key, label: str = "") -> str:
    """The same without its numbers: "In bert, words grow more context-specific up to layer 3."; of a measure that says
    nothing of its direction "Rogue dimensions in bert: a fall up to layer 3."."""
    return f"{_opening(results, key, label)}.{_share_doubt([(label, results)], key)}"


def _opening(results: Results, key: Key, label: str) -> str:
    """The certain changes of a curve, or why none is claimed, without a full stop."""
    course, info = _course(results, key), measure_info(results, key.measure)
    label = label or results.info.title or "this run"
    name = f"{full_title(key.measure, key.task, [results])} in {label}"
    if not course.legs:
        return f"{name}: {_no_change(course)}"
    words = {1: info.higher, -1: info.lower} if info.subject else {1: "a rise", -1: "a fall"}
    clauses = ", then ".join(f"{words[leg.sign]} {_span(leg, course)}" for leg in course.legs)
    if not info.subject:
        return f"{name}: {clauses}"
    which = ", ".join(filter(None, ["mean over tasks" if key.task == AVERAGE else key.task, info.variant]))
    return f"In {label}, {info.subject}{f' ({which})' if which else ''} grow {clauses}"


def _share_doubt(runs: Sequence[LabelledResults], key: Key) -> str:
    """A sentence on those changes of curves less chance that their share of the room above chance doesn't show.

    Where chance rises the difference falls by itself, since there is less room for it. Empty where both agree, and of
    curves without that share; labels name the runs of several.
    """
    share, agreements = key._replace(statistic="corrected"), []
    for label, results in runs:
        if key.statistic == "adjusted" and share in results.by_key:
            signs = layer_changes(results.by_key[share], results.replicates.get(share))
            where = f" in {label}" if len(runs) > 1 else ""
            for leg in _course(results, key).legs:
                agreements.append((f"{leg.start} to {leg.end}{where}", leg.sign * int(signs[leg.start, leg.end])))
    return _doubt("change", "from layer", agreements)


def _doubt(noun: str, preposition: str, agreements: Sequence[tuple[str, int]]) -> str:
    """The sentence on the changes or differences (`noun`) that have another sign (-1) or no certain one (0) by the
    share of the room above chance; empty where all have the same (1). The words of each stand behind the
    preposition, or how many they are."""
    verbs = (-1, "goes the other way", "go the other way"), (0, "is uncertain", "are uncertain")
    parts = []
    for agreement, one, several in verbs:
        if which := [words for words, each in agreements if each == agreement]:
            nouns, verb = (noun, one) if len(which) == 1 else (f"{noun}s", several)
            subjects = f"{len(which)} of them" if len(which) > MOST_LISTED else enumeration(which)
            parts.append(f"the {nouns} {preposition} {subjects} {verb}")
    return f"{SHARE}{'; '.join(parts)}." if parts else ""


def chart_finding(runs: Sequence[LabelledResults], key: Key) -> str:
    """The sentences on one curve of a chart of runs: of one run with its numbers, of up to three their changes, of
    more their order at the last layer."""
    runs = [(label, results) for label, results in unique_labels(runs) if key in results.by_key]
    if runs and not any(_course(results, key).has_interval for _, results in runs):
        title = full_title(key.measure, key.task, [results for _, results in runs])
        ranges = ", ".join(_range(results, key, label) for label, results in runs[:MOST_LISTED])
        return f"{title}: {ranges}; without intervals no change is claimed."
    if len(runs) == 1:
        return finding_of(runs[0][1], key, runs[0][0])
    if len(runs) > FEW:
        return comparison_finding(runs, key)
    sentences = " ".join(f"{_opening(results, key, label)}." for label, results in runs)
    return f"{sentences}{_share_doubt(runs, key)}"


def _range(results: Results, key: Key, label: str) -> str:
    """The curve's lowest and highest value: "1.9 to 244.1 in gpt2"."""
    values = results.by_key[key].value
    if not np.isfinite(values).any():
        return f"undefined in {label}"
    ends = np.array([np.nanmin(values), np.nanmax(values)])
    low, high = (number(end, ends) for end in ends.tolist())
    return f"{low} in {label}" if low == high else f"{low} to {high} in {label}"


def comparison_finding(runs: Sequence[LabelledResults], key: Key | None = None) -> str:
    """The sentence that lays runs side by side at their last layer, by one curve (None: the leading one that all have);
    runs that are controls of others are left out, and many are counted, not named. Empty for fewer than two."""
    labelled = [(label, r) for label, r in unique_labels(runs) if not is_control(r.info)]
    keys = [key] if key else _keys(labelled[0][1]) if labelled else []
    shared = [key for key in keys if all(key in r.by_key for _, r in labelled)]
    points = [(label, r, _last(r, shared[0])) for label, r in labelled] if shared else []
    points = [point for point in points if point[2] >= 0]
    if len(points) < 2:
        return ""
    key, every = shared[0], [results for _, results, _ in points]
    info = measure_info(every[0], key.measure)
    values, order = certain_order([(results, key, at) for _, results, at in points])
    lowest = int(np.argmin(values))
    parts = [f"{label} ({number(v, values)})" for (label, _, _), v in zip(points, values, strict=True)]
    above = [i for i in range(len(points)) if order[lowest, i] > 0]
    beside = [i for i in range(len(points)) if i not in (lowest, *above)]
    less_chance = ", less chance" if key.statistic == "adjusted" else ""
    measure_text = f"({full_title(key.measure, key.task, every)}{less_chance})"
    if not above:
        has_ci = all(_course(results, key).has_interval for results in every)
        why = "these data can't tell the models apart" if has_ci else "without intervals no order of models is claimed"
        return f"At the last measured layer {measure_text} {why}: {name_or_count(parts, values, 'runs')}."
    meaning = f"{info.subject} are {info.lower}" if info.subject else "values are lower"
    others = [name_or_count([parts[i] for i in at], values, "others", at) for at in (above, beside)]
    than, rest = others[0], f"; these data can't tell {others[1]} from it" if beside else ""
    doubt = _order_doubt(points, key, lowest, above)
    return f"At the last measured layer {measure_text} {meaning} in {parts[lowest]} than in {than}{rest}.{doubt}"


def _order_doubt(points: Sequence[tuple[str, Results, int]], key: Key, lowest: int, above: Sequence[int]) -> str:
    """A sentence on the models `above` the lowest that aren't certainly above it by their share of the room above
    chance, since spaces differ in that room; empty where all are."""
    share = key._replace(statistic="corrected")
    if key.statistic != "adjusted" or any(share not in results.by_key for _, results, _ in points):
        return ""
    _, order = certain_order([(results, share, at) for _, results, at in points])
    return _doubt("difference", "from", [(points[i][0], int(order[lowest, i])) for i in above])


def certain_order(points: Sequence[tuple[Results, Key, int]]) -> tuple[np.ndarray, np.ndarray]:
    """The values (n,) of curves at a layer each, and the signs (n, n) of their certain differences (`certain_changes`):
    by replicates where all are of the same resamples."""
    ends = np.array([[part[at] for part in results.by_key[key]] for results, key, at in points]).T
    if any(results.info.seeds for results, _, _ in points):
        ends[1:] = np.nan
    draws = [results.replicates[key][at] for results, key, at in points if key in results.replicates]
    is_paired = len({len(draw) for draw in draws}) == 1 and len(draws) == len(points)
    is_paired = is_paired and all(share_resamples(points[0][0], results) for results, _, _ in points)
    return ends[0], certain_changes(Estimates(*ends), np.stack(draws) if is_paired else None)


def sweep_finding(runs: Sequence[LabelledResults]) -> str:
    """The sentences on the leading measure that all runs have: their changes by layer, where they are few, and
    their order at the last."""
    every = [_keys(results) for _, results in runs]
    key = next((key for key in (every[0] if every else []) if all(key in keys for keys in every)), None)
    sentences = [chart_finding(runs, key), comparison_finding(runs, key)] if key else []
    return " ".join(dict.fromkeys(filter(None, sentences)))


def _keys(results: Results) -> list[Key]:
    """The main curves by layer, the leading measure's first."""
    return sorted((key for key in main_keys(results) if key.place == LAYER), key=lambda key: key.measure != LEADING)


def _last(results: Results, key: Key) -> int:
    """The last defined layer; -1: none."""
    return max(np.flatnonzero(np.isfinite(results.by_key[key].value)).tolist(), default=-1)


def _course(results: Results, key: Key) -> Trend:
    """The curve's course; the spread of a mean over seeds is no interval."""
    estimates = results.by_key[key]
    if results.info.seeds:
        none = np.full(len(estimates.value), np.nan)
        estimates = Estimates(estimates.value, none, none)
    return trend(estimates, results.replicates.get(key))


def _no_change(course: Trend) -> str:
    """Why no change is claimed."""
    if not course.layers:
        return "undefined in every layer"
    first, last = course.layers[0], course.layers[-1]
    if first == last:
        return f"one layer, {first}"
    if not course.has_interval:
        return "without an interval no change is claimed"
    return f"no change over layers {first} to {last} that these data can show"


def _span(leg: Leg, course: Trend) -> str:
    """From where to where a change is certain."""
    last = course.layers[-1]
    start = "" if leg.start in (course.layers[0], course.legs[0].end) else f"from layer {leg.start} "
    end = f"up to layer {leg.settled}" if leg.settled != last else f"up to the last layer, {last}"
    at_least = " at least" if leg.settled != leg.end else ""
    return f"{start}{end}{at_least}{', on the whole' if leg.reverses else ''}"


def _values(results: Results, key: Key, layers: Sequence[int]) -> str:
    """The curve's values at the layers: "0.41 above chance at layer 0, 0.29 at layer 3"."""
    curve = results.by_key[key].value[list(layers)]
    adjusted = key.statistic == "adjusted"
    texts, side = [], ""
    for layer, value in zip(layers, curve.tolist(), strict=True):
        now = ("above chance" if value >= 0 else "below chance") if adjusted else ""
        text = number(abs(value) if adjusted else value, curve)
        texts.append(f"{text}{f' {now}' if now != side else ''} at layer {layer}")
        side = now
    return ", ".join(texts)


def _chance(results: Results, key: Key, layer: int, n: int) -> str:
    """How much of the measure chance alone gives at a layer, which is one of n; empty where it has no chance level."""
    raw, level = (results.by_key.get(key._replace(statistic=name)) for name in ("raw", "baseline"))
    if key.statistic != "adjusted" or raw is None or level is None or not np.isfinite(level.value[layer]):
        return ""
    pair = np.array([raw.value[layer], level.value[layer]])
    value, chance = (number(each, pair) for each in pair.tolist())
    unit = unit_label([results], key.measure)
    y, low, high = (float(part[layer]) for part in results.by_key[key])
    has_ci = np.isfinite([low, high]).all() and not results.info.seeds
    sign = certain_sign(y, low, high, n) if has_ci else None
    at = f"; at layer {layer}"
    if sign == -1:
        return f"{at} the {unit} of {value} is below the {chance} that chance alone gives"
    if sign == 0:
        return f"{at} the {unit} of {value} can't be told from chance ({chance})"
    if sign == 1 and pair[1] > 0:
        return f"{at} the {unit} is {value}, of which chance alone gives {chance}"
    return f"{at} the {unit} is {value}, and chance alone gives {chance}"
