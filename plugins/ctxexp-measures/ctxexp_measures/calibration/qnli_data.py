"""QNLI (GLUE): questions, each with a sentence that answers it or doesn't, from the file as it is distributed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ctxexp import Corpus, Pair, Sentence
from ctxexp.datasets import archive_members, fetch, read_table, user_path
from ctxexp.datasets import tokenizer as make_tokenizer
from ctxexp.errors import ConfigError, DataError

HEADER = ("question", "sentence", "label")
# GLUE's archive of 2018 and its digest, which public projects quote beside either address; not fetched by us so far.
URLS = ("https://dl.fbaipublicfiles.com/glue/data/QNLIv2.zip",)
SHA256 = "e634e78627a29adaecd4f955359b22bf5e70f2cbd93b493f2d624138a0c0e5f5"
GOLD = {"entailment": 1.0, "not_entailment": 0.0}


def qnli(
    *, path: str | None = None, limit: int | None = None, tokenizer: str = "english", lower: bool = False
) -> Corpus:
    """QNLI: pairs of question and sentence, gold 1 if the sentence holds the answer (entailment), else 0.

    `path` is GLUE's dev.tsv (or train.tsv; plain or .gz), with the columns index, question, sentence, label, or the
    folder that holds dev.tsv; quotes are text. Without one GLUE's archive is downloaded once and checked. `limit` takes
    the first pairs only. GLUE's test.tsv has no labels. Raises ConfigError, DataError naming file and line.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"dataset.limit={limit}: expected a positive number of pairs, or null for all")
    file = _file(user_path(path)) if path else fetch_qnli()
    tokenize = make_tokenizer(tokenizer, lower=lower)
    sentence_of: dict[str, Sentence] = {}
    sentences: list[Sentence] = []
    pairs: list[Pair] = []
    for where, cells in read_table(file, HEADER, "text", ".tsv"):
        question, sentence, label = (cell.strip() for cell in cells)
        if label not in GOLD:
            raise DataError(f"{where}: label {label!r}; expected entailment or not_entailment")
        if limit is not None and len(pairs) == limit:
            break
        pairs.append(Pair(len(sentences), len(sentences) + 1, GOLD[label], "QNLI"))
        for text in (question, sentence):
            if text not in sentence_of:
                sentence_of[text] = tokenize(text)
            sentences.append(sentence_of[text])
    if not pairs:
        raise DataError(f"{file} has no pair: expected a line for each after the header")
    choices = {"file": file.name, "limit": str(limit), "tokenizer": tokenizer, "lower": str(lower).lower()}
    return Corpus("qnli", tuple(sentences), tuple(pairs), choices=choices)


def fetch_qnli(urls: Sequence[str] = URLS, *, sha256: str = SHA256, cache: Path | None = None) -> Path:
    """QNLI's dev.tsv in the user's cache, downloaded first if need be; there whole or not at all.

    Raises DataError if the archive can't be had, or isn't the one that is expected.
    """

    def unpack(archive: bytes) -> dict[str, bytes]:
        digest = hashlib.sha256(archive).hexdigest()
        if digest != sha256:
            raise DataError(
                f"dataset qnli: the archive from {urls[0]} has the SHA-256 {digest[:16]}..., "
                f"expected {sha256[:16]}...; give the original dev.tsv with dataset.path=<folder>"
            )
        for name, data in archive_members(urls[0], archive):
            if PurePosixPath(name).name == "dev.tsv" and "__MACOSX" not in name:
                return {"dev.tsv": data}
        raise DataError(f"dataset qnli: the archive from {urls[0]} has no dev.tsv")

    return fetch("qnli", urls, unpack, cache) / "dev.tsv"


def _file(given: Path) -> Path:
    candidates = [given / "dev.tsv", given / "dev.tsv.gz"] if given.is_dir() else [given]
    for file in candidates:
        if file.is_file():
            return file
    missing = "dev.tsv or dev.tsv.gz in" if given.is_dir() else "such file or folder:"
    raise DataError(f"no {missing} {given} (dataset.path)")
