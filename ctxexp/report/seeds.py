"""Runs that differ in their seed alone, as one: the mean over seeds with its spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ctxexp.report.wording import LabelledResults, seeds_suffix
from ctxexp.results import Results
from ctxexp.results.values import Estimates, Values


def average_seeds(runs: Sequence[LabelledResults]) -> list[LabelledResults]:
    """The runs; in the place of several that share every choice but the seed one stands, their mean.

    Its curves are means over seeds, and the ends of its intervals a standard deviation (ddof 1) below and above, NaN
    where one of the runs has no value. A curve that not all of them have is left out. Tables are those of the first
    seed. The spread is that of the seeds' choices alone: the text is the same, so that it is no confidence interval.
    """
    families: dict[str, list[LabelledResults]] = {}
    for number, (label, results) in enumerate(runs):
        families.setdefault(results.info.protocol or f"run {number}", []).append((label, results))
    runs_and_means: list[LabelledResults] = []
    for family in families.values():
        seeds = [results.info.seed for _, results in family]
        alone = len(family) == 1 or len(set(seeds)) < len(seeds)
        runs_and_means += family if alone else [_mean(family)]
    return runs_and_means


def _mean(family: Sequence[LabelledResults]) -> LabelledResults:
    """The labels without what tells the seeds apart, and the mean."""
    every = [results for _, results in family]
    first = every[0]
    label = min((_label_without_seed(label, results.info.seed) for label, results in family), key=len)
    values = Values()
    for key in first.by_key:
        curves = [results.by_key[key].value for results in every if key in results.by_key]
        if len(curves) == len(every) and len({len(curve) for curve in curves}) == 1:
            values.by_key[key] = _mean_and_sd(np.stack(curves))
    encoders = {results.info.model.encoder for results in every}
    model = first.info.model if len(encoders) == 1 else replace(first.info.model, encoder="")
    info = replace(first.info, model=model, seeds=tuple(results.info.seed for results in every))
    mean = Results.of(values, tables=first.tables, info=info)
    return label + seeds_suffix(mean), mean


def _mean_and_sd(curves: np.ndarray) -> Estimates:
    """Mean and standard deviation over the first axis of (seeds, n)."""
    mean, sd = curves.mean(axis=0), curves.std(axis=0, ddof=1)
    return Estimates(mean, mean - sd, mean + sd)


def _label_without_seed(label: str, seed: int) -> str:
    """The label that a sweep gave a job, without what tells it from its other seeds."""
    name, _, overrides = label.removesuffix(")").rpartition(" (") if label.endswith(")") else (label, "", "")
    others = [part for part in overrides.split(", ") if part not in ("", f"seed {seed}")]
    return f"{name} ({', '.join(others)})" if others else name
