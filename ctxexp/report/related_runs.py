"""Runs that belong together: those that differ in their seed alone, as their mean with its spread, and one model's
checkpoints, in the order of their training steps.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ctxexp.models.transformer.checkpoint import Checkpoint, training_of
from ctxexp.report.wording import LabelledResults, one_line, seeds_suffix, unique_labels
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
            mean, sd = np.mean(curves, axis=0), np.std(curves, axis=0, ddof=1)
            values.by_key[key] = Estimates(mean, mean - sd, mean + sd)
    encoders = {results.info.model.encoder for results in every}
    model = first.info.model if len(encoders) == 1 else replace(first.info.model, encoder="")
    info = replace(first.info, model=model, seeds=tuple(results.info.seed for results in every))
    results = Results.of(values, tables=first.tables, info=info)
    return label + seeds_suffix(results), results


def _label_without_seed(label: str, seed: int) -> str:
    """The label that a sweep gave a job, without what tells it from its other seeds."""
    name, _, overrides = label.removesuffix(")").rpartition(" (") if label.endswith(")") else (label, "", "")
    others = [part for part in overrides.split(", ") if part not in ("", f"seed {seed}")]
    return f"{name} ({', '.join(others)})" if others else name


class RunAtStep(NamedTuple):
    """A run of a checkpoint, and the training step of that."""

    step: int
    label: str
    results: Results


class Training(list[RunAtStep]):
    """The runs of one training's checkpoints, steps ascending.

    Example:
        >>> Training.of([("bert", Results())])  # no run says its step
        {}
    """

    @classmethod
    def of(cls, runs: Sequence[LabelledResults]) -> dict[str, Training]:
        """The runs of each training that has several checkpoints among them, by its name, steps ascending.

        Runs that differ in more than the step are trainings of their own: text, control, transform, dtype.
        """
        by_training: dict[tuple[Hashable, ...], tuple[str, list[RunAtStep]]] = {}
        for label, results in unique_labels(runs):
            info, details = results.info, results.info.model.details
            source, revision = str(details.get("checkpoint", "")), str(details.get("revision_name", ""))
            step = Checkpoint.training_step(revision or Path(source).name)
            if step is None:
                continue
            name, home = (source, source) if revision else (training_of(Path(source)), str(Path(source).parent))
            state = info.corpus.fingerprint, info.control, info.transform.name, info.model.dtype
            others = [part for part in (info.control, info.transform.name) if part != "none"]
            title = one_line(" ".join([Path(name).name, *others]))
            by_training.setdefault((home, *state), (title, []))[1].append(RunAtStep(step, label, results))
        titled = unique_labels([(title, at) for title, at in by_training.values() if len({run.step for run in at}) > 1])
        return {title: cls(sorted(at, key=lambda run: run.step)) for title, at in titled}

    def equal_weights(self) -> list[str]:
        """A line for each two steps whose checkpoints have the same weights, which no training makes."""
        first: dict[str, RunAtStep] = {}
        lines = []
        for run in self:
            weights = str(run.results.info.model.details.get("weights_hash", run.label))
            other = first.setdefault(weights, run)
            if other.step != run.step:
                lines.append(
                    f"{other.label} and {run.label} have the same weights: one of them isn't what it is called"
                )
        return lines
