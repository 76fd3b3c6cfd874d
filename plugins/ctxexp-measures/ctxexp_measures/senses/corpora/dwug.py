"""Usages of words in two periods, in the format of the diachronic word usage graphs (DWUG); NorDiaChange by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from ctxexp import Sense, Sentence
from ctxexp.datasets import read_table
from ctxexp.datasets import tokenizer as make_tokenizer
from ctxexp.errors import DataError
from ctxexp_measures.senses.corpora.public import PublicArchive
from ctxexp_measures.senses.corpora.usages import PERIOD, USAGE, WORD, TaggedText, Usages

Context = Literal["sentence", "whole"]
SOURCE = PublicArchive(
    "nor_dia_change", "https://github.com/ltgoslo/nor_dia_change/archive/refs/heads/main.zip",
    r"^[^/]+/(subset[12]/(?:data/.*/uses|clusters/opt/.*|stats/opt/stats_groupings)\.tsv)$",
    "f5d12f9ca4a2bf51ae0e893d21aab1d8d0476a6f0cf9ad0f4bb85dd1b36f8fb8",
)  # fmt: skip
COLUMNS = ("lemma", "grouping", "identifier", "context", "indexes_target_token", "indexes_target_sentence")


def dwug(
    *,
    path: str | None = None,
    subset: str = "subset1",
    context: Context = "sentence",
    tokenizer: str = "unicode",
    lower: bool = False,
) -> Usages:
    """Usages of words in two periods, with clusters as senses and graded change scores (DWUG; NorDiaChange has two
    subsets of 40 words).

    `path`: a folder with `data`, `clusters` and `stats` of any DWUG, or one that holds `subset`; null: NorDiaChange,
    downloaded once. `context` sentence: that of the usage, or the whole context if the usage isn't inside its
    sentence; whole: all that was shown to annotators. The usage is one word of its text, whatever the tokenizer says.
    Usages without a cluster (-1) have no sense.
    """
    folder = SOURCE.folder(path)
    folder = folder if (folder / "data").is_dir() else folder / subset
    files = sorted((folder / "data").glob("*/uses.*sv"))
    if not files:
        raise DataError(f"no data/<word>/uses.csv or .tsv in {folder}; dataset.path is a folder in the DWUG format")
    tokenize = make_tokenizer(tokenizer, lower=lower)
    read, senses, periods = TaggedText(), list[Sense](), dict[str, None]()
    for file in files:
        clusters = _rows(folder / "clusters" / "opt" / file.parent.name, ("identifier", "cluster"))
        cluster_of = {row["identifier"]: row["cluster"] for _, row in clusters}
        for source_line, row in _rows(file.with_suffix(""), COLUMNS):
            where = read.place(*_usage(source_line, row, tokenize, context))
            if where in read.marks[USAGE]:  # the same word in the same sentence counts once
                continue
            for kind, column in ((USAGE, "identifier"), (WORD, "lemma"), (PERIOD, "grouping")):
                read.marks[kind][where] = row[column]
            periods.setdefault(row["grouping"])
            if (cluster := cluster_of.get(row["identifier"], "-1")) != "-1":
                senses.append(Sense(*where, f"{row['lemma']}.{cluster}"))
    choices = {"tokenizer": tokenizer, "lower": str(lower).lower(), "context": context}
    change = _change(folder, periods)
    return Usages(folder.name, read.sentences, senses=tuple(senses), choices=choices, tags=read.tags, change=change)


def _usage(
    source_line: str, row: dict[str, str], tokenize: Callable[[str], Sentence], context: Context
) -> tuple[Sentence, int]:
    """The text of a usage, and the index of the usage among its words."""
    text = row["context"]
    (a, b), (start, end) = (_span(source_line, row[column], text) for column in COLUMNS[4:])
    if context == "whole" or not start <= a < b <= end:
        start, end = 0, len(text)
    before, usage, after = (tokenize(text[i:j]) for i, j in ((start, a), (a, b), (b, end)))
    spans = [*before.spans, (a - start, b - start), *((i + b - start, j + b - start) for i, j in after.spans)]
    whole = before.text + usage.text + after.text
    if len(whole) != end - start:
        raise DataError(f"{source_line}: lower-casing changes the text's length; use words.lower=false")
    return Sentence(whole, tuple(whole[i:j] for i, j in spans), tuple(spans)), len(before)


def _span(source_line: str, value: str, text: str) -> tuple[int, int]:
    """First character and the one after the last, as in `509:519`."""
    try:
        a, b = map(int, value.split(":"))
        if 0 <= a < b <= len(text) and text[a:b].strip():
            return a, b
    except ValueError:
        pass
    raise DataError(f"{source_line}: expected characters of the context, as in 12:17, got {value[:20]!r}")


def _rows(stem: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields (place, row by column) of STEM.csv or STEM.tsv: columns are parted by tabs, quotes are text."""
    path = _existing_file(stem)
    if path is None:
        raise DataError(f"no such file: {stem}.csv or .tsv; expected a folder in the DWUG format")
    for where, cells in read_table(path, columns, "text", ".tsv"):
        yield where, dict(zip(columns, cells, strict=True))


def _existing_file(stem: Path) -> Path | None:
    """The file as its publisher spells it: DWUG's are named .csv, NorDiaChange's .tsv."""
    files = (stem.with_name(stem.name + suffix) for suffix in (".csv", ".tsv"))
    return next((file for file in files if file.is_file()), None)


def _change(folder: Path, periods: dict[str, None]) -> dict[str, float]:
    """Each word's graded change between the two periods; empty where the folder has no such file."""
    path = folder / "stats" / "opt" / "stats_groupings"
    if _existing_file(path) is None:
        return {}
    if len(periods) != 2:
        raise DataError(f"{folder}: usages of the periods {', '.join(periods)}; expected two")
    return {row["lemma"]: float(row["change_graded"]) for _, row in _rows(path, ("lemma", "change_graded"))}
