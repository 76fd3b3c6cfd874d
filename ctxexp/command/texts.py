"""The text of `ctxexp.measure`: sentences in memory, a path, or a Corpus."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING

from ctxexp.dataset import Corpus, Sentence
from ctxexp.datasets.words import tokenizer
from ctxexp.errors import ConfigError, line
from ctxexp.files.paths import user_path
from ctxexp.model import Encoder

if TYPE_CHECKING:
    from ctxexp.command.options import WordOptions

MAX_YIELDED = 1_000_000  # sentences of a text that doesn't say how many it has

Text = str | Path | Corpus | Iterable[str | Sequence[str] | Sentence]


def check_text(text: object) -> None:
    """Raise ConfigError, with what to write, for a sentence in place of a list, and for another type."""
    if isinstance(text, str) and re.search(r"\s\w+\s|\n", text) and not user_path(text[:200]).exists():
        raise ConfigError(
            f"text: no file {line(text, 60)!r}; sentences are a list: ctxexp.measure(model, [{line(text, 40)!r}])"
        )
    if text is not None and not isinstance(text, str | Path | Corpus | Iterable):
        raise ConfigError(f"text: expected sentences, a file's path or a Corpus, got {type(text).__name__}")


def corpus_of(model: str | Encoder, text: Text | None, words: WordOptions) -> Corpus | None:
    """The text as a corpus; None where the config's data set is the text."""
    if text is None:
        return model.corpus if isinstance(model, Encoder) else None
    if isinstance(text, str | Path):
        return None
    if isinstance(text, Corpus):
        return text
    read = tokenizer(words.tokenizer, lower=words.lower)
    sentences: list[Sentence] = []
    unbounded = not isinstance(text, Sized)
    for number, one in enumerate(text):
        if unbounded and number == MAX_YIELDED:
            raise ConfigError(
                f"text: it yields more than {MAX_YIELDED:,} sentences, as a generator does that never ends; give a "
                'list, or a file\'s path, which is streamed with options=["words.max_contexts=256"]'
            )
        if isinstance(one, Sentence):
            sentences.append(one)
        elif isinstance(one, str):
            sentences.append(read(one))
        elif isinstance(one, Iterable):
            sentences.append(Sentence.of(one))
        else:
            raise ConfigError(
                f"text: expected sentences, each a string or a list of words, got {type(one).__name__} at {number}"
            )
    if not sentences:
        raise ConfigError("text: expected at least one sentence, got none")
    if not any(map(len, sentences)):  # before a model is loaded
        raise ConfigError(f"text: expected words, got none in {len(sentences):,} sentences")
    return Corpus("sentences", tuple(sentences), choices={"tokenizer": words.tokenizer})
