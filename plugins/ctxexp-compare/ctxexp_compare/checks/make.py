"""Making a pin: the reference vectors, and how far reruns of the same model lie from them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ctxexp import Encoder
from ctxexp.command import Experiment, Progress, configured, typed_model
from ctxexp_compare.checks.encoding import text_layers, threads, word_sentences
from ctxexp_compare.checks.facts import facts_of
from ctxexp_compare.checks.text import own_texts
from ctxexp_compare.light.pin import Pin
from ctxexp_compare.light.vectors import root_mean_square, row_errors
from ctxexp_compare.space import Texts, evenly_spaced

MOST = 64  # of a text of the user's
RERUNS = ((1, None), (8, 1), (64, 2))  # batches and threads that give the same; None: as many as torch takes


def pin(
    model: str | Encoder, *, text: Texts | None = None, options: Sequence[str] = (), progress: bool | Progress = False
) -> Pin:
    """Pin a model: keep what it gives, and how much of a difference is noise.

    Args:
        model: A name that the command knows, or an encoder.
        text: Sentences, as in `ctxexp.measure`; None: ctxexp's own.
        options: Further arguments of the command line for the model.
        progress: Whether to show progress, or where.

    Returns:
        The pin, to be saved, or checked against.

    Example:
        >>> from ctxexp import from_arrays
        >>> from ctxexp_compare import check, pin
        >>> words = [[f"w{i}", f"v{i}"] for i in range(30)]
        >>> x = np.random.default_rng(0).normal(size=(30, 1, 2, 8))
        >>> pinned = pin(from_arrays(list(x), words))
        >>> check(pinned, from_arrays(list(x), words)).verdict
        'same'
        >>> turned = x @ np.linalg.qr(x[:4, 0].reshape(8, 8))[0]
        >>> check(pinned, from_arrays(list(turned), words)).cause
        'rotated'
    """
    name = ""
    if isinstance(model, str):
        name, own_options = typed_model(model)
        options = (*options, *own_options)
    experiment = Experiment(configured(name or model, text, options))
    encoder = experiment.encoder
    if text is None and encoder.corpus is None:
        texts = own_texts(encoder)
    else:
        distinct = list(dict.fromkeys(sentence.text for sentence in experiment.corpus.sentences))
        texts = [distinct[i] for i in evenly_spaced(range(len(distinct)), MOST)]
    vectors, noise = text_layers(encoder, texts)[-1], 0.0
    there = np.isfinite(vectors).all(axis=1)
    texts, vectors = [text for text, is_there in zip(texts, there, strict=True) if is_there], vectors[there]
    with Progress.of(progress).stage("reruns", len(RERUNS), "run") as stage:
        for batch, n in RERUNS:
            with threads(n):
                now = text_layers(encoder, texts, batch=batch)[-1]
            noise = max(noise, root_mean_square(row_errors(vectors, now)))
            stage.advance(1)
    view = encoder.sentence_encoder()
    return Pin(
        title=experiment.title if name else encoder.title or "encoder",
        model=name,
        options=tuple(options),
        pooling=view.poolings[0] if view is not None else "",
        has_length=has_length(encoder),
        texts=tuple(texts),
        lengths=tuple(int(n) for n in encoder.lengths(word_sentences(encoder, texts))),
        noise=noise,
        facts=facts_of(encoder, texts),
        vectors=vectors,
    )


def has_length(encoder: Encoder) -> bool:
    """Whether it is known how long a model's vectors are: of a network's pooled states its files would have to say if
    they are normalised, as those of sentence-transformers do."""
    view = encoder.sentence_encoder()
    return view is None or "modules" in view.details


def default_file(title: str, kind: str = "pin") -> Path:
    """Where a model's pin or floor goes: NAME.pin, without what a file's name can't have."""
    name = "".join(c if c.isalnum() or c in "._-" else "-" for c in title.rpartition(os.sep)[2]) or "model"
    return Path(f"{name}.{kind}")
