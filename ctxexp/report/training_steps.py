"""Runs of one model's checkpoints, in the order of their training steps."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ctxexp.models.transformer.checkpoints import training_of, training_step
from ctxexp.report.wording import LabelledResults, one_line, unique_labels

if TYPE_CHECKING:
    from ctxexp.results import Results


class RunAtStep(NamedTuple):
    """A run of a checkpoint, and the training step of that."""

    step: int
    label: str
    results: Results


def trainings(runs: Sequence[LabelledResults]) -> dict[str, list[RunAtStep]]:
    """The runs of each training that has several checkpoints among them, by its name, steps ascending.

    Runs that differ in more than the step are trainings of their own: text, control, transform, dtype.
    """
    by_training: dict[tuple[Hashable, ...], tuple[str, list[RunAtStep]]] = {}
    for label, results in unique_labels(runs):
        info, details = results.info, results.info.model.details
        source, revision = str(details.get("checkpoint", "")), str(details.get("revision_name", ""))
        step = training_step(revision or Path(source).name)
        if step is None:
            continue
        name, home = (source, source) if revision else (training_of(Path(source)), str(Path(source).parent))
        state = info.corpus.fingerprint, info.control, info.transform.name, info.model.dtype
        others = [part for part in (info.control, info.transform.name) if part != "none"]
        title = one_line(" ".join([Path(name).name, *others]))
        by_training.setdefault((home, *state), (title, []))[1].append(RunAtStep(step, label, results))
    titled = unique_labels([(title, at) for title, at in by_training.values() if len({run.step for run in at}) > 1])
    return {title: sorted(at, key=lambda run: run.step) for title, at in titled}


def equal_weights(runs: Sequence[RunAtStep]) -> list[str]:
    """A line for each two steps of a training whose checkpoints have the same weights, which no training makes."""
    first: dict[str, RunAtStep] = {}
    lines = []
    for run in runs:
        weights = str(run.results.info.model.details.get("weights_hash", run.label))
        other = first.setdefault(weights, run)
        if other.step != run.step:
            lines.append(f"{other.label} and {run.label} have the same weights: one of them isn't what it is called")
    return lines
