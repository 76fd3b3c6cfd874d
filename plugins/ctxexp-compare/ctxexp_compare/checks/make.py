"""Making a pin: the reference vectors, and how far reruns of the same model lie from them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ctxexp import EncodedSentence, Encoder, Sentence
from ctxexp.command import Experiment, Progress, configured, typed_model
from ctxexp.errors import ConfigError
from ctxexp_compare.checks import facts
from ctxexp_compare.checks.encoding import BATCH, encode, text_vectors, threads, word_rows
from ctxexp_compare.checks.text import choose_rows, own_text
from ctxexp_compare.light.pin import Pin
from ctxexp_compare.light.sketch import column_count, most_layers, row_moves, sketch
from ctxexp_compare.light.vectors import root_mean_square, row_errors
from ctxexp_compare.space import Texts, evenly_spaced

ROWS = 200
MAX_SENTENCES = 64  # of a text of the user's
FEWEST = 20  # rows: with fewer a change of one word may weigh as much as one of the model
VECTOR_BYTES = 70_000  # of vectors of whole texts


class Rerun(NamedTuple):
    """A way to compute the same vectors; `threads` None: as many as torch takes."""

    batch: int = BATCH
    threads: int | None = None


RERUNS = (Rerun(1), Rerun(8, 1), Rerun(64, 2))


def pin(
    model: str | Encoder,
    *,
    text: Texts | None = None,
    options: Sequence[str] = (),
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
        occurrences: How many words' vectors are kept in each layer, about.
        seed: Of the random projections.
        reruns: Ways to compute the same that measure the noise.
        progress: Whether to show progress, or where.

    Returns:
        The pin, to be saved, or checked against.

    Raises:
        ConfigError: Too few or too many occurrences.

    Example:
        >>> from ctxexp import from_arrays
        >>> from ctxexp_compare import check, pin
        >>> words = [[f"w{i}" for i in range(30)]]
        >>> x = np.random.default_rng(0).normal(size=(2, 30, 8))
        >>> pinned = pin(from_arrays([x], words), occurrences=30)
        >>> check(pinned, from_arrays([x], words)).verdict
        'same'
        >>> x[1] = x[1] @ np.linalg.qr(x[0, :8])[0]  # turned
        >>> check(pinned, from_arrays([x], words)).cause
        'rotated'
    """
    if not FEWEST <= occurrences <= 1000:
        raise ConfigError(f"occurrences={occurrences}: expected {FEWEST} to 1,000")
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
    return pin_sentences(
        encoder, sentences, title=experiment.title if name else encoder.title or "encoder", model=name,
        options=options, occurrences=occurrences, seed=seed, reruns=reruns, progress=progress,
    )  # fmt: skip


def pin_sentences(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    *,
    title: str,
    model: str = "",
    options: Sequence[str] = (),
    occurrences: int = ROWS,
    seed: int = 0,
    reruns: Sequence[Rerun] = RERUNS,
    progress: bool | Progress = False,
) -> Pin:
    """The pin of an encoder over sentences; `model` and `options` name it on the command line."""
    view = encoder.sentence_encoder()
    pooling = view.poolings[0] if view is not None else ""
    encoded = encode(encoder, sentences)
    rows = choose_rows(_pieces(encoder, sentences, encoded), occurrences)
    layers = evenly_spaced(encoder.layer_numbers, most_layers(len(rows)))
    kept = [encoder.layer_numbers.index(number) for number in layers]
    k = column_count(len(layers), len(rows))
    first = sketch(word_rows(encoded, rows)[kept], k, seed)
    lengths = list(encoder.lengths(sentences))
    numbers, vectors = np.empty(0, np.int64), np.empty((0, 0), np.float32)
    if view is not None:
        numbers = _texts_with_vectors(lengths, VECTOR_BYTES // (4 * view.dim))
        vectors = text_vectors(view, [sentences[i].text for i in numbers.tolist()], pooling)
        numbers, vectors = numbers[np.isfinite(vectors).all(axis=1)], vectors[np.isfinite(vectors).all(axis=1)]
    moves, sentence_noise = [np.zeros(len(layers))], 0.0
    with Progress.of(progress).stage("reruns", len(reruns), "run") as stage:
        for run in reruns:
            with threads(run.threads):
                again = sketch(word_rows(encode(encoder, sentences, batch=run.batch), rows)[kept], k, seed)
                moves.append(root_mean_square(row_moves(first, again)))
                if view is not None and len(numbers):
                    now = text_vectors(view, [sentences[i].text for i in numbers.tolist()], pooling, batch=run.batch)
                    sentence_noise = max(sentence_noise, float(root_mean_square(row_errors(vectors, now))))
            stage.advance(1)
    return Pin(
        title=title,
        model=model,
        options=tuple(options),
        n_layers=encoder.n_layers,
        dim=encoder.dim,
        dtype=encoder.dtype,
        layers=tuple(layers),
        seed=seed,
        pooling=pooling,
        has_length=has_length(view),
        texts=tuple(one.text for one in sentences),
        spans=tuple(one.spans for one in sentences),
        lengths=tuple(map(int, lengths)),
        rows=rows,
        sketch=first,
        noise=np.max(moves, axis=0),
        vectors=vectors,
        vector_texts=numbers,
        sentence_noise=sentence_noise,
        facts={
            "tokenizer": asdict(facts.tokenizer_digest(encoder, sentences, encoded)),
            "settings": facts.settings(encoder, view),
            "environment": facts.environment(encoder),
            "weights": facts.weight_digests(encoder),
        },
    )


def has_length(view: Encoder | None) -> bool:
    """Whether a model's files say if its sentence vectors are normalised, as those of sentence-transformers do."""
    return view is not None and "modules" in view.details


def _texts_with_vectors(lengths: Sequence[int], n: int) -> np.ndarray:
    """The numbers of n texts, the longest among them."""
    order = [int(np.argmax(lengths)), *(i for i in range(len(lengths)) if i != int(np.argmax(lengths)))]
    return np.sort(np.array(order[: max(n, 1)], np.int64))


def _sentences(experiment: Experiment) -> list[Sentence]:
    """Distinct sentences of a text, or of arrays, evenly spaced."""
    distinct = [one for one in dict.fromkeys(experiment.corpus.sentences) if len(one)]
    sentences = [distinct[i] for i in evenly_spaced(range(len(distinct)), MAX_SENTENCES)]
    if sum(map(len, sentences)) < FEWEST:
        raise ConfigError(f"text: expected {FEWEST} words or more in it, got {sum(map(len, sentences))}")
    return sentences


def _pieces(encoder: Encoder, sentences: Sequence[Sentence], encoded: Sequence[EncodedSentence]) -> list[np.ndarray]:
    """The number of pieces that are pooled in each unit of each sentence; 1 where the encoder has none."""
    spans = list(encoder.token_spans(sentences))
    return [
        span[:, 1] if len(span) == len(one.units) else np.ones(len(one.units), np.int64)
        for span, one in zip(spans, encoded, strict=True)
    ]


def default_file(title: str, kind: str = "pin") -> Path:
    """Where a model's pin or floor goes: NAME.pin, without what a file's name can't have."""
    name = "".join(c if c.isalnum() or c in "._-" else "-" for c in title.rpartition(os.sep)[2]) or "model"
    return Path(f"{name}.{kind}")
