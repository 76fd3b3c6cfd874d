"""Scores of a model's layers, measured: each task at every layer and at their mean, after every transform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ctxexp import Encoder, Results, measure
from ctxexp.command import Progress, configured, typed_model
from ctxexp.errors import ConfigError, DataError, MetricError
from ctxexp.models import Checkpoint, TransformerOptions
from ctxexp_compare.layer_choice.choice import MEAN, NONE, Candidate, Place, ScoreTable
from ctxexp_compare.layer_choice.mean_layer import WithMeanLayer
from ctxexp_compare.layer_choice.tasks import TaskRun, task_runs


@dataclass(frozen=True)
class Model:
    """A model as the command line names it, name and words: its encoder, and that of its untrained twin."""

    name: str
    words: tuple[str, ...]
    encoder: Encoder
    twin: Encoder | None
    why_no_twin: str = ""


def load_model(model: str, options: Sequence[str], *, twin: bool, seed: int = 0) -> Model:
    """The model and, where it can be had, its untrained twin: the same network with weights drawn anew."""
    from ctxexp.command import Built

    name, own = typed_model(model)
    words = (*options, *own)
    config = configured(name, None, [*words, f"seed={seed}"])
    encoder = Built(config).encoder
    if not twin:
        return Model(name, words, encoder, None)
    if config.model.arguments.get("weights") == "untrained" or encoder.details.get("untrained") is True:
        return Model(name, words, encoder, None, "it is untrained itself")
    if "weights" in (config.model.signature() or {}):
        others = [word for word in words if not word.removeprefix("model.").startswith("weights=")]
        untrained = configured(name, None, [*others, f"seed={seed}", "weights=untrained"])
        return Model(name, words, encoder, Built(untrained).encoder)
    checkpoint, choices = getattr(encoder, "checkpoint", None), getattr(encoder, "options", None)
    if not isinstance(checkpoint, Checkpoint) or not isinstance(choices, TransformerOptions):
        return Model(name, words, encoder, None, f"model {name!r} has no weights to draw anew")
    from ctxexp.models import checkpoint_encoder

    return Model(name, words, encoder, checkpoint_encoder(checkpoint, choices, untrained=seed))


def sentence_pooling(encoder: Encoder, pooling: str) -> str:
    """The pooling of sentences: the one that is asked for, else `mean` where the model has it, else `mean_words`."""
    if pooling:
        return pooling
    view = encoder.sentence_encoder()
    return "mean" if view is not None and "mean" in view.poolings else "mean_words"


def measured_table(
    model: Model,
    tasks: Sequence[str],
    *,
    data: Path | None = None,
    transforms: Sequence[str] = (NONE,),
    pooling: str = "",
    options: Sequence[str] = (),
    seed: int = 0,
    bootstrap: int = 1000,
    progress: Progress | None = None,
) -> ScoreTable:
    """The table of a model's scores over the tasks.

    Args:
        model: The model, and its twin where it has one; the twin is measured without a transform.
        tasks: Names of tasks.
        data: The folder of the data, or one with a folder for each data set.
        transforms: Names of transforms; `none` is always among them. Each is fitted on the task's own text.
        pooling: Of sentences; empty: `mean` where the model has it.
        options: Further arguments of every run.
        seed: Of resamples.
        bootstrap: Resamples of each task's items.
        progress: Where progress shows.

    Returns:
        The table, with covariances over resamples of items.

    Raises:
        ConfigError: A pooling that has no vector in every layer, or fewer than 100 resamples.
        CtxexpError: Whatever a run raises.
    """
    if bootstrap < 100:
        raise ConfigError(f"bootstrap={bootstrap}: expected 100 or more, which say how sure each score is")
    pooling = sentence_pooling(model.encoder, pooling)
    if pooling == "pooler":
        raise ConfigError("pooling=pooler gives vectors in the last layer only, so there is no layer to choose")
    ways = [(name, model.encoder, False) for name in dict.fromkeys([NONE, *transforms])]
    ways += [(NONE, model.twin, True)] if model.twin else []
    numbers: list[Place] = [*model.encoder.layer_numbers, MEAN]
    candidates = tuple(Candidate(layer, name, twin) for name, _, twin in ways for layer in numbers)
    scores: dict[str, np.ndarray] = {}
    covariance: dict[str, np.ndarray] = {}
    notes: list[str] = []
    for run in task_runs(tasks, data):
        notes += [f"sentence vectors by pooling {pooling}"] if run.sentences else []
        common = [*run.options, *options, f"seed={seed}", f"bootstrap={bootstrap}", "figures.explorer=0"]
        common += [f"sentence.pooling={pooling}"] if run.sentences else []
        try:
            results = [
                measure(
                    WithMeanLayer(encoder), None, metrics=run.metrics, transform=name, options=common,
                    progress=Progress.of(progress),
                )
                for name, encoder, _ in ways
            ]  # fmt: skip
        except DataError as error:  # which names the key of a run's config
            raise DataError(str(error).replace("dataset.path", "data")) from error
        notes += run.notes
        for task in run.keys:
            scores[task], covariance[task] = _scores(run, task, results)
    order = [task for task in tasks if task in scores]
    if model.why_no_twin:
        notes.append(f"no untrained twin: {model.why_no_twin}")
    return ScoreTable(
        model.name,
        tuple(order),
        candidates,
        np.stack([scores[task] for task in order]),
        np.stack([covariance[task] for task in order]),
        tuple(dict.fromkeys(notes)),
    )


def _scores(run: TaskRun, task: str, results: Sequence[Results]) -> tuple[np.ndarray, np.ndarray]:
    """A task's scores (candidates,) in points, and their covariance over the same resamples of its items."""
    key = run.keys[task]
    values, replicates = [], []
    for one in results:
        found = one.replicates.get(key)
        if key not in one.by_key or found is None:
            raise MetricError(f"{task}: no score {key} with resamples in the run; it has {', '.join(one.measures())}")
        few = one.info.model.layers
        values.append(one.by_key[key].value[list(few) if few else slice(None)])
        replicates.append(found[list(few)] if few and len(found) > len(few) else found)
    scores, draws = np.concatenate(values) * run.points, np.concatenate(replicates).astype(np.float64) * run.points
    draws = draws[:, np.isfinite(draws).all(axis=0)] if np.isfinite(scores).all() else draws
    return scores, np.cov(draws)
