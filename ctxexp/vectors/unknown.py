"""Pieces that stand for anything a tokenizer doesn't know: a run says their share; nearly all of them are refused."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ctxexp.dataset import Sentence
from ctxexp.errors import EncodingError
from ctxexp.model import Encoder, reading

log = logging.getLogger("ctxexp")

MANY = 0.03  # share of unknown pieces from which a run warns
NEARLY_ALL = 0.9  # and from which there is nothing to measure


def count_unknown(encoder: Encoder, sentences: Sequence[Sentence]) -> tuple[int, int]:
    """How many pieces of the sentences are unknown to the encoder's tokenizer, and of how many; 0 of 0 where the
    encoder doesn't say. Raises EncodingError where nearly all are: words would share one vector."""
    with reading(encoder, "unknown"):
        unknown, pieces = map(int, encoder.unknown(sentences))
    if unknown > NEARLY_ALL * pieces:
        raise EncodingError(
            f"{unknown:,} of the text's {pieces:,} pieces are unknown to the tokenizer of {encoder.name!r}, so its "
            "vectors would say nothing of the words; is the text in a language and script of the model, and the "
            "tokenizer the model's own?"
        )
    return unknown, pieces


def warn_unknown(unknown: int, pieces: int, corpus: str) -> None:
    """A warning where many pieces are unknown."""
    if unknown > MANY * pieces:
        log.warning(
            f"corpus {corpus}: {unknown:,} of {pieces:,} pieces are unknown to the model's tokenizer "
            f"({unknown / pieces:.1%}): they all enter the model as one and the same"
        )
