"""The probe's task, to tell the sense of an occurrence among its word's senses: folds, baselines and intervals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ctxexp.dataset import Corpus, Sentence
from ctxexp.errors import ConfigError, DataError

RESAMPLES = 10_000


@dataclass(frozen=True)
class Task:
    """Labelled occurrences as rows: sentence, position, word, sense, and a number that equal sentences share."""

    sentences: tuple[Sentence, ...]  # one a row, so repeated where a sentence has several labels
    positions: np.ndarray  # (n,) of the occurrence among its sentence's words
    words: tuple[str, ...]
    senses: tuple[str, ...]
    word: np.ndarray  # (n,) into words
    sense: np.ndarray  # (n,) into senses
    group: np.ndarray  # (n,) equal where the sentences have the same words, case aside
    own: np.ndarray  # (len(words), len(senses)) bool: whose sense it is
    left_out: int  # labelled occurrences of words with a single sense, where there is nothing to tell

    @classmethod
    def of(cls, corpus: Corpus) -> Task:
        """The task that `corpus.senses` states; a sense belongs to the word, in lower case, that it labels.

        Raises DataError without a word of two senses, where one label is on two words, and for a sense with a
        single sentence, which can't be both learnt and asked for.
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
        own = np.zeros((len(words), len(senses)), bool)
        for label in senses:
            own[row_of_word[word_of[label]], row_of_sense[label]] = True
        return cls(
            sentences,
            np.array([s.position for s, _ in ambiguous]),
            words,
            senses,
            np.array([row_of_word[word] for _, word in ambiguous]),
            np.array([row_of_sense[s.label] for s, _ in ambiguous]),
            np.array(group),
            own,
            len(labelled) - len(ambiguous),
        )

    def __len__(self) -> int:
        return len(self.sentences)

    def chance(self) -> np.ndarray:
        """(n,) probability that a guess among the word's senses is right."""
        return np.asarray(1 / self.own.sum(axis=1)[self.word])

    def majority(self, fold: np.ndarray | None) -> np.ndarray:
        """(n,) probability that the word's most frequent sense is right; senses that tie share it.

        Counted in the other folds; with None over all rows, those asked for among them: an upper bound. In balanced
        data the first falls *below* chance: a row that is held out leaves its own sense rarer in what remains.
        """
        share = np.empty(len(self))
        for k in [None] if fold is None else list(np.unique(fold)):
            test = np.ones(len(self), bool) if k is None or fold is None else fold == k
            train = test if k is None else ~test
            counts = np.where(self.own, np.bincount(self.sense[train], minlength=len(self.senses)), -1)
            top = counts == counts.max(axis=1, keepdims=True)  # (n_words, n_senses)
            share[test] = (top / top.sum(axis=1, keepdims=True))[self.word[test], self.sense[test]]
        return share


def folds_of(task: Task, folds: int, seed: int) -> np.ndarray:
    """(n,) fold of each row, in [0, folds): equal sentences share one, a sense's sentences spread over all.

    Sentences come in random order; each goes where its senses are rarest, and among equals where the fewest rows are.
    """
    groups = np.unique(task.group)
    if not 2 <= folds <= len(groups):
        raise ConfigError(f"folds={folds}: expected 2 to {len(groups)}, the number of different sentences")
    rng = np.random.default_rng(seed)
    fold = np.full(len(task), -1)
    counts = np.zeros((folds, len(task.senses)), np.int64)
    for group in rng.permutation(groups):
        rows = np.flatnonzero(task.group == group)
        senses = task.sense[rows]
        best = min(range(folds), key=lambda k: (counts[k, senses].sum(), counts[k].sum(), k))
        fold[rows] = best
        np.add.at(counts[best], senses, 1)
    return fold


def word_bootstrap(task: Task, scores: np.ndarray, seed: int) -> tuple[float, float]:
    """95% percentile interval of the mean of `scores` (n,), from 10,000 draws of whole words with all their rows.

    The draws depend on the task and the seed alone, so that scores of differences are intervals of pairs.
    """
    n, rng = len(task.words), np.random.default_rng(seed)
    draws = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.float64)  # (RESAMPLES, n_words)
    total = np.bincount(task.word, scores.astype(np.float64), minlength=n)
    rows = np.bincount(task.word, minlength=n)
    low, high = np.quantile((draws @ total) / (draws @ rows), [0.025, 0.975])
    return float(low), float(high)
