"""Curves that others are read beside: negative controls, where there is no context to find, and those that Ethayarajh
(EMNLP 2019) released by layer (`published_curves`).

A number speaks of context only as far as it differs from the first: the input layer, which knows none; vectors that are
one a word; the same shape untrained; the same words shuffled. Those that need a run of their own are taken from the
other runs of a sweep, if these hold them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np

from ctxexp.errors import UnknownName
from ctxexp.maths.geometry import chance_corrected
from ctxexp.report.wording import LabelledResults, decimal
from ctxexp.results.results import mix_mark
from ctxexp.results.run_info import RANDOM_WORDS, UNTRAINED, ControlName
from ctxexp.results.values import Estimates, Key

if TYPE_CHECKING:
    from ctxexp.results import Results

GROUP_OF_WEIGHTS = ("mini", "published")  # whose models have an untrained twin by name
LABELS = {"untrained": "untrained twin", "vector_a_word": "a random vector a word"}
NO_CONTEXT = "Negative controls (no context, or no training)"
ONE_TRAINING_RUN = "Each model is one training run"
"""The note below every comparison of models, whose intervals know nothing of another training."""
VECTOR_A_WORD = {  # exact whatever the vectors are, where all of a word's are one
    ("self_similarity", "raw"): 1.0,
    ("contextuality", "raw"): 0.0,
    ("max_explainable_variance", "raw"): 1.0,
    ("sense_separation", "raw"): 0.0,
}
SOURCE = "Ethayarajh 2019, released per-layer data, github.com/kawine/contextual"
"""For a legend or caption."""
CAVEAT = "close to what the paper charts, not exact"
"""The author's own words about the released files, shortened."""
_CURVES = {  # our measure -> (raw column, baseline column)
    "self_similarity": ("self_similarity", "mean_cosine"),
    "intra_sentence_similarity": ("intra_sentence_similarity", "mean_cosine"),
    "max_explainable_variance_released": ("variance_explained", "variance_explained_random"),
}


class NegativeControl(NamedTuple):
    """A curve's values by layer under a control that has no context, and the control in words."""

    name: ControlName
    label: str
    estimates: Estimates  # without an interval where they are exact, or it isn't known


def negative_controls(results: Results, key: Key, others: Iterable[Results] = ()) -> list[NegativeControl]:
    """The controls that apply to a run's curve.

    Args:
        results: The run.
        key: One of its curves by layer.
        others: Further runs, among which `model=random_words`, the words alone, the untrained twin and the shuffled
            text are looked for.

    Returns:
        Layer 0 where it was measured, one vector per word where its value is exact or was measured, then the words
        alone, the twin and the shuffled text where these were.
    """
    info, estimates = results.info, results.by_key[key]
    n, exact = len(estimates.value), VECTOR_A_WORD.get((info.definition_name(key.measure), key.name))
    controls = list[NegativeControl]()
    if np.isfinite(estimates.value[0]):
        controls.append(NegativeControl("layer_0", "layer 0", _repeat_first(estimates, n)))
    if exact is not None and not key.task:
        level = Estimates(np.full(n, exact), *np.full((2, n), np.nan))
        controls.append(NegativeControl("vector_a_word", "one vector a word", level))
    for other in others:
        name, values = info.control_by(other.info), other.by_key.get(key)
        if name is None or values is None or (name == "vector_a_word" and exact is not None):
            continue
        if other.info.measure(key.measure).definition != info.measure(key.measure).definition:
            continue  # an option of the metric differs
        if name == "vector_a_word":
            values = _repeat_first(values, n)
        label = LABELS.get(name) or other.info.control.replace("_", " ")
        is_new = label not in {one.label for one in controls}
        if is_new and len(values.value) == n and np.isfinite(values.value).any():
            controls.append(NegativeControl(name, label, values))
    return sorted(controls, key=lambda one: get_args(ControlName).index(one.name))


def _repeat_first(estimates: Estimates, n: int) -> Estimates:
    """The first layer's values in each of n layers."""
    return Estimates(*(np.full(n, part[0]) for part in estimates))


