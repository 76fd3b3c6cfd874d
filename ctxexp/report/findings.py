"""Findings: one sentence on each curve, made from its numbers, that claims a change only where the data show it; and
what makes a run's contextuality shaky, a sentence each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report.changes import (
    claimed_legs,
    claimed_order,
    claimed_steps,
    interval_estimates,
    least,
    variant_range,
)
from ctxexp.report.wording import LabelledResults, full_title, group_count_phrase, mix_labels
from ctxexp.results.finding import RUN_NAME, Finding, Leg
from ctxexp.results.results import CONTEXTUALITY, LEADING, mix_mark, own_mix
from ctxexp.results.values import Key

if TYPE_CHECKING:
    from ctxexp.results import Results

FEW = 3  # runs whose changes a chart says one by one
MOST_LISTED = 6  # parts that a sentence names
LOUD, CARRIES = 0.2, 0.5  # of the variance, in one direction: that is said, and said first
BELOW_CHANCE = -0.05  # share of the room: a curve that lies lower than that isn't of words
APART = 0.03  # between the value and its cross-check
REPEATS = 0.01  # that near-duplicates of sentences move the value by


def finding_of(results: Results, key: Key) -> Finding:
    """The finding on one curve by layer: a change is claimed by the rule of `ctxexp.report.changes`, with the values
    that it rests on, or the sentence says why none is."""
    estimates = interval_estimates(results, key)
    layers = tuple(np.flatnonzero(np.isfinite(estimates.value)).tolist())
    has_interval = bool(np.isfinite(estimates.low[list(layers)]).any())
    claims = has_interval and not results.info.is_control
    legs = claimed_legs(estimates, claimed_steps(results, key)) if claims else ()
    text = _text(results, key, layers, legs, has_interval=has_interval)
    doubts = _doubts(results) if key.measure == CONTEXTUALITY else []
    if results.main_keys[:1] == [key]:
        text = "; ".join([text.removesuffix("."), *_artefacts(results)]) + "."
        doubts = [*filter(None, [basis(results, key)]), *doubts]
    name = {"measure": key.measure, "statistic": key.name, "task": key.task}
    return Finding(**name, layers=layers, has_interval=has_interval, legs=legs, text=text, doubts=tuple(doubts))


def _text(results: Results, key: Key, layers: tuple[int, ...], legs: Sequence[Leg], *, has_interval: bool) -> str:
    """The sentence on a curve, with a full stop."""
    info, name = results.info.measure(key.measure), scale_title(key, [results])
    if not layers:
        return f"{name} in {RUN_NAME}: undefined in every layer."
    if not legs:
        values = _values(results, key, sorted({layers[0], layers[-1]}))
        why = _no_change(results, key, layers, has_interval=has_interval)
        return f"{name} in {RUN_NAME}: {why} ({values})."
    clauses = ", then ".join(_clause(results, key, leg, legs, layers) for leg in legs)
    if not info.subject:
        return f"{name} in {RUN_NAME}: {clauses}."
    name = name[0].lower() + name[1:] if name[1:2].islower() else name
    return f"In {RUN_NAME}, {name} {clauses}."


def _clause(results: Results, key: Key, leg: Leg, legs: Sequence[Leg], layers: Sequence[int]) -> str:
    """A claimed change with its values: "grows from 0.02 at the input to 0.35 at the last layer, 4"; where it starts at
    neither the first layer nor a claimed turn, both ends alone."""
    has_subject = bool(results.info.measure(key.measure).subject)
    curve = results.by_key[key].value
    said = curve[[layer for each in legs for layer in (each.start, each.end)]]
    names = {layers[-1]: f"the last layer, {layers[-1]}", 0: "the input"}
    start, end = (f"{number(curve[i], said)} at {names.get(i, f'layer {i}')}" for i in (leg.start, leg.end))
    follows = legs.index(leg) > 0 and legs[0].end == leg.start
    if not follows and leg.start != layers[0]:
        return f"{'is ' * has_subject}{'higher' if leg.sign > 0 else 'lower'}, {end}, than {start}"
    verb = (("falls", "grows") if has_subject else ("a fall", "a rise"))[leg.sign > 0]
    return f"{verb} {'' if follows else f'from {start} '}to {end}{', on the whole' * leg.reverses}"


def scale_title(key: Key, runs: Sequence[Results]) -> str:
    """The title of a curve, with its statistic where that is a remainder above chance."""
    title = full_title(key.measure, key.task, runs)
    return f"{title} ({key.label()})" if key.statistic in ("share_of_room", "adjusted") else title


def basis(results: Results, key: Key) -> str:
    """What a curve rests on: how many uses, words and sentences, and whether these are taken as independent; empty
    where the run doesn't say."""
    corpus, drawn = results.info.corpus, results.info.resampled
    count = group_count_phrase(results, key.measure, key.task)
    if not count or not corpus.sentences:
        return ""
    over = results.info.measure(key.measure).over
    words = f" of {corpus.words:,} words" if over == "text" else ""
    text = f"It rests on {count}{words}" + f" in {corpus.sentences:,} sentences" * (over != "sentence")
    if drawn.unit == "sentence":
        knows_no_documents = corpus.choices.get("documents") == "none"
        text += ", which intervals take as independent"
        text += " (one running text? add dataset.documents=blank)" * knows_no_documents
    elif drawn.unit:
        text += f", of which intervals draw {drawn.clusters}"
    mix = own_mix(results, key.measure).phrase if mix_mark(results, key.measure) else ""
    return f"{'; '.join(filter(None, [text, mix]))}."


