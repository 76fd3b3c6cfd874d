"""Pairs of texts of your own from a table: with a score, or queries with the documents that answer them."""

from __future__ import annotations

from pathlib import Path

from ctxexp import Corpus, Pair
from ctxexp.datasets import read_table, tokenizer
from ctxexp.errors import DataError

FIRST = ("text_a", "text1", "sentence1", "sentence_A", "sentence_a")
SECOND = ("text_b", "text2", "sentence2", "sentence_B", "sentence_b")
SCORE = ("score", "similarity", "label", "gold", "relatedness_score")
QUERY = ("query", "question")
DOCUMENT = ("document", "passage", "answer", "positive")


def own_corpus(file: Path, documents: Path | None = None) -> tuple[Corpus, bool]:
    """The pairs of a table, and whether they are queries with their documents.

    Columns of pairs are `text_a`, `text_b` and `score`; of queries `query` and `document`, a row for each document that
    answers it, whose score is 1. `documents` are further ones, a table with the column `document`, each a pair with
    itself whose score is 0. Other usual names of these columns are known.

    Raises DataError for a table without them, for empty texts, and for scores that aren't numbers.
    """
    row = next((row for _, row in read_table(file)), None)
    if row is None:
        raise DataError(f"{file}: no rows; expected pairs, or queries with their documents")
    asks = any(name in row for name in QUERY)
    if asks:
        rows = [(where, query, answer, 1) for where, (query, answer) in read_table(file, [QUERY, DOCUMENT])]
        others = [] if documents is None else read_table(documents, [(*DOCUMENT, "text", "sentence")])
        rows += [(where, text, text, 0) for where, (text,) in others]
    else:
        rows = [(where, *cells) for where, cells in read_table(file, [FIRST, SECOND, SCORE])]
    number: dict[str, int] = {}
    pairs = []
    for where, a, b, score in rows:
        if not all(isinstance(text, str) and text.strip() for text in (a, b)):
            raise DataError(f"{where}: a text is missing; leave the row out")
        try:
            gold = float(score)
        except (TypeError, ValueError):
            raise DataError(f"{where}: score {score!r} is not a number") from None
        first, second = (number.setdefault(text.strip(), len(number)) for text in (a, b))
        pairs.append(Pair(first, second, gold, file.stem))
    return Corpus(file.stem, tuple(map(tokenizer("english"), number)), tuple(pairs)), asks