def control_lines(
    runs: Sequence[LabelledResults], measures: Iterable[str] | None = None, *, most: int | None = None
) -> list[str]:
    """A line a main curve of these measures (None: all) and run, models beside each other: its last layer, and what
    each control gives there.

    Runs that are controls of others have none. `most`: the first so many, and a last one that counts the rest.
    """
    selection = None if measures is None else set(measures)
    by_curve: dict[Key, list[str]] = {}
    for label, results in runs:
        others = [other for _, other in runs if other is not results]
        for key in [] if results.info.is_control else results.main_keys:
            layers = results.finding(key).layers
            controls = negative_controls(results, key, others)
            if (selection is not None and key.measure not in selection) or not layers or not controls:
                continue
            value = decimal(results.by_key[key].value[layers[-1]], 3)
            beside = ", ".join(f"{one.label} {_at(one.estimates, layers[-1])}" for one in controls)
            mark = mix_mark(results, key.measure)
            who = f"{label} ({mark})" if mark else label
            by_curve.setdefault(key, []).append(f"{who}, {key}: layer {layers[-1]} {value}; {beside}")
    lines = [line for curve_lines in by_curve.values() for line in curve_lines]
    if most is not None and len(lines) > most:
        return [*lines[:most], f"and {len(lines) - most} more"]
    return lines


def _at(estimates: Estimates, layer: int) -> str:
    value, low, high = (decimal(part[layer], 3) for part in estimates)
    return f"{value} [{low}, {high}]" if np.isfinite(estimates.low[layer]) else value


def controls_of_run(results: Results) -> str:
    """The controls that a run has by itself, and what to add to its command for the others; empty for a control."""
    info = results.info
    keys = results.main_keys
    if info.is_control or not keys:
        return ""
    own = dict.fromkeys(one.label for key in keys for one in negative_controls(results, key))
    arguments = [f"model={info.model.name},{RANDOM_WORDS}" if info.model.name else f"model={RANDOM_WORDS}"]
    arguments += [f"weights={info.model.weights},{UNTRAINED}"] if info.model.weights in GROUP_OF_WEIGHTS else []
    arguments += ["control=none,alone,shuffled"] if info.control == "none" else []
    prefix = f"Of this run: {', '.join(own)}; " if own else ""
    return f"{prefix}further controls: its command with `-m {' '.join(arguments)}`, whose figures and report hold all"


def training_runs(runs: Sequence[LabelledResults], measures: Iterable[str] = ()) -> str:
    """The sentence on seeds below a comparison of models by these measures (none: by all); empty for one model, or
    where runs are means over seeds."""
    models = {(r.info.model.name, r.info.model.weights, r.info.model.encoder) for _, r in runs}
    models = {model for model in models if model[0] != RANDOM_WORDS}  # which nothing trained
    if len(models) < 2 or any(r.info.seeds for _, r in runs) or len({r.info.seed for _, r in runs}) > 1:
        return ""
    selection = set(measures)
    curves = [(key, estimates) for _, results in runs for key, estimates in results.by_key.items()]
    if not any(np.isfinite(e.low).any() for key, e in curves if not selection or key.measure in selection):
        return f"{ONE_TRAINING_RUN} with one seed"
    return (
        f"{ONE_TRAINING_RUN} with one seed: how far another run of the same recipe would lie is not in these intervals"
    )


def published_models() -> tuple[str, ...]:
    """The models with published curves: bert (base, cased), gpt2 (small), elmo (original)."""
    return tuple(dict.fromkeys(row["model"] for row in _released()))


def published_curves(model: str) -> dict[Key, np.ndarray]:
    """The published curves of bert, gpt2 or elmo by key, each (n_layers,) float64; NaN where not released.

    Keys: anisotropy/mean_cosine; raw, baseline, adjusted and share_of_room of self_similarity,
    intra_sentence_similarity and max_explainable_variance_released; raw and sd of word_norm. Adjusted is raw minus
    baseline, as in the paper: the mean cosine for both similarities, the random words' ratio for the explainable
    variance.

    Example:
        >>> published_curves("elmo")[Key("anisotropy", "mean_cosine")].round(3).tolist()
        [0.008, 0.157, 0.136]
    """
    rows = [row for row in _released() if row["model"] == model]
    if not rows:
        raise UnknownName("published curves", model, published_models())
    column = {
        name: np.array([float(row[name] or "nan") for row in rows], dtype=np.float64)
        for name in rows[0]
        if name not in ("model", "layer")
    }
    curves = {Key("anisotropy", "mean_cosine"): column["mean_cosine"]}
    for measure, (raw, baseline) in _CURVES.items():
        curves[Key(measure, "raw")] = column[raw]
        curves[Key(measure, "baseline")] = column[baseline].copy()
        curves[Key(measure, "adjusted")] = column[raw] - column[baseline]
        curves[Key(measure, "share_of_room")] = chance_corrected(column[raw] - column[baseline], column[baseline])
    curves[Key("word_norm", "raw")], curves[Key("word_norm", "sd")] = column["word_norm_mean"], column["word_norm_sd"]
    return curves


def _released() -> list[dict[str, str]]:
    with Path(__file__).with_name("ethayarajh_2019.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))
