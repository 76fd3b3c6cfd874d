"""The choice that was measured as a layer encoder, fitted on the text of its tasks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from ctxexp.command import Built, configured
from ctxexp_compare.layer_choice.choice import MEAN, NONE, LayerChoice
from ctxexp_compare.layer_choice.encoder import LayerEncoder
from ctxexp_compare.layer_choice.measured import Model, sentence_pooling
from ctxexp_compare.layer_choice.tasks import task_runs


def choice_encoder(
    choice: LayerChoice,
    model: Model,
    *,
    tasks: Sequence[str],
    data: Path | None = None,
    pooling: str = "",
) -> LayerEncoder:
    """The best layer and transform of a choice as an encoder.

    Args:
        choice: A choice from the scores of `measured_table`.
        model: The model that was measured.
        tasks, data, pooling: As for `measured_table`; a transform is fitted on all tasks' sentences together.

    Returns:
        The encoder, to be saved.
    """
    layer, transform = choice.best.layer, choice.best.transform
    assert layer != MEAN  # which is never chosen
    texts: dict[str, None] = {}
    if transform != NONE:
        for run in task_runs(tasks, data):
            corpus = Built(configured(model.encoder, None, run.options)).corpus
            texts |= dict.fromkeys(sentence.text for sentence in corpus.sentences)
    return LayerEncoder(
        shlex.join([model.name, *model.words]),
        layer,
        pooling=sentence_pooling(model.encoder, pooling),
        transform=transform,
        fit_on=list(texts),
    )
