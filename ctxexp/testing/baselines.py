"""Laws of baselines: rows are distinct, measured, and the same for the same seed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ctxexp.baseline import Baseline
from ctxexp.dataset import Corpus
from ctxexp.measuring.occurrences import Occurrences
from ctxexp.testing.report import Breach, Report, subject_label


def check_baseline(make: Callable[[], Baseline], *, name: str = "") -> Report:
    """The laws of `ctxexp.Baseline`; raises ConformanceError naming each that is broken."""
    report = Report(name or subject_label("baseline", make))
    large, small = _occurrences(1500), _occurrences(6)
    quiet = logging.getLogger("ctxexp")
    level = quiet.level
    quiet.setLevel(logging.ERROR)  # a small corpus is warned about, rightly
    try:
        with report.law("interface"):
            if not isinstance(baseline := make(), Baseline) or not isinstance(baseline.name, str) or not baseline.name:
                raise Breach("expected a ctxexp.Baseline with a name and groups(occurrences, rng)")
        if report.failures:
            return report.conclude()
        for what, occurrences in (("1,500 sentences", large), ("6 sentences", small)):
            with report.law(f"distinct, measured rows ({what})"):
                _rows(make, occurrences)
        with report.law("seeded"):
            _seeded(make, large)
    finally:
        quiet.setLevel(level)
    return report.conclude()


def _occurrences(n: int) -> Occurrences:
    rng = np.random.default_rng(n)
    words = [f"w{i}" for i in range(40)] + ["."] * 8
    lists = [[f"s{i}", *rng.choice(words, rng.integers(1, 12))] for i in range(n)]
    corpus = Corpus.of("of the kit", lists)
    return Occurrences.of(row_index(corpus), corpus, min_contexts=2, keep=str.isalnum)


def _draw(make: Callable[[], Baseline], occurrences: Occurrences, seed: int) -> list[np.ndarray]:
    return [np.asarray(rows) for rows in make().groups(occurrences, np.random.default_rng(seed))]


def _rows(make: Callable[[], Baseline], occurrences: Occurrences) -> None:
    groups, measured_rows = _draw(make, occurrences, 0), occurrences.by_sentence.rows
    if not groups:
        raise Breach("groups() yields nothing; the first group is the baseline, the others are redraws")
    for i, rows in enumerate(groups):
        if rows.ndim != 1 or not np.issubdtype(rows.dtype, np.integer) or len(rows) < 2:
            raise Breach(f"group {i} is {rows.dtype} of shape {rows.shape}; expected two or more row numbers")
        if len(np.unique(rows)) != len(rows):
            raise Breach(f"group {i} has a row twice: an occurrence would meet itself; draw without replacement")
        strange = rows[~np.isin(rows, measured_rows)]
        if len(strange):
            raise Breach(
                f"group {i} has row {strange[0]}, which isn't measured: take rows from occurrences.distinct, not from "
                "a range"
            )


def _seeded(make: Callable[[], Baseline], occurrences: Occurrences) -> None:
    first, again, other = (_draw(make, occurrences, seed) for seed in (0, 0, 1))
    if len(first) != len(again) or not all(map(np.array_equal, first, again)):
        raise Breach("the same generator gives other rows: draw from rng only")
    if all(map(np.array_equal, first, other)):
        raise Breach("another seed gives the same rows: draw from the rng that is passed")


@dataclass(frozen=True)
class MemoryRowIndex:
    """The unit of each row: `vocabulary[unit_codes[row]]`; the rows of sentence i lie from `offsets[i]` on."""

    vocabulary: list[str]
    unit_codes: np.ndarray
    offsets: np.ndarray
    stored_of: np.ndarray


def row_index(corpus: Corpus) -> MemoryRowIndex:
    """The index of a store with one row for each word of the corpus, in its order."""
    lists = [sentence.words for sentence in corpus.sentences]
    vocabulary = sorted({w for words in lists for w in words})
    code = {w: i for i, w in enumerate(vocabulary)}
    codes = np.array([code[w] for words in lists for w in words], np.int32)
    return MemoryRowIndex(vocabulary, codes, np.cumsum([0, *map(len, lists)]), np.arange(len(lists)))
