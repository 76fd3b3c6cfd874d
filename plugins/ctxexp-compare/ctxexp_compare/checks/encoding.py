"""What an encoder gives now, without the vector cache: that is the question."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ctxexp import CtxexpError, EncodedSentence, Encoder, Sentence
from ctxexp.datasets import tokenizer
from ctxexp.errors import DataError, EncodingError

BATCH = 32  # sentences at once, where nothing else is asked for
UNSPACED = "日本語のテキスト and 中文 and 한국어"  # one of the texts of a check, whose words need no library here


def encode(encoder: Encoder, sentences: Sequence[Sentence], *, batch: int = BATCH) -> list[EncodedSentence]:
    """Each sentence's vectors; those of like length go through the model together, at most `batch` at once. Raises
    EncodingError for what breaks the contract."""
    order, encoded = list(range(len(sentences))), dict[int, EncodedSentence]()
    with _without_warnings():
        if encoder.sequential:
            batch = len(sentences)
        else:
            lengths = encoder.lengths(sentences)
            order.sort(key=lambda i: lengths[i])
        for at in range(0, len(order), batch):
            numbers = order[at : at + batch]
            given = list(encoder.encode([sentences[i] for i in numbers]))
            if len(given) != len(numbers):
                raise EncodingError(f"encoder {encoder.name!r} gave {len(given)} results for {len(numbers)} sentences")
            for i, one in zip(numbers, given, strict=True):
                encoder.check_encoded(i, one)
                encoded[i] = one
    return [encoded[i] for i in range(len(sentences))]


def text_layers(encoder: Encoder, texts: Sequence[str], pooling: str = "", *, batch: int = BATCH) -> np.ndarray:
    """(layers, n, dim) of whole texts by a pooling, or the model's own way, which is the mean of its words for a model
    without sentence vectors. NaN for a text without such a vector."""
    view = encoder if encoder.poolings else encoder.sentence_encoder()
    if view is None:
        every = encode(encoder, word_sentences(encoder, texts), batch=batch)
        rows = [one.layers.mean(axis=1) if one.units else np.full(_shape(encoder), np.nan) for one in every]
    else:
        pooling = pooling or view.poolings[0]
        every = encode(view, [Sentence(text, (), ()) for text in texts], batch=batch)
        rows = [
            one.layers[:, one.units.index(pooling)] if pooling in one.units else np.full(_shape(view), np.nan)
            for one in every
        ]
    return np.stack(rows, axis=1).astype(np.float32)


def word_sentences(encoder: Encoder, texts: Sequence[str]) -> list[Sentence]:
    """The texts in words, as a model of one text has them."""
    known = {} if encoder.corpus is None else {one.text: one for one in encoder.corpus.sentences}
    read = {text: tokenizer("whitespace" if text == UNSPACED else "english") for text in texts if text not in known}
    return [known[text] if text in known else read[text](text) for text in texts]


def _shape(encoder: Encoder) -> tuple[int, int]:
    return len(encoder.layer_numbers), encoder.dim


@contextmanager
def light_errors() -> Iterator[None]:
    """What numpy alone runs raises ValueError and OSError, which commands say as their own."""
    try:
        yield
    except CtxexpError:
        raise
    except (ValueError, OSError) as error:
        raise DataError(str(error)) from None


def spare_processor() -> None:
    """Let torch's threads sleep while they wait for each other, where it isn't loaded yet and the environment says
    nothing: beside other work, threads that spin take twice the processor time of a check."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@contextmanager
def threads(n: int | None) -> Iterator[None]:
    """torch with so many threads, where it is loaded; None: as it is."""
    torch = sys.modules.get("torch")
    if n is None or torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Without the warning of a text that is cut: one is there to see where."""
    log = logging.getLogger("ctxexp")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
