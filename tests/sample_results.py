"""Sample results and metadata of runs, made without a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ctxexp import Results
from ctxexp.command import job
from ctxexp.metrics import measure_info
from ctxexp.results import LAYER, RunInfo
from ctxexp.results.run_info import FitInfo, MeasureInfo, TableInfo
from ctxexp.results.values import Values, metric_key
from tests.shipped import Anisotropy, IntraSentenceSimilarity, MaxExplainableVariance, SelfSimilarity, WordNorm


def results_with(
    curves: Mapping[str, Any] | None = None,
    scalars: Mapping[str, float] | None = None,
    *,
    tables: Mapping[str, pd.DataFrame] | None = None,
    replicates: Mapping[str, np.ndarray] | None = None,
    info: RunInfo | None = None,
) -> Results:
    """Results with these curves by `measure/task/statistic` (ends of intervals by `..._ci_low`, `..._ci_high`), scalars
    by `measure.place/task/statistic`, and replicates of either."""
    values, found = Values(), {**(curves or {}), **(scalars or {})}
    by_subject = {}
    for name, value in found.items():
        subject, rest = _subject(name)
        by_subject.setdefault(subject, {})[rest] = value
    for (measure, place), statistics in by_subject.items():
        for rest, value in statistics.items():
            base = rest.removesuffix("_ci_low").removesuffix("_ci_high")
            if base == rest or base not in statistics:
                ends = {end: statistics.get(f"{rest}_ci_{end}") for end in ("low", "high")}
                values.set(metric_key(measure, rest, place), value, **ends)
    for name, drawn in (replicates or {}).items():
        (measure, place), rest = _subject(name)
        values.replicates[metric_key(measure, rest, place)] = drawn
    return Results.of(values, tables=tables, info=info or RunInfo())


def _subject(name: str) -> tuple[tuple[str, str], str]:
    measured, _, rest = name.partition("/")
    measure, _, place = measured.partition(".")
    return (measure, place or LAYER), rest


def run_info(base: RunInfo | None = None, /, **facts: Any) -> RunInfo:
    """A run's metadata, by short names: `run_info(title="bert", n_layers=5, corpus="sts", fit_on="nli")`; the rest as
    in `base`."""
    base = base or RunInfo()
    parts = {}
    for short, value in facts.items():
        part, name = _PLACES.get(short, ("", short))
        parts.setdefault(part, {})[name] = value
    own, fit = parts.pop("", {}), parts.pop("fit", None)
    if fit:
        parts.setdefault("transform", {})["fit"] = FitInfo(**fit)
    for name, kind in (("measures", MeasureInfo), ("tables", TableInfo)):
        stated = {k: one if isinstance(one, kind) else kind(**one) for k, one in own.get(name, {}).items()}
        own[name] = {**vars(base)[name], **stated}
    return replace(base, **own, **{part: replace(vars(base)[part], **values) for part, values in parts.items()})


_PLACES = {
    **{name: ("model", name) for name in ("name", "encoder", "weights", "dtype", "n_layers", "dim", "details")},
    "layers": ("model", "layers"),
    **{name: ("corpus", name) for name in ("fingerprint", "choices", "unknown", "pieces", "skipped", "skipped_share")},
    "min_contexts": ("corpus", "min_contexts"),
    **{f"n_{name}": ("corpus", name) for name in ("sentences", "occurrences", "words", "pairs")},
    **{"fit_on": ("fit", "text"), "transductive": ("fit", "transductive")},
    **{"transform_arguments": ("transform", "arguments"), "mixes": ("pooling", "mixes")},
    **{name: (name, "name") for name in ("corpus", "transform", "baseline", "pooling")},
    **{"baseline_size": ("baseline", "size"), "baseline_matched": ("baseline", "matched")},
    **{
        "resampled": ("resampled", "unit"),
        "n_resampled": ("resampled", "n"),
        "resampled_pairs": ("resampled", "pairs"),
    },
}


def measure_infos(*level: str, **metrics: Any) -> dict[str, MeasureInfo]:
    """The metadata of these metrics by label, their baselines found at this level."""
    return {label: measure_info(label, metric, *level) for label, metric in metrics.items()}


def with_info(results: Results, **facts: Any) -> Results:
    """The same results with this metadata of the run too."""
    return replace(results, info=run_info(results.info, **facts))


def with_value(results: Results, measure: str, statistic: str, layer: int, value: float) -> Results:
    """The same results with another value in one layer of a curve."""
    frame = results.frame.copy()
    at = (frame["measure"] == measure) & (frame["statistic"] == statistic) & (frame["layer"] == layer)
    frame.loc[at, "value"] = value
    return replace(results, frame=frame)


VARIANCE = "max_explainable_variance"
METRICS: dict[str, Any] = {
    "anisotropy": Anisotropy(),
    "self_similarity": SelfSimilarity(),
    "intra_sentence_similarity": IntraSentenceSimilarity(),
    VARIANCE: MaxExplainableVariance(),
    f"{VARIANCE}_released": MaxExplainableVariance(definition="released"),
    "word_norm": WordNorm(),
}


def results(model: str, n_layers: int, *, seed: int = 0, weights: str = "mini", **info: Any) -> Results:
    """Results of every measure, with values like a model's and intervals around them."""
    rng = np.random.default_rng(seed)
    baseline = np.sort(rng.uniform(0.1, 0.6, n_layers))
    curves = {"anisotropy/mean_cosine": baseline, "anisotropy/n": np.full(n_layers, 1000.0)}
    for edge, step in (("low", -0.02), ("high", 0.02)):
        curves[f"anisotropy/mean_cosine_ci_{edge}"] = baseline + step
    for measure in ("self_similarity", "intra_sentence_similarity", VARIANCE, f"{VARIANCE}_released"):
        raw = rng.uniform(0.3, 0.9, n_layers)
        curves |= {f"{measure}/raw": raw, f"{measure}/baseline": baseline, f"{measure}/adjusted": raw - baseline}
        for edge, step in (("low", -0.03), ("high", 0.03)):
            curves |= {f"{measure}/adjusted_ci_{edge}": raw - baseline + step, f"{measure}/raw_ci_{edge}": raw + step}
        curves |= {f"{measure}/n": np.full(n_layers, 812.0), f"{measure}/sd": np.full(n_layers, 0.1)}
    curves["word_norm/raw"] = rng.uniform(5, 300, n_layers)
    facts = {"title": model, "encoder": f"{model} of a test", "weights": weights, "n_layers": n_layers, "dim": 16}
    facts |= {"corpus": "polysemy", "baseline": "one_per_sentence", "baseline_size": 1000}
    return results_with(curves=curves, info=run_info(**{**facts, "measures": measure_infos(**METRICS), **info}))


def run_notes(results: Results) -> str:
    """The notes on a run, as `verbose=true` prints them."""
    return job.run_notes(results, with_answer=False)


def figure_text(figure: Any) -> str:
    import matplotlib.text

    return "\n".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))
