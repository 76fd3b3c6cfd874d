"""Word sense disambiguation as the probe's task, among the senses of each word: folds, baselines and intervals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ctxexp import Corpus, Sentence
from ctxexp.errors import ConfigError, DataError

RESAMPLES = 10_000


@dataclass(frozen=True)
class SenseTask:
    """Labelled occurrences as rows (n): sentence, position, word, sense, and an id that equal sentences share."""

    sentences: tuple[Sentence, ...]  # one for each row, so repeated where a sentence has several labels
    positions: np.ndarray  # (n,) of the occurrence among its sentence's words
    vocabulary: tuple[str, ...]
    sense_labels: tuple[str, ...]
    word_ids: np.ndarray  # (n,) indices into vocabulary
    sense_ids: np.ndarray  # (n,) indices into sense_labels
    sentence_ids: np.ndarray  # (n,) equal where the sentences have the same words, case aside
    is_sense_of: np.ndarray  # (len(vocabulary), len(sense_labels)) bool: the senses of each word

    @classmethod
    def of(cls, corpus: Corpus) -> SenseTask:
        """The task of `corpus.senses`; a sense belongs to the word, in lower case, that it labels.

        Raises DataError if no word has two senses, if one label is on two words, and if a sense has a single sentence,
        which can't be in both training and test folds.
        """
        labelled = [(s, corpus.sentences[s.sentence].words[s.position].lower()) for s in corpus.senses]
        word_of: dict[str, str] = {}
        for sense, word in labelled:
            if word_of.setdefault(sense.label, word) != word:
                raise DataError(
                    f"{corpus.name}: sense {sense.label!r} labels {word_of[sense.label]!r} and {word!r}; "
                    "expected one word a sense"
                )
        number = Counter(word_of.values())
        ambiguous = [(s, word) for s, word in labelled if number[word] > 1]
        if not ambiguous:
            raise DataError(f"{corpus.name}: no word with two labelled senses; the probe needs dataset polysemy's kind")
        words = tuple(sorted({word for _, word in ambiguous}))
        senses = tuple(sorted({s.label for s, _ in ambiguous}))
        row_of_word, row_of_sense = ({name: i for i, name in enumerate(names)} for names in (words, senses))
        sentences = tuple(corpus.sentences[s.sentence] for s, _ in ambiguous)
        same: dict[tuple[str, ...], int] = {}
        group = [same.setdefault(tuple(w.lower() for w in s.words), len(same)) for s in sentences]
        contexts = Counter(label for label, _ in {(s.label, g) for (s, _), g in zip(ambiguous, group, strict=True)})
        rare = [label for label in senses if contexts[label] < 2]
        if rare:
            raise DataError(f"{corpus.name}: sense {rare[0]!r} has a single sentence; expected at least 2 a sense")
        is_sense_of = np.zeros((len(words), len(senses)), bool)
        for label in senses:
            is_sense_of[row_of_word[word_of[label]], row_of_sense[label]] = True
        return cls(
            sentences,
            np.array([s.position for s, _ in ambiguous]),
            words,
            senses,
            np.array([row_of_word[word] for _, word in ambiguous]),
            np.array([row_of_sense[s.label] for s, _ in ambiguous]),
            np.array(group),
            is_sense_of,
        )

    def __len__(self) -> int:
        return len(self.sentences)

    def chance(self) -> np.ndarray:
        """(n,) probability that a guess among the word's senses is right."""
        return np.asarray(1 / self.is_sense_of.sum(axis=1)[self.word_ids])

    def majority(self, fold: np.ndarray | None) -> np.ndarray:
        """(n,) probability that the word's most frequent sense is right; senses that tie share it.

        With `fold`, senses are counted in the other folds; with None, in all rows, the tested one included: an upper
        bound. In balanced data the cross-validated one is *below* chance, since a row that is held out leaves its own
        sense rarer in what remains.
        """
        share = np.empty(len(self))
        for k in [None] if fold is None else list(np.unique(fold)):
            test = np.ones(len(self), bool) if k is None or fold is None else fold == k
            train = test if k is None else ~test
            counts = np.where(
                self.is_sense_of, np.bincount(self.sense_ids[train], minlength=len(self.sense_labels)), -1
            )
            top = counts == counts.max(axis=1, keepdims=True)  # (n_words, n_senses)
            share[test] = (top / top.sum(axis=1, keepdims=True))[self.word_ids[test], self.sense_ids[test]]
        return share


def folds_of(task: SenseTask, folds: int, seed: int) -> np.ndarray:
    """(n,) fold of each row, in [0, folds): equal sentences share one, a sense's sentences spread over all.

    Sentences come in random order; each goes where its senses are rarest, and among equals where the fewest rows are.
    """
    groups = np.unique(task.sentence_ids)
    if not 2 <= folds <= len(groups):
        raise ConfigError(f"folds={folds}: expected 2 to {len(groups)}, the number of different sentences")
    rng = np.random.default_rng(seed)
    fold = np.full(len(task), -1)
    counts = np.zeros((folds, len(task.sense_labels)), np.int64)
    for group in rng.permutation(groups):
        rows = np.flatnonzero(task.sentence_ids == group)
        senses = task.sense_ids[rows]
        best = min(range(folds), key=lambda k: (counts[k, senses].sum(), counts[k].sum(), k))
        fold[rows] = best
        np.add.at(counts[best], senses, 1)
    return fold


def word_bootstrap(task: SenseTask, scores: np.ndarray, seed: int) -> tuple[float, float]:
    """95% percentile interval of the mean of `scores` (n,), from 10,000 draws of whole words with all their rows.

    The draws depend on the task and the seed alone, so that for differences of scores the interval is a paired
    one.
    """
    n, rng = len(task.vocabulary), np.random.default_rng(seed)
    draws = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.float64)  # (RESAMPLES, n_words)
    total = np.bincount(task.word_ids, scores.astype(np.float64), minlength=n)
    rows = np.bincount(task.word_ids, minlength=n)
    low, high = np.quantile((draws @ total) / (draws @ rows), [0.025, 0.975])
    return float(low), float(high)
