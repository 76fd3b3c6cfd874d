"""The texts of the rows of a data set of the hub, as `datasets` streams them; files are those of `dataset=text`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge

from ctxexp import Corpus
from ctxexp.command import registry
from ctxexp.datasets import TextUnits, user_path
from ctxexp.errors import ConfigError, DataError, error_text

if TYPE_CHECKING:
    from datasets import IterableDataset


def huggingface(
    *,
    path: str | None = None,
    config: str | None = None,
    split: str = "train",
    column: str | None = None,
    sentences: Literal["row", "line", "marks"] = "row",
    documents: str = "row",
    limit: Annotated[int, Ge(1)] | None = None,
    revision: str | None = None,
    stream: bool = False,
    tokenizer: str = "english",
    lower: bool = False,
) -> Corpus | TextUnits:
    """A data set of the hub, or a file or folder of tables or texts.

    config: which of its configurations, such as 20231101.en
    column: of texts, or of lists of words; null: text, else sentence
    sentences: what is one: row, line (of a row's text), marks (cut after . ! ? before white space and a capital or
        digit)
    documents: where one ends, for intervals: row, none (unknown), or a column: rows that follow each other with one
        value
    limit: the first sentences only
    revision: of the hub's data set
    stream: true: read again whenever it is needed, and not held in memory; so it is with words.max_contexts
    tokenizer: that of words, not the model's
    """
    if not path:
        raise ConfigError("dataset=huggingface needs dataset.path=<a data set of the hub, or a file or folder>")
    if re.search(r"[\[%+]", split):
        raise ConfigError(
            f"dataset.split={split!r}: a part of a split isn't read; expected a split's name, such as train "
            "(dataset.limit=5 takes its first sentences)"
        )
    if (user_path(path) / split / "state.json").is_file():  # a folder of splits that `datasets` saved
        path, split = f"{path}/{split}", "train"
    if split != "train" and user_path(path).exists():
        raise ConfigError(
            f"dataset.split={split!r}: the files of {path} have no splits, all of them are read; leave it out "
            "and name the split's own file or folder in dataset.path"
        )
    if user_path(path).exists():
        return (
            registry()
            .find("dataset", "text")
            .factory(
                path=path, column=column, sentences=sentences, documents=documents, limit=limit, stream=stream,
                tokenizer=tokenizer, lower=lower,
            )
        )  # fmt: skip
    choices = {"column": str(column), "quotes": "None", "sentences": sentences, "documents": documents}
    choices = TextUnits.choices_of(choices, tokenizer, lower, limit)
    source = {"name": config, "split": split, "revision": revision}
    choices |= {"path": path, "config": str(config), "split": split, "revision": str(revision)}
    return RowStream(path, source, column, choices).read(limit, stream=stream)


class RowStream(TextUnits):
    """Rows of a split, in parts: the data set's own shards (in most data sets a shard is a file)."""

    def __init__(
        self, path: str, source: Mapping[str, str | None], column: str | None, choices: Mapping[str, str]
    ) -> None:
        super().__init__(Path(path).name, choices, column)
        self.path, self.split = path, source
        self.parts = range(self.rows().num_shards)

    def rows(self) -> IterableDataset:
        """The split, streamed."""
        try:
            from datasets import load_dataset
            from huggingface_hub import HfApi, constants
        except ImportError as error:
            raise ConfigError(
                "dataset=huggingface needs the library datasets, which isn't installed: pip install datasets"
            ) from error

        try:
            if not constants.HF_HUB_OFFLINE:
                HfApi().dataset_info(self.path, timeout=10)  # else half a minute of retries where no hub answers
            return load_dataset(self.path, **self.split, streaming=True)
        except Exception as error:  # a library's, of a file or a network
            raise DataError(
                f"no data set {self.path!r} ({dict(self.split)}) is here or on the hub: {error_text(error)}"
            ) from error

    def units(self, part: object) -> Iterator[tuple[object, str, object]]:
        assert isinstance(part, int)
        rows = self.rows()
        yield from self.table_units(rows.shard(len(self.parts), part) if len(self.parts) > 1 else rows)
