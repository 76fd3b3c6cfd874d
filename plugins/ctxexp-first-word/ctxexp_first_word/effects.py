"""Pairs of runs that differ in the first word alone: each sentence's is measured, or encoded and left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctxexp.controls.no_first import NoFirst
from ctxexp.report import wording
from ctxexp.report.differences import Difference, difference
from ctxexp.report.wording import AVERAGE, Run
from ctxexp.results import Results
from ctxexp.results.run_info import RunInfo
from ctxexp.results.values import Key

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("intra_sentence_similarity", "sts")  # one panel each, in this order
_WITHOUT = NoFirst().words


class Effect(NamedTuple):
    """One model's curve of one measure with the first words and without."""

    metric: str
    model: str
    key: Key
    whole: Results
    without: Results
    moved: Difference  # without less with, and its interval, (n_layers,) each


def effects(runs: Sequence[Run]) -> list[Effect]:
    """The pairs among the runs, by measure, then in the order of the runs."""
    return [effect for metric in METRICS for _, whole in runs if (effect := _effect(metric, whole, runs))]


def frame(found: Sequence[Effect]) -> pd.DataFrame:
    """A row a measure, model and layer: both values, their difference and its 95% interval; and both values against a
    chance level of each group's own size, NaN for a measure without one."""
    import pandas as pd

    parts = []
    for effect in found:
        curves = {
            "with_first": effect.whole.held[effect.key].value,
            "without_first": effect.without.held[effect.key].value,
            "difference": effect.moved.value,
            "low": effect.moved.low,
            "high": effect.moved.high,
            "with_first_matched": _matched(effect.whole, effect.key),
            "without_first_matched": _matched(effect.without, effect.key),
        }
        layers = {"layer": np.arange(len(effect.moved.value))}
        about = {"measure": effect.metric, "model": effect.model, "corpus": effect.whole.info.corpus.name}
        parts.append(pd.DataFrame({**about, **layers, **curves}))
    return pd.concat(parts, ignore_index=True)


def _matched(results: Results, key: Key) -> np.ndarray:
    """The curve against random groups of each group's own size, (n_layers,): similarity falls with length."""
    held = results.held.get(key._replace(statistic=f"size_matched_{key.statistic}"))
    return np.full(len(results.held[key].value), np.nan) if held is None else held.value


def _effect(metric: str, whole: Results, runs: Sequence[Run]) -> Effect | None:
    label = next(
        (label for label, about in whole.info.measures.items() if wording.canonical(whole, label) == metric), ""
    )
    tasks = [task for measure, task in whole.subjects() if measure == label]
    key = wording.main(whole, label, AVERAGE if AVERAGE in tasks else "", wanted="adjusted") if tasks else None
    if whole.info.control != "none" or key is None:
        return None
    for _, other in runs:
        if other.info.control == _WITHOUT and _same(other.info) == _same(whole.info) and key in other.held:
            model = wording.one_line(whole.info.title or whole.info.model.name)
            return Effect(metric, model, key, whole, other, difference(other, whole, key))
    return None


def _same(info: RunInfo) -> tuple[object, ...]:
    """What both runs of a pair have in common."""
    return info.model.encoder, info.corpus.fingerprint, info.transform.name, info.pooling.name, info.seed