def _artefacts(results: Results) -> list[str]:
    """What is known to move curves without any context, a clause each, with what shows them without it."""
    curves, model = {key: estimates.value for key, estimates in results.by_key.items()}, results.info.model
    is_first = bool(model.causal and not (model.start and model.start.tokens))  # a first word sees itself alone
    without = "control=no_first leaves first words out" if is_first else "transform=all_but_the_top takes it off"
    clauses = []
    loud = curves.get(Key(CONTEXTUALITY, "loudest"), np.empty(0))
    if (at := np.flatnonzero(loud > CARRIES)).size:
        share = f"{loud[at].max():.0%} of the variance in {layer_ranges(at)}"
        clauses.append(f"one direction holds up to {share}: {without}")
    for key in results.main_keys:
        room = curves.get(key._replace(statistic="share_of_room"), np.empty(0))
        if (at := np.flatnonzero(room < BELOW_CHANCE)).size:
            title = full_title(key.measure, key.task, [results], variant=False)
            title = title[0].lower() + title[1:]
            sink = "" if clauses else f", as where few long vectors carry it: {without}"
            clauses.append(f"{title} lies below chance ({room[at].min():.2f}) in {layer_ranges(at)}{sink}")
    value, once = (curves.get(Key(CONTEXTUALITY, name)) for name in ("raw", "no_near_duplicates"))
    if value is not None and once is not None and abs(once[-1] - value[-1]) > REPEATS:
        clauses.append(f"the text repeats sentences: contextuality/no_near_duplicates ends at {once[-1]:.2f}")
    words = {str(word) for name in LEADING if name in results.tables for word in results.tables[name].get("word", ())}
    twice = sorted(word for word in words if word != word.casefold() in words)
    if twice and model.details.get("lower_cases"):
        clauses.append(
            f"the tokenizer lower-cases: {twice[0]!r} and {twice[0].casefold()!r} are one string to it, two words here "
            f"({len(twice)} such pairs), which words.fold_case=true joins"
        )
    return clauses


def layer_ranges(layers: np.ndarray) -> str:
    """Layers in words: "layers 2 to 9 and 12"."""
    stretches = np.split(layers, np.flatnonzero(np.diff(layers) > 1) + 1)
    parts = [f"{part[0]} to {part[-1]}" if len(part) > 1 else str(part[0]) for part in stretches]
    return f"layer{'s' * (len(layers) > 1)} {enumeration(parts)}"


def _doubts(results: Results) -> list[str]:
    """What makes the run's contextuality shaky, or undefined, a sentence each; empty where nothing does."""
    names = ("raw", "loudest", "all_places", "in_windows")
    curves = {name: results.by_key[key].value for name in names if (key := Key(CONTEXTUALITY, name)) in results.by_key}
    value = curves.get("raw", np.empty(0))
    if not np.isfinite(value).any():
        return [
            "Contextuality is undefined: it takes two uses of a word at like places of two documents (or sentences), "
            "between other words, and another word there. More text, or fewer min_contexts, gives it some."
        ] * len(value[:1])
    said = []
    other = {name: np.nan_to_num(curve) for name, curve in curves.items() if name != "raw"}
    if "loudest" in other and LOUD < (share := other["loudest"].max()) <= CARRIES:
        said.append(
            f"One direction holds {share:.0%} of the variance in layer {other['loudest'].argmax()} before it is scaled "
            "down: contextuality/no_cut is the value without that, metric=rogue_dimensions shows dimensions like it."
        )
    if "all_places" in curves and (apart := np.nan_to_num(np.abs(curves["all_places"] - value))).max() > APART:
        layer = int(apart.argmax())
        said.append(
            f"By uses at any two places it is {curves['all_places'][layer]:.2f} in layer {layer}, at like places "
            f"{value[layer]:.2f}: words and places act together, or pairs are few."
        )
    if "in_windows" in other and (share := other["in_windows"].max()) > 0:
        said.append(f"{share:.0%} of the uses stand in texts longer than the model's window, whose places begin anew.")
    return said


