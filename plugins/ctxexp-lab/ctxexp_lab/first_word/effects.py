"""Runs that differ in the first position alone, each against the text as tokenized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctxexp import Results
from ctxexp.command import registry
from ctxexp.report import LabelledResults
from ctxexp.results import Estimates, Key, RunInfo

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("intra_sentence_similarity", "sts")  # a column of panels each, the first against two chance levels
AS_TOKENIZED, UNIT_NORM, NO_FIRST = "as tokenized", "unit norm", "without the first word"
AS_TOKENIZER = "as_tokenizer"  # the default of `model.prefix`


class Effect(NamedTuple):
    """One model's curve of one measure under one condition of the first position."""

    metric: str
    model: str
    condition: str
    key: Key
    base: Results  # as tokenized
    results: Results
    difference: Estimates  # results less base and its interval, (n_layers,) each


def effects(runs: Sequence[LabelledResults]) -> list[Effect]:
    """The conditions among the runs, by measure, then in the order of the runs; none for a model that has just one."""
    all_effects = []
    for metric in METRICS:
        bases = [results for _, results in runs if condition_of(results.info) == AS_TOKENIZED]
        for base in bases:
            own = [effect for _, results in runs if (effect := _effect(metric, base, results))]
            all_effects += own if len(own) > 1 else []
    return all_effects


def condition_of(info: RunInfo) -> str:
    """A run's condition of the first position; empty where it combines two, or has another."""
    prefix = str(info.model.details.get("prefix") or AS_TOKENIZER)
    is_unit = info.transform.arguments.get("name", info.transform.name) == "unit_norm"
    is_unit = is_unit and not info.transform.arguments.get("centred")
    choices = (prefix, info.control, "unit_norm" if is_unit else info.transform.name)
    if choices == (AS_TOKENIZER, "none", "none"):
        return AS_TOKENIZED
    if choices == (AS_TOKENIZER, "none", "unit_norm"):
        return UNIT_NORM
    if choices == (AS_TOKENIZER, registry().find("control", "no_first").factory().label, "none"):
        return NO_FIRST
    if choices[1:] == ("none", "none"):
        return f"{_PREFIXES.get(prefix, repr(prefix))} first"
    return ""


_PREFIXES = {"bos": "BOS", ".": "a dot", "none": "nothing"}


def frame(effects: Sequence[Effect]) -> pd.DataFrame:
    """A row a measure, model, condition and layer: the value, its difference from the text as tokenized with a 95%
    interval, and the value against a chance level of each group's own size (NaN for a measure without one)."""
    import pandas as pd

    parts = []
    for effect in effects:
        about = {
            "measure": effect.metric,
            "model": effect.model,
            "corpus": effect.results.info.corpus.name,
            "condition": effect.condition,
        }
        curves = {
            "layer": np.arange(len(effect.difference.value)),
            "value": effect.results.by_key[effect.key].value,
            "matched": size_matched_curve(effect.results, effect.key)[0],
            "difference": effect.difference.value,
            "low": effect.difference.low,
            "high": effect.difference.high,
        }
        parts.append(pd.DataFrame({**about, **curves}))
    return pd.concat(parts, ignore_index=True)


def size_matched_curve(results: Results, key: Key) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The curve against random groups of each group's own size and its interval, (n_layers,) each: chance falls with a
    sentence's length, and the paper's level is of a pair."""
    estimates = results.by_key.get(key._replace(baseline="size_matched"))
    nothing = np.full(len(results.by_key[key].value), np.nan)
    return (nothing, nothing, nothing) if estimates is None else (estimates.value, estimates.low, estimates.high)


def _effect(metric: str, base: Results, other: Results) -> Effect | None:
    condition = condition_of(other.info)
    key = _key(metric, base)
    if not condition or key is None or key not in other.by_key or _setup(other.info) != _setup(base.info):
        return None
    if metric == "sts" and condition == UNIT_NORM:
        return None  # it is the sentence's vector that has norm 1 then, which no cosine sees
    model = " ".join((base.info.title or base.info.model.name).split())
    return Effect(metric, model, condition, key, base, other, other.difference(base, key))


def _key(metric: str, results: Results) -> Key | None:
    """The curve that stands for the metric: above the paper's chance level where it has one."""
    label = next((label for label in results.info.measures if results.info.definition_name(label) == metric), "")
    above_chance = [Key(label, name) for name in ("share_of_room", "adjusted")]
    keys = [key for key in (*above_chance, *results.main_keys) if key.measure == label and key in results.by_key]
    return next((key for key in keys if key.task in ("avg", "")), None)


def _setup(info: RunInfo) -> tuple[object, ...]:
    """The model, text, pooling and seed that runs share which are compared."""
    model = info.model
    return (
        *(model.name, model.weights, model.details.get("checkpoint"), model.details.get("pooling"), model.dtype),
        *(model.n_layers, model.layers, info.corpus.fingerprint, info.pooling.name, info.seed),
    )
