"""Curves that others are read beside: negative controls, where there is no context to find, and those that Ethayarajh
(EMNLP 2019) released by layer (`published_curves`).

A number speaks of context only as far as it differs from the first: the input layer, which knows none; vectors that are
one a word; the same shape untrained; the same words shuffled. Those that need a run of their own are taken from the
other runs of a sweep, if these hold them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

from ctxexp.errors import UnknownName
from ctxexp.maths.geometry import chance_corrected
from ctxexp.report.wording import LabelledResults, decimal
from ctxexp.results.results import mix_mark
from ctxexp.results.run_info import RANDOM_WORDS, UNTRAINED, ControlName
from ctxexp.results.values import LAYER, Key

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


@dataclass(frozen=True, eq=False)
class NegativeControl:
    """A curve's values under a control that has no context.

    Args:
        name: The control.
        label: The same in words.
        values: By layer (n_layers,), in the curve's unit; NaN where not known.
        interval: Low and high ends of the 95% intervals, (n_layers,) each; None: exact, or not known.
    """

    name: ControlName
    label: str
    values: np.ndarray
    interval: tuple[np.ndarray, np.ndarray] | None = None


def negative_controls(results: Results, key: Key, others: Iterable[Results] = ()) -> list[NegativeControl]:
    """The controls that apply to a run's curve.

    Args:
        results: The run.
        key: One of its curves.
        others: Further runs, among which `model=random_words`, the words alone, the untrained twin and the shuffled
            text are looked for.

    Returns:
        Layer 0 where it was measured, one vector per word where its value is exact or was measured, then the words
        alone, the twin and the shuffled text where these were.
    """
    estimates = results.by_key[key]
    if key.place != LAYER:
        return []
    n, controls = len(estimates.value), []
    if np.isfinite(estimates.value[0]):
        value, low, high = (np.full(n, float(part[0])) for part in estimates)
        ends = (low, high) if np.isfinite(low).any() else None
        controls.append(NegativeControl("layer_0", "layer 0", value, ends))
    exact = VECTOR_A_WORD.get((results.info.definition_name(key.measure), key.name))
    if exact is not None and not key.task:
        controls.append(NegativeControl("vector_a_word", "one vector a word", np.full(n, exact)))
    for other in others:
        name = results.info.control_by(other.info)
        if name is None or key not in other.by_key or (name == "vector_a_word" and exact is not None):
            continue
        if other.info.measure(key.measure).definition != results.info.measure(key.measure).definition:
            continue  # an option of the metric differs
        curves = [np.full(n, part[0]) if name == "vector_a_word" else part for part in other.by_key[key]]
        label = LABELS.get(name) or other.info.control.replace("_", " ")
        value, low, high = curves
        if len(value) != n or not np.isfinite(value).any() or label in {one.label for one in controls}:
            continue
        controls.append(NegativeControl(name, label, value, (low, high) if np.isfinite(low).any() else None))
    return sorted(controls, key=lambda one: get_args(ControlName).index(one.name))


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
        if results.info.is_control:
            continue
        for key in results.main_keys:
            if selection is not None and key.measure not in selection:
                continue
            finite_layers = np.flatnonzero(np.isfinite(results.by_key[key].value))
            controls = negative_controls(results, key, [other for _, other in runs if other is not results])
            if not len(finite_layers) or not controls:
                continue
            last = int(finite_layers[-1])
            control_values = ", ".join(f"{one.label} {_at(one, last)}" for one in controls)
            mark = f" ({mark})" if (mark := mix_mark(results, key.measure)) else ""
            by_curve.setdefault(key, []).append(
                f"{label}{mark}, {key}: layer {last} {decimal(results.by_key[key].value[last], 3)}; {control_values}"
            )
    lines = [line for curve_lines in by_curve.values() for line in curve_lines]
    if most is not None and len(lines) > most:
        return [*lines[:most], f"and {len(lines) - most} more"]
    return lines


def _at(control: NegativeControl, layer: int) -> str:
    value = decimal(control.values[layer], 3)
    if control.interval is None or not np.isfinite(control.interval[0][layer]):
        return value
    low, high = (decimal(end[layer], 3) for end in control.interval)
    return f"{value} [{low}, {high}]"


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
