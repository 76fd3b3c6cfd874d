"""Making a pin: the reference vectors, and how far reruns of the same model lie from them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ctxexp import Encoder, Sentence
from ctxexp.command import Experiment, Progress, configured, typed_model
from ctxexp.errors import ConfigError
from ctxexp_compare.pins import facts
from ctxexp_compare.pins.encoding import BATCH, EncodedText, threads
from ctxexp_compare.pins.facts import tokenizer_digest, weight_digests, weight_precision
from ctxexp_compare.pins.pin import Pin
from ctxexp_compare.pins.sketch import column_count, most_layers, root_mean_square, row_moves, sketch
from ctxexp_compare.pins.text import choose_rows, own_text
from ctxexp_compare.space import Texts, evenly_spaced

DTYPES = ("float32", "bfloat16", "float16")
ROWS = 200
MAX_SENTENCES = 64  # of a text of the user's
FEWEST = 20  # rows: with fewer a change of one word may weigh as much as one of the model


class Rerun(NamedTuple):
    """A way to compute the same vectors; `threads` None: as many as torch takes."""

    batch: int = BATCH
    threads: int | None = None

    def __str__(self) -> str:
        return f"batches of {self.batch}" + (f", {self.threads} threads" if self.threads else "")


RERUNS = (Rerun(1), Rerun(8, 1), Rerun(64, 2))


def pin(
    model: str | Encoder,
    *,
    text: Texts | None = None,
    options: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    occurrences: int = ROWS,
    seed: int = 0,
    reruns: Sequence[Rerun] = RERUNS,
    progress: bool | Progress = False,
) -> Pin:
    """Pin a model: keep what it gives, and how much of a difference is noise.

    Args:
        model: A name that the command knows, or an encoder.
        text: Sentences, as in `ctxexp.measure`; None: ctxexp's own.
        options: Further arguments of the command line for the model.
        dtypes: Types, beside the model's own, whose rounding is to count as noise; of a model by name.
        occurrences: How many vectors are kept in each layer, about.
        seed: Of the random projections.
        reruns: Ways to compute the same that measure the noise.
        progress: Whether to show progress, or where.

    Returns:
        The pin, to be saved, or checked against.

    Raises:
        ConfigError: Too few or too many occurrences, an unknown dtype, or dtypes of an encoder in memory.

    Example:
        >>> from ctxexp import from_arrays
        >>> from ctxexp_compare import check, pin
        >>> words = [[f"w{i}" for i in range(30)]]
        >>> x = np.random.default_rng(0).normal(size=(2, 30, 8))
        >>> pinned = pin(from_arrays([x], words), occurrences=30)
        >>> check(pinned, from_arrays([x], words)).verdict
        'same'
        >>> x[1] = x[1] @ np.linalg.qr(x[0, :8])[0]  # turned
        >>> check(pinned, from_arrays([x], words)).sentence[:22], check(pinned, from_arrays([x], words)).cause[:7]
        ('moved at layer 1 by 1.', 'rotated')
    """
    if not FEWEST <= occurrences <= 1000:
        raise ConfigError(f"occurrences={occurrences}: expected {FEWEST} to 1,000")
    if wrong := [name for name in dtypes if name not in DTYPES]:
        raise ConfigError(f"dtypes={wrong[0]}: expected some of {', '.join(DTYPES)}")
    if dtypes and not isinstance(model, str):
        raise ConfigError("dtypes: an encoder in memory computes in its own dtype; name the model instead")
    name = ""
    if isinstance(model, str):
        name, own_options = typed_model(model)
        options = (*options, *own_options)
    experiment = Experiment(configured(name or model, None, options))
    encoder = experiment.encoder
    if text is None and encoder.corpus is None:
        words = experiment.config.words
        sentences: Sequence[Sentence] = own_text(encoder, words.tokenizer, lower=words.lower)
    else:
        sentences = _sentences(experiment if text is None else Experiment(configured(name or model, text, options)))
    view = encoder.sentence_encoder()
    reference = EncodedText(encoder, view, sentences)
    rows = choose_rows(_pieces(encoder, sentences, reference), list(reference.pooled), occurrences)
    layers = evenly_spaced(encoder.layer_numbers, most_layers(len(rows)))
    kept = [encoder.layer_numbers.index(number) for number in layers]
    k = column_count(len(layers), len(rows))
    first = sketch([one[kept] for one in reference.vectors(rows)], k, seed)
    noise: dict[str, np.ndarray] = {}
    weights: dict[str, dict[str, str]] = {}
    labels: list[str] = []
    kinds = [encoder.dtype, *(name for name in dict.fromkeys(dtypes) if name != encoder.dtype)]
    with Progress.of(progress).stage("reruns", len(kinds) * (len(reruns) + 1), "run") as stage:
        for dtype in kinds:
            is_first = dtype == encoder.dtype
            own = encoder if is_first else Experiment(configured(name, None, [*options, f"dtype={dtype}"])).encoder
            moves = [np.zeros(len(layers))]
            for run in (*(() if is_first else (Rerun(),)), *reruns):
                with threads(run.threads):
                    again = EncodedText(own, own.sentence_encoder(), sentences, batch=run.batch)
                now = sketch([one[kept] for one in again.vectors(rows)], k, seed)
                moves.append(root_mean_square(row_moves(first, now)))
                labels.append(f"{dtype}, {run}")
                stage.advance(1)
            noise[dtype], weights[dtype] = np.max(moves, axis=0), weight_digests(own)
    return Pin(
        title=experiment.title if name else encoder.title or "encoder",
        model=name,
        options=tuple(options),
        n_layers=encoder.n_layers,
        dim=encoder.dim,
        layers=tuple(layers),
        seed=seed,
        pooling=view.poolings[0] if view is not None else "",
        sentences=tuple(sentences),
        lengths=tuple(map(int, encoder.lengths(sentences))),
        rows=rows,
        sketch=first,
        noise=noise,
        reruns=tuple(labels),
        tokenizer=tokenizer_digest(encoder, sentences, reference.words),
        settings=facts.settings(encoder, view),
        environment=facts.environment(encoder),
        weights=weights,
        precision=weight_precision(encoder, weights[encoder.dtype]),
    )


def _sentences(experiment: Experiment) -> list[Sentence]:
    """Distinct sentences of a text, or of arrays, evenly spaced."""
    distinct = [one for one in dict.fromkeys(experiment.corpus.sentences) if len(one)]
    sentences = [distinct[i] for i in evenly_spaced(range(len(distinct)), MAX_SENTENCES)]
    if sum(map(len, sentences)) < FEWEST:
        raise ConfigError(f"text: expected {FEWEST} words or more in it, got {sum(map(len, sentences))}")
    return sentences


def _pieces(encoder: Encoder, sentences: Sequence[Sentence], text: EncodedText) -> list[np.ndarray]:
    """The number of pieces that are pooled in each unit of each sentence; 1 where the encoder has none."""
    spans = list(encoder.token_spans(sentences))
    return [
        span[:, 1] if len(span) == len(one.units) else np.ones(len(one.units), np.int64)
        for span, one in zip(spans, text.words, strict=True)
    ]


def default_file(title: str, kind: str = "pin") -> Path:
    """Where a model's pin or floor goes: NAME.pin, without what a file's name can't have."""
    name = "".join(c if c.isalnum() or c in "._-" else "-" for c in title.rpartition(os.sep)[2]) or "model"
    return Path(f"{name}.{kind}")
