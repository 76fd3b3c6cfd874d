"""The classes of words: by part of speech, by frequency, by number of the model's tokens."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from ctxexp import Corpus, Text
from ctxexp.errors import DataError, UnknownName
from ctxexp_measures.senses.attributes import Labels, tags_of_rows, tokens_of

By = Literal["pos", "frequency", "pieces"]
UNTAGGED = "untagged"
BANDS = (10, 30, 100, 300, 1000)  # first counts of the bands of frequency but the lowest
MOST = 3  # tokens; words of as many or more are one class
LEAST = 5  # words of a class

log = logging.getLogger("ctxexp")


def kinds(by: Sequence[By]) -> tuple[By, ...]:
    """The kinds of classes; raises UnknownName."""
    for kind in by:
        if kind not in get_args(By):
            raise UnknownName("by", str(kind), get_args(By))
    return tuple(by)


def require_tags(metric: str, by: Sequence[By], corpus: Corpus) -> None:
    """Raise DataError where parts of speech are asked of a corpus that has none."""
    if "pos" in by and "pos" not in corpus.tags:
        raise DataError(
            f"{metric}: corpus {corpus.name!r} has no parts of speech; choose dataset=semcor, or "
            f"metric.{metric}.by=[frequency,pieces]"
        )


def classes(text: Text, words: np.ndarray, rows: np.ndarray, by: Sequence[By]) -> dict[By, list[str]]:
    """The class of each kind that each word is in, as `pos NOUN`, by its number.

    Word words[i] stands in the store's row rows[i] (n,). `pos`: the tag that most of its rows have, the earlier one of
    two, `untagged` if most have none; `frequency`: how many rows it has, in bands; `pieces`: the model's tokens of it,
    the mean over its rows, rounded.
    """
    n = int(words.max(initial=-1)) + 1
    counts = np.bincount(words, minlength=n)
    names_by_kind: dict[By, list[str]] = {}
    for kind in by:
        if kind == "frequency":
            names = [band(count) for count in counts.tolist()]
        elif kind == "pieces":
            tokens = np.bincount(words, tokens_of(text)[rows, 1], minlength=n) / np.maximum(counts, 1)
            names = [f"{MOST}+" if mean >= MOST else str(mean) for mean in (tokens + 0.5).astype(int).tolist()]
        else:
            names = _commonest(words, tags_of_rows(text, "pos", rows), n)
        names_by_kind[kind] = [f"{kind} {name}" for name in names]
    return names_by_kind


def band(n: int) -> str:
    """The band of a word that occurs n times: `10-29`, `1000+`."""
    at = sum(n >= first for first in BANDS)
    if at == len(BANDS):
        return f"{BANDS[-1]}+"
    return f"{BANDS[at - 1]}-{BANDS[at] - 1}" if at else f"1-{BANDS[0] - 1}"


def warn_left_out(text: Text, metric: str, words: Mapping[str, int]) -> None:
    """Warn, once per run, of the classes that have too few words, and therefore no value, with their numbers of
    words."""
    key = f"ctxexp_measures.senses.left_out {metric}"
    if words and key not in text.derived:
        text.derived[key] = True
        named = ", ".join(f"{name} ({n})" for name, n in words.items())
        log.warning(f"{metric}: classes of fewer than {LEAST} words are left out: {named}")


def _commonest(words: np.ndarray, tags: Sequence[str], n: int) -> list[str]:
    """(n,) the commonest tag of each word, the earliest of equally common ones."""
    labels = Labels.of(tag or UNTAGGED for tag in tags)
    pairs, counts = np.unique(words * len(labels) + labels.codes, return_counts=True)
    word, tag = np.divmod(pairs, len(labels))
    order = np.lexsort([tag, -counts, word])
    first = order[np.flatnonzero(np.diff(word[order], prepend=-1))]
    names = [UNTAGGED] * n
    for i, code in zip(word[first].tolist(), tag[first].tolist(), strict=True):
        names[i] = str(labels.names[code])
    return names
