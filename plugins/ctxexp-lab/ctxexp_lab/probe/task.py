"""Word sense disambiguation as the probe's task, among the senses of each word: baselines and intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ctxexp import Corpus, Sentence
from ctxexp.errors import DataError

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
        words = [tuple(word.lower() for word in sentence.words) for sentence in corpus.sentences]
        labelled = [(s.sentence, s.position, s.label, words[s.sentence][s.position]) for s in corpus.senses]
        rows = pd.DataFrame(labelled, columns=["sentence", "position", "sense", "word"])
        words_of = rows.groupby("sense")["word"].nunique()
        if (words_of > 1).any():
            raise DataError(
                f"{corpus.name}: sense {words_of.idxmax()!r} labels several words; expected one word a sense"
            )
        rows = rows[rows.groupby("word")["sense"].transform("nunique") > 1]
        if rows.empty:
            raise DataError(f"{corpus.name}: no word with two labelled senses; the probe needs dataset polysemy's kind")
        group = pd.factorize(pd.Series([words[i] for i in rows["sentence"]]))[0]
        contexts = rows.assign(group=group).groupby("sense")["group"].nunique()
        if (contexts < 2).any():
            raise DataError(
                f"{corpus.name}: sense {contexts.idxmin()!r} has a single sentence; expected at least 2 a sense"
            )
        word_ids, vocabulary = pd.factorize(rows["word"], sort=True)
        sense_ids, sense_labels = pd.factorize(rows["sense"], sort=True)
        is_sense_of = np.zeros((len(vocabulary), len(sense_labels)), bool)
        is_sense_of[word_ids, sense_ids] = True
        return cls(
            tuple(corpus.sentences[i] for i in rows["sentence"]), rows["position"].to_numpy(), tuple(vocabulary),
            tuple(sense_labels), word_ids, sense_ids, group, is_sense_of,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.sentences)

    def chance(self) -> np.ndarray:
        """(n,) probability that a guess among the word's senses is right."""
        return np.asarray(1 / self.is_sense_of.sum(axis=1)[self.word_ids])

    def majority_of_all(self) -> np.ndarray:
        """(n,) probability that the word's most frequent sense in all rows is right, the tested one included: an upper
        bound; senses that tie share it."""
        counts = np.where(self.is_sense_of, np.bincount(self.sense_ids, minlength=len(self.sense_labels)), -1)
        top = counts == counts.max(axis=1, keepdims=True)  # (n_words, n_senses)
        return np.asarray((top / top.sum(axis=1, keepdims=True))[self.word_ids, self.sense_ids])


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