def chart_finding(runs: Sequence[LabelledResults], key: Key) -> str:
    """The sentences on one curve of a chart of runs: of up to three one each, of more their order at the last layer."""
    runs = [(label, results) for label, results in runs if key in results.by_key]
    if len(runs) > FEW:
        return comparison_finding(runs, key)
    return " ".join(results.finding(key).sentence(label) for label, results in runs)


def comparison_finding(runs: Sequence[LabelledResults], key: Key | None = None, *, named: bool = True) -> str:
    """The sentence that lays runs side by side at their last layer, by one curve (None: the leading one that all have),
    which is `named`, with its values, unless a table beside it does; empty for fewer than two."""
    labelled = [(label, r) for label, r in runs if not r.info.is_control]
    keys = [key] if key else [each for _, r in labelled[:1] for each in r.main_keys]
    key = next((key for key in keys if all(key in r.by_key for _, r in labelled)), None)
    if key is None:
        return ""
    layers = [r.finding(key).layers for _, r in labelled]
    points = [(label, r, at[-1]) for (label, r), at in zip(labelled, layers, strict=True) if at]
    if len(points) < 2:
        return ""
    every = [results for _, results, _ in points]
    info = every[0].info.measure(key.measure)
    values, order = claimed_order([(results, key, at) for _, results, at in points])
    lowest = int(np.argmin(values))
    labels = mix_labels(key.measure, [(label, results) for label, results, _ in points])
    parts = [f"{label} ({number(v, values)})" if named else label for label, v in zip(labels, values, strict=True)]
    above = [i for i in range(len(points)) if order[lowest, i] > 0]
    beside = [i for i in range(len(points)) if i not in (lowest, *above)]
    sentences = every[0].info.corpus.sentences
    text = f"In {sentences:,} sentences" if sentences else "On this text"
    if len({results.info.corpus.fingerprint for results in every}) > 1:
        text = "Each on its text"
    where = f"{text}, at the last layer{f' ({scale_title(key, every)})' if named else ''},"
    if not above:
        has_ci = all(results.finding(key).has_interval for results in every)
        why = "these data can't tell the models apart" if has_ci else "no order of models is claimed without intervals"
        return f"{where} {why}: {name_or_count(parts, values, 'runs')}."
    meaning = f"{info.subject} are {info.lower}" if info.subject else "values are lower"
    others = [name_or_count([parts[i] for i in at], values, "others", at) for at in (above, beside)]
    than, rest = others[0], f"; these data can't tell {others[1]} from it" if beside else ""
    return f"{where} {meaning} in {parts[lowest]} than in {than}{rest}."


def sweep_finding(runs: Sequence[LabelledResults]) -> str:
    """The sentences on the leading measure that all runs have: their changes by layer, where they are few, and
    their order at the last."""
    every = [results.main_keys for _, results in runs]
    key = next((key for key in (every[0] if every else []) if all(key in keys for keys in every)), None)
    sentences = [chart_finding(runs, key), comparison_finding(runs, key)] if key else []
    return " ".join(dict.fromkeys(filter(None, sentences)))


def _no_change(results: Results, key: Key, layers: Sequence[int], *, has_interval: bool) -> str:
    """Why no change is claimed."""
    first, last = layers[0], layers[-1]
    values = results.by_key[key].value
    if first == last:
        return f"one layer, {first}"
    if results.info.is_control:
        return "a negative control, of which no direction is claimed"
    if not has_interval:
        return "without an interval no change is claimed"
    if np.nanmax(values) - np.nanmin(values) < least(results, key):
        return f"flat over layers {first} to {last}"
    show = "and all variants show" if variant_range(results, key, last) else "can show"
    return f"no change over layers {first} to {last} that these data {show}"


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
    return f"{value:z,.{digits}f}"


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
