"""A probe's task: labelled rows, their folds, and the same rows with labels that hold nothing but the word."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp import Corpus, Text
from ctxexp.datasets import read_table, text_lines, user_path
from ctxexp.errors import DataError, UnknownName
from ctxexp_measures.senses.attributes import tags_of_rows

SENSE = "sense"
LEXICON = (".tsv", ".txt", ".csv", ".jsonl", ".parquet", ".arrow")  # files of words and their labels
LABEL = "label"  # the tag of a text whose file has one label a word

log = logging.getLogger("ctxexp")


@dataclass(frozen=True)
class ProbeTask:
    """Labelled rows, (n,) each: the label, and whose classifier tells it.

    One classifier (`problem` all 0) tells the labels of all words, or each word has one of its own, as where labels are
    senses: then `problem` is the word. `control` (draws, n) are the labels of control tasks: one per spelling, drawn
    from the labels' distribution (Hewitt & Liang 2019); of senses, which are labels of one word each, the word's own
    labels in random order. `fold` keeps documents or sentences together, and so does `control_fold` (draws, n); each
    spreads its own labels alike, since what a classifier without knowledge gets right hangs on that. `word_fold` keeps
    words together (-1: each word has its own problem).
    """

    rows: np.ndarray  # ascending, of the store
    names: tuple[str, ...]
    label: np.ndarray
    control: np.ndarray
    problem: np.ndarray
    word: np.ndarray
    fold: np.ndarray
    control_fold: np.ndarray
    word_fold: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_one_problem(self) -> bool:
        """Whether one classifier tells all labels."""
        return not self.problem.any()


def require_labels(corpus: Corpus, labels: str) -> None:
    """Raise DataError unless the corpus has labels of that kind; a lexicon serves any corpus."""
    there = [*corpus.tags, *([SENSE] if corpus.senses else [])]
    if labels not in there and Path(labels).suffix not in LEXICON:
        hint = f"has {UnknownName('labels', labels, there)}" if there else "has no labels."
        raise DataError(
            f"metric probe reads labels={labels} of words, but corpus {corpus.name!r} {hint} Give labels=<a TSV of "
            "word and label>, or a data set with labels, such as dataset=polysemy, semcor (pos, sense), tagged (label)"
        )


def probe_task(text: Text, labels: str, *, folds: int, most: int | None, controls: int, seed: int) -> ProbeTask:
    """The task of a text's measured rows, with so many control tasks. Labels with fewer than two rows a fold are left
    out, with a warning; of more than `most` rows a random sample is kept. Raises DataError where fewer than two labels
    are left."""
    kind, rng = labels, np.random.default_rng(seed)
    rows = np.unique(text.occurrences.by_sentence.rows)
    spelling = np.asarray(text.store.vocabulary, object)[np.asarray(text.store.unit_codes)[rows]].tolist()
    words = np.array([word.casefold() for word in spelling], object)
    of_row = np.array(_labels(text, kind, rows, words), object)
    problem_of = words if kind == SENSE else np.full(len(rows), "", object)
    least = 2 if kind == SENSE else 2 * folds
    keep = _frequent(of_row, problem_of, least)
    if dropped := int((of_row != "").sum() - keep.sum()):
        log.warning(
            f"metric probe: {dropped:,} labelled words ({kind}) are left out: too few have their label, or it is the "
            "only one of their word"
        )
    usable = np.flatnonzero(keep)
    if len(np.unique(of_row[usable])) < 2:
        raise DataError(
            f"corpus {text.corpus.name!r} has fewer than two labels ({kind}) with {least} measured words each; "
            "measure more text"
        )
    if most is not None and len(usable) > most:
        usable = np.sort(rng.choice(usable, most, replace=False))
        usable = usable[_frequent(of_row[usable], problem_of[usable], 2)]
    names, label = np.unique(of_row[usable].astype(str), return_inverse=True)
    problem, word = (np.unique(of[usable].astype(str), return_inverse=True)[1] for of in (problem_of, words))
    lemma = np.array(tags_of_rows(text, "lemma", rows), object)
    groups = np.where(lemma == "", words, lemma)[usable].astype(str)
    cluster = text.occurrences.clusters.of_row[rows[usable]]
    task = ProbeTask(
        rows[usable], tuple(names), label, label[None], problem, word,
        folds_of(label, cluster, folds, seed), cluster[None],
        np.full(len(usable), -1) if kind == SENSE else folds_of(label, groups, folds, seed),
    )  # fmt: skip
    control = np.stack([control_labels(task, rng) for _ in range(controls)])
    return replace(task, control=control, control_fold=np.stack([folds_of(c, cluster, folds, seed) for c in control]))


def _labels(text: Text, kind: str, rows: np.ndarray, words: np.ndarray) -> list[str]:
    """A label for each of `rows`; "" for none."""
    if kind == SENSE:
        groups = text.occurrences.by_sense
        by_row = dict(zip(groups.rows.tolist(), chain.from_iterable(groups.labels), strict=True))
        return [by_row.get(row, "") for row in rows.tolist()]
    if Path(kind).suffix not in LEXICON:
        return tags_of_rows(text, kind, rows)
    if (text.positions[rows] < 0).any():
        raise DataError(f"labels={kind} are of words, but the units here are pieces")
    lexicon = read_lexicon(user_path(kind))
    return [lexicon.get(word, "") for word in words]


def read_lexicon(path: Path) -> dict[str, str]:
    """Labels of words, case aside, from lines of a word, a tab and its label, or a table's columns word and label.
    Raises DataError."""
    labels: dict[str, str] = {}
    rows: Iterable[tuple[str, Any]] = read_table(path, ["word", "label"])
    if path.suffix in (".tsv", ".txt"):
        rows = ((f"{path}, line {number}", line.split("\t")) for number, line in text_lines(path))
    for where, fields in rows:
        if len(fields) != 2 or not all(isinstance(field, str) and field.strip() for field in fields):
            raise DataError(f"{where}: expected a word, a tab and its label, got {list(fields)}")
        word, label = (field.strip() for field in fields)
        if labels.setdefault(word.casefold(), label) != label:
            raise DataError(f"{where}: {word!r} has the labels {labels[word.casefold()]!r} and {label!r}")
    return labels


def _frequent(label: np.ndarray, problem: np.ndarray, least: int) -> np.ndarray:
    """(n,) bool: rows whose label at least `least` rows of their problem have, in problems of two such labels."""
    counts = Counter(zip(problem, label, strict=True))
    frequent_pairs = {pair for pair, n in counts.items() if n >= least and pair[1] != ""}
    several = Counter(which for which, _ in frequent_pairs)
    return np.array([(p, y) in frequent_pairs and several[p] > 1 for p, y in zip(problem, label, strict=True)], bool)


def folds_of(label: np.ndarray, group: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """(n,) fold of each row, in [0, folds): rows of one group (n,) share it, each label's spread over all.

    Raises DataError where there are too few groups, or rows of any label.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    if (n := len(np.unique(group))) < folds or np.bincount(label).max() < folds:
        raise DataError(
            f"labels stand in {n} documents, sentences or words, the commonest {np.bincount(label).max()} times, which "
            f"{folds} folds can't part; lower metric.probe.folds"
        )
    fold = np.empty(len(label), np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of labels that are rarer than folds
        parts = StratifiedGroupKFold(folds, shuffle=True, random_state=seed % 2**32).split(label, label, group)
        for k, (_, test) in enumerate(parts):
            fold[test] = k
    return fold


def control_labels(task: ProbeTask, rng: np.random.Generator) -> np.ndarray:
    """(n,) labels of a control task."""
    if task.is_one_problem:
        of_word = rng.choice(task.label, int(task.word.max()) + 1)  # drawn by the labels' own distribution
        return of_word[task.word]
    shuffled = task.label.copy()
    for problem in np.unique(task.problem):
        mine = np.flatnonzero(task.problem == problem)
        shuffled[mine] = rng.permutation(task.label[mine])
    return shuffled
