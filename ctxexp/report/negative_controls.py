"""What a measure gives where there is no context to find: the one place that figures, reports and cards ask.

A number speaks of context only as far as it differs from these: the input layer, which knows none; vectors that are one
a word; the same shape untrained; the same words shuffled. Those that need a run of their own are taken from the other
runs of a sweep, if these hold them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ctxexp.report.wording import Run, canonical, main_curves
from ctxexp.results import Results
from ctxexp.results.values import LAYER, Key

ControlName = Literal["layer_0", "vector_a_word", "untrained", "shuffled"]
UNTRAINED, SHUFFLED = "untrained", "shuffled"
VECTOR_A_WORD = {  # exact whatever the vectors are, where all of a word's are one
    ("self_similarity", "raw"): 1.0,
    ("self_similarity", "corrected"): 1.0,
    ("max_explainable_variance", "raw"): 1.0,
    ("sense_separation", "raw"): 0.0,
}


@dataclass(frozen=True, eq=False)
class NegativeControl:
    """What a curve would be without context.

    Args:
        name: Which control.
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
        others: Further runs, among which the untrained twin and the shuffled text are looked for.

    Returns:
        Layer 0 where it was measured, a vector a word where its value is exact, then the runs that were found.
    """
    held = results.held[key]
    if key.place != LAYER:
        return []
    n, found = len(held.value), []
    if np.isfinite(held.value[0]):
        value, low, high = (np.full(n, float(part[0])) for part in held)
        ends = (low, high) if np.isfinite(low).any() else None
        found.append(NegativeControl("layer_0", "layer 0", value, ends))
    exact = VECTOR_A_WORD.get((canonical(results, key.measure), key.statistic))
    if exact is not None and not key.task:
        found.append(NegativeControl("vector_a_word", "one vector a word", np.full(n, exact)))
    for other in others:
        name = _control_of(results, other)
        if name is None or key not in other.held or len(other.held[key].value) != n:
            continue
        value, low, high = other.held[key]
        label = "untrained twin" if name == "untrained" else other.info.control.replace("_", " ")
        ends = (low, high) if np.isfinite(low).any() else None
        found.append(NegativeControl(name, label, value, ends))
    return found


def _control_of(results: Results, other: Results) -> ControlName | None:
    """Which control of the run another one is: all but the weights, or the order of the words, is as there."""
    a, b = results.info, other.info
    same = (a.model.name, a.transform.name, a.transform.arguments, a.corpus.name, a.baseline) == (
        b.model.name, b.transform.name, b.transform.arguments, b.corpus.name, b.baseline
    )  # fmt: skip
    if not same or a.model.weights == UNTRAINED or a.control.startswith(SHUFFLED):
        return None
    if b.model.weights == UNTRAINED and b.control == a.control and b.corpus.fingerprint == a.corpus.fingerprint:
        return "untrained"
    same_weights = (a.model.weights, a.model.encoder) == (b.model.weights, b.model.encoder)
    return "shuffled" if same_weights and a.control == "none" and b.control.startswith(SHUFFLED) else None


def control_lines(runs: Sequence[Run], measures: Iterable[str] | None = None, *, most: int | None = None) -> list[str]:
    """A line a run and main curve of these measures (None: all): its last layer, and what each control gives there.

    Runs that are controls of others have none. `most`: the first so many, and a last one that counts the rest.
    """
    every = [results for _, results in runs]
    asked = None if measures is None else set(measures)
    lines = []
    for label, results in runs:
        if results.info.model.weights == UNTRAINED or results.info.control.startswith(SHUFFLED):
            continue
        for key in main_curves(results):
            if key.place != LAYER or (asked is not None and key.measure not in asked):
                continue
            known = np.flatnonzero(np.isfinite(results.held[key].value))
            controls = negative_controls(results, key, [other for other in every if other is not results])
            if not len(known) or not controls:
                continue
            last = int(known[-1])
            said = ", ".join(f"{one.label} {_at(one, last)}" for one in controls)
            lines.append(f"{label}, {key}: layer {last} {results.held[key].value[last]:.3f}; {said}")
    if most is not None and len(lines) > most:
        return [*lines[:most], f"and {len(lines) - most} more"]
    return lines


def _at(one: NegativeControl, layer: int) -> str:
    value = f"{one.values[layer]:.3f}"
    if one.interval is None or not np.isfinite(one.interval[0][layer]):
        return value
    return f"{value} [{one.interval[0][layer]:.3f}, {one.interval[1][layer]:.3f}]"


def training_runs(runs: Sequence[Run]) -> str:
    """What a comparison of models has to say of seeds; empty of one model, or where runs are means over seeds."""
    models = {(r.info.model.name, r.info.model.weights, r.info.model.encoder) for _, r in runs}
    if len(models) < 2 or any(r.info.seeds for _, r in runs) or len({r.info.seed for _, r in runs}) > 1:
        return ""
    return (
        "Each model is one training run with one seed: how far another run of the same recipe would lie is not in "
        "these intervals"
    )
