"""Any text with a label a word: a line a word, columns parted by tabs, a blank line between sentences."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from annotated_types import Ge

from ctxexp import Corpus, Sentence
from ctxexp.datasets import text_lines, user_path
from ctxexp.errors import DataError
from ctxexp_measures.senses.probe.task import LABEL

NONE = ("", "_")  # labels that mean none
CONLLU = 10  # columns
NO_WORD = re.compile(r"\d+[-.]\d+")  # CoNLL-U's lines of several words, and of words that aren't there
DOCUMENT = ("# newdoc", "-DOCSTART-")
Column = Annotated[int, Ge(1)]


def tagged(*, path: str, word: Column | None = None, label: Column | None = None) -> Corpus:
    """A file of words and their labels: a line a word, columns parted by tabs, a blank line between sentences.

    `word` and `label` are the numbers of the columns, from 1 on; None: 1 and 2, of a file named .conllu 2 and 4 (UPOS).
    Lines that begin with `# ` are comments, as are those that begin with # and have no tab. CoNLL-U, which a file named
    .conllu is and a line of ten columns whose first is neither, has comments in each line that begins with #, and no
    words in ranges (`1-2`) and empty nodes (`1.1`). A label `_`, or none, is no label. A document begins at `# newdoc`
    or `-DOCSTART-`. The text of a sentence is its words, a blank between. Raises DataError naming file and line.

    word: the column of words; null: 1, of .conllu 2
    label: that of labels; null: 2, of .conllu 4 (UPOS)
    """
    file = user_path(path)
    named_conllu = ".conllu" in [suffix.lower() for suffix in file.suffixes[-2:]]
    defaults = (2, 4) if named_conllu else (1, 2)
    word, label = (own if given is None else given for given, own in zip((word, label), defaults, strict=True))
    sentences: list[list[tuple[str, str]]] = [[]]
    documents: list[int] = []
    document = 0
    for number, line in text_lines(file):
        fields = line.split("\t")
        is_conllu = named_conllu or (1 not in (word, label) and len(fields) == CONLLU)
        if line.startswith(DOCUMENT):
            document += 1
        elif line.startswith("# ") or (line.startswith("#") and (is_conllu or len(fields) == 1)):
            continue
        elif not line.strip():
            if sentences[-1]:
                documents.append(document)
                sentences.append([])
        elif not (is_conllu and NO_WORD.fullmatch(fields[0])):
            sentences[-1].append(_fields(fields, word, label, f"{path}, line {number}"))
    documents.append(document)
    if not any(sentences):
        raise DataError(f"{path} has no word: expected a word, a tab and its label a line")
    rows = [row for row in sentences if row]
    return Corpus(
        Path(path).stem,
        tuple(Sentence.of(word for word, _ in row) for row in rows),
        choices={"word": str(word), "label": str(label)},
        documents=tuple(documents[: len(rows)]) if document > 1 else None,
        tags={LABEL: tuple(tuple(label for _, label in row) for row in rows)},
    )


def _fields(fields: list[str], word: int, label: int, where: str) -> tuple[str, str]:
    if max(word, label) > len(fields) or not (spelled := "_".join(fields[word - 1].split())):
        raise DataError(f"{where}: expected a word in column {word} and a label in column {label}, got {fields}")
    name = fields[label - 1].strip()
    return spelled, "" if name in NONE else name
