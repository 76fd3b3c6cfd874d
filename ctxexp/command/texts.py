"""The text of `ctxexp.measure`: sentences or a table in memory, a path, the name of a data set, or a Corpus."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from io import IOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp.dataset import Corpus, Sentence
from ctxexp.datasets.checks import tokenizer
from ctxexp.datasets.tables import choose_column, table_cells, text_of
from ctxexp.errors import ConfigError, line
from ctxexp.files.paths import user_path
from ctxexp.model import Encoder

if TYPE_CHECKING:
    from ctxexp.command.options import WordOptions

log = logging.getLogger("ctxexp")

MAX_YIELDED = 1_000_000  # sentences of a text that doesn't say how many it has

Text = str | Path | Corpus | Mapping[str, Any] | Iterable[str | Sequence[str] | Sentence | Mapping[str, Any]]


def check_text(text: object) -> None:
    """Raise ConfigError, with what to write, for a sentence in place of a list, and for another type."""
    if isinstance(text, str) and re.search(r"\s\w+\s|\n", text) and not user_path(text[:200]).exists():
        raise ConfigError(
            f"text: no file {line(text, 60)!r}; sentences are a list: ctxexp.measure(model, [{line(text, 40)!r}])"
        )
    hints = {IOBase: "; give its path", set: "; sorted(text) has an order", bytes: "; text.decode() is text"}
    hint = next((hint for kind, hint in hints.items() if isinstance(text, kind)), "")
    if hint or not isinstance(text, str | Path | Corpus | Iterable | None):
        raise ConfigError(f"text: expected sentences, a file's path or a Corpus, got {type(text).__name__}{hint}")


def corpus_of(model: str | Encoder, text: Text | None, words: WordOptions, column: str | None = None) -> Corpus | None:
    """The text as a corpus; None where the config's data set is the text. `column` holds the texts of a table, or of
    rows; None: `text`, else `sentence`."""
    if text is None:
        return model.corpus if isinstance(model, Encoder) else None
    if isinstance(text, str | Path):
        return None
    if isinstance(text, Corpus):
        return text
    read = tokenizer(words.tokenizer, lower=words.lower)
    sentences: list[Sentence] = []
    left_out = 0
    for number, one in enumerate(_cells(text, column)):
        if not isinstance(one, Sentence):
            one = text_of(one, f"text: row {number}")
        left_out += one is None
        if one is not None:
            sentences.append(read(one) if isinstance(one, str) else one)
    if left_out:
        log.warning("text: %s of %s rows have no text and are left out", f"{left_out:,}", f"{number + 1:,}")
    if sentences and all(len(one.text) < 200 and Path(one.text).is_file() for one in sentences):
        raise ConfigError(f"text: a list of files; give one, {sentences[0].text!r}, or the folder that they lie in")
    if not sentences and not left_out:
        raise ConfigError("text: expected at least one sentence, got none")
    if not any(map(len, sentences)):  # before a model is loaded
        raise ConfigError(f"text: expected words, got none in {len(sentences) + left_out:,} sentences")
    return Corpus("sentences", tuple(sentences), choices={"tokenizer": words.tokenizer})


def _cells(text: Any, column: str | None) -> Iterator[object]:
    """The cells of a table's column of texts, or the sentences, or the cells of rows."""
    if (cells := table_cells(text, column)) is not None:
        yield from cells
        return
    unbounded, name = not isinstance(text, Sized), ""
    for number, one in enumerate(text):
        if unbounded and number == MAX_YIELDED:
            raise ConfigError(
                f"text: it yields more than {MAX_YIELDED:,} sentences, as a generator does that never ends; give a "
                "list, or a file's path, which is streamed with options={'words.max_contexts': 256}"
            )
        if isinstance(one, Mapping):
            name = name or choose_column(one, column, "text")
            yield one.get(name)
        elif column is not None:
            raise ConfigError(f"text: column={column!r} is of a table; got {type(one).__name__} at {number}")
        elif isinstance(one, Iterable):
            yield one if isinstance(one, Sentence | str) else list(one)
        else:
            raise ConfigError(
                f"text: expected sentences, each a string or a list of words, got {type(one).__name__} at {number}"
            )
