"""Any text with a label a word: a line a word, columns parted by tabs, a blank line between sentences."""

from __future__ import annotations

import re
from pathlib import Path

from ctxexp.dataset import Corpus, Sentence
from ctxexp.errors import ConfigError, DataError
from ctxexp.files.paths import no_device, user_path
from ctxexp_senses.probe.task import LABEL

NONE = ("", "_")  # labels that mean none
SEVERAL = re.compile(r"\d+[-.]\d+\t")  # CoNLL-U's lines of several words, and of words that aren't there
DOCUMENT = ("# newdoc", "-DOCSTART-")


def tagged(*, path: str | None = None, word: int = 1, label: int = 2) -> Corpus:
    """A file of words and their labels: a line a word, columns parted by tabs, a blank line between sentences.

    `word` and `label` are the numbers of the columns, from 1 on: of CoNLL-U's 2 and 4 (UPOS). A label `_`, or none, is
    no label. Lines that begin with # and have no tab are left out; a document begins at `# newdoc` or `-DOCSTART-`.
    The text of a sentence is its words, a blank between. Raises DataError naming file and line.
    """
    if not path:
        raise ConfigError("dataset=tagged needs a file: add dataset.path=<a word, a tab and its label a line>")
    if word < 1 or label < 1:
        raise ConfigError(f"dataset.word={word}, dataset.label={label}: expected numbers of columns, from 1 on")
    sentences: list[list[tuple[str, str]]] = [[]]
    documents: list[int] = []
    document = 0
    for number, line in enumerate(_lines(user_path(path)), 1):
        if line.startswith(DOCUMENT):
            document += 1
        elif line.strip() and "\t" in line:
            if not SEVERAL.match(line):
                sentences[-1].append(_fields(line.split("\t"), word, label, f"{path}, line {number}"))
        elif line.strip() and not line.startswith("#"):
            raise DataError(f"{path}, line {number}: expected a word, a tab and its label, got {line[:60]!r}")
        elif not line.strip() and sentences[-1]:
            documents.append(document)
            sentences.append([])
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


def _lines(path: Path) -> list[str]:
    try:
        return no_device(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"no text in {path}: {error} (dataset.path)") from None
