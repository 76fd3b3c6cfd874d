"""The texts of a data set's rows, as `datasets` streams them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import regex

from ctxexp.dataset import Corpus, Sentence, TextStream
from ctxexp.datasets.words import tokenizer as make_tokenizer
from ctxexp.errors import ConfigError, CtxexpError, DataError, error_text, short
from ctxexp.files.paths import user_path

if TYPE_CHECKING:
    from datasets import IterableDataset

Sentences = Literal["row", "line", "marks"]
LOADERS = {".parquet": "parquet", ".jsonl": "json", ".json": "json", ".arrow": "arrow", ".csv": "csv"}
_MARKS = regex.compile(r"(?<=[.!?…][\"'”’)\]]?)\s+(?=[\"'“‘(\[]?[\p{Lu}\p{N}])")


def huggingface(
    *,
    path: str | None = None,
    config: str | None = None,
    split: str = "train",
    column: str = "text",
    sentences: Sentences = "row",
    documents: str = "row",
    limit: int | None = None,
    revision: str | None = None,
    stream: bool = False,
    tokenizer: str = "english",
    lower: bool = False,
) -> Corpus | TextStream:
    """A data set of the hub, or a file or folder of Parquet, JSON lines, Arrow or CSV.

    `column` holds one text per row, or a list of words. `sentences`, how a text is cut: `row`: each row is a sentence;
    `line`: each of its lines; `marks`: at sentence-final punctuation (. ! ? and … with a closing quote or bracket,
    before white space and a capital or a digit). `documents`, the clusters that the bootstrap resamples: `row`: each
    row is one; the name of a column: consecutive rows with one value in it; `none`: the text has none. `limit` takes
    the first sentences only. `stream` reads the text whenever it is needed instead of holding it in memory; with a
    `limit` it is held. `tokenizer` is that of words, not the model's.
    """
    if not path:
        raise ConfigError("dataset=huggingface needs dataset.path=<a data set of the hub, or a file or folder>")
    if limit is not None and limit < 1:
        raise ConfigError(f"dataset.limit={limit}: expected a positive number of sentences, or null for all")
    if re.search(r"[\[%+]", split):
        raise ConfigError(
            f"dataset.split={short(split)}: a part of a split isn't read; expected a split's name, such as train "
            "(dataset.limit=5 takes its first sentences)"
        )
    if split != "train" and user_path(path).exists():
        raise ConfigError(
            f"dataset.split={short(split)}: the files of {path} have no splits, all of them are read; leave it out "
            "and name the split's own file or folder in dataset.path"
        )
    choices = {
        "path": path, "config": str(config), "split": split, "revision": str(revision), "column": column,
        "sentences": sentences, "documents": documents, "limit": str(limit), "tokenizer": tokenizer,
        "lower": str(lower).lower(),
    }  # fmt: skip
    rows = RowStream(path, config, split, revision, choices)
    if stream and limit is None:
        return rows
    corpus = rows.corpus(limit)
    if not corpus.sentences:
        raise DataError(f"{path}, split {split!r}, column {column!r}: no sentence")
    return corpus


class RowStream(TextStream):
    """Rows of a split, in parts: the data set's own shards (in most data sets a shard is a file)."""

    def __init__(
        self, path: str, config: str | None, split: str, revision: str | None, choices: Mapping[str, str]
    ) -> None:
        self.path, self.config, self.split, self.revision = path, config, split, revision
        self.name, self.choices = Path(path).name, choices
        self.tokenize("")  # a tokenizer that isn't there is refused before anything is read
        self.parts = range(self.rows().num_shards)

    @cached_property
    def tokenize(self) -> Callable[[str], Sentence]:
        return make_tokenizer(self.choices["tokenizer"], lower=self.choices["lower"] == "true")

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in vars(self).items() if key != "tokenize"}

    def rows(self) -> IterableDataset:
        """The split, streamed."""
        try:
            from datasets import load_dataset
        except ImportError as error:
            raise ConfigError(
                "dataset=huggingface needs the library datasets, which isn't installed: "
                "pip install 'ctxexp-scale[huggingface]'"
            ) from error

        place = user_path(self.path)
        try:
            if not place.exists():
                return load_dataset(self.path, self.config, split=self.split, revision=self.revision, streaming=True)
            files = _files(place)
            loader = LOADERS[_suffix(files[0])]
            return load_dataset(
                loader, data_files={self.split: list(map(str, files))}, split=self.split, streaming=True
            )
        except CtxexpError:
            raise
        except Exception as error:  # a library's, of a file or a network
            raise DataError(
                f"no data set {self.path!r} (split {self.split!r}, config {self.config!r}) is here or on the hub: "
                f"{error_text(error)}"
            ) from error

    def texts(self, part: object) -> Iterator[tuple[int | None, str | Sentence]]:
        assert isinstance(part, int)
        document_kind, cut = self.choices["documents"], _CUTS[self.choices["sentences"]]  # type: ignore[index]
        document, previous = -1, object()
        rows = self.rows().shard(num_shards=len(self.parts), index=part) if len(self.parts) > 1 else self.rows()
        for number, row in enumerate(rows):
            value = number if document_kind in ("row", "none") else self._cell(row, document_kind, number)
            if value != previous:
                document, previous = document + 1, value
            document_number = None if document_kind == "none" else document
            cell = self._cell(row, self.choices["column"], number)
            if isinstance(cell, list) and all(isinstance(word, str) for word in cell):
                if words := [word for word in cell if word.strip()]:
                    yield document_number, Sentence.of(words)
            elif isinstance(cell, str):
                yield from ((document_number, text) for one in cut(cell) if (text := one.strip()))
            elif cell is not None:
                raise DataError(
                    f"{self.path}, row {number}: column {self.choices['column']!r} holds {short(cell)}; expected a "
                    "text, or a list of words"
                )

    def _cell(self, row: Mapping[str, Any], column: str, number: int) -> Any:
        if column not in row:
            raise DataError(f"{self.path}, row {number}: no column {column!r}; it has {', '.join(map(str, row))}")
        return row[column]

    def sentence(self, text: str) -> Sentence:
        return self.tokenize(text)


_CUTS: dict[Sentences, Callable[[str], list[str]]] = {
    "row": lambda text: [" ".join(text.split("\n"))],
    "line": str.splitlines,
    "marks": lambda text: [one for line in text.splitlines() for one in _MARKS.split(line)],
}


def _suffix(file: Path) -> str:
    return Path(file.name.removesuffix(".gz").removesuffix(".zst")).suffix


def _files(place: Path) -> list[Path]:
    """The file itself, or the data files of a folder, by name; raises DataError unless they are of one kind."""
    every = [place] if place.is_file() else sorted(file for file in place.rglob("*") if file.is_file())
    data_files = [
        file for file in every if _suffix(file) in LOADERS and not file.name.startswith(("dataset_info", "state"))
    ]
    if not data_files or len({LOADERS[_suffix(file)] for file in data_files}) > 1:
        kinds = ", ".join(sorted({_suffix(file) for file in data_files})) or "none"
        raise DataError(f"{place}: expected files of one kind ({', '.join(LOADERS)}, or of these .gz), found {kinds}")
    return data_files
