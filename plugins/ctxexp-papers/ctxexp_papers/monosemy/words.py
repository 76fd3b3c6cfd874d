"""Properties of a word that may make it vary: number of senses, frequency, variety of its contexts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pandas as pd
from scipy.special import gammaln

from ctxexp import Corpus

DRAWN, WINDOW = 5, 5


def count_senses(corpus: Corpus) -> dict[str, int]:
    """The number of different senses with which a spelling without case is labelled in the corpus."""
    senses = defaultdict(set)
    for sense in corpus.senses or ():
        senses[corpus.sentences[sense.sentence].words[sense.position].casefold()].add(sense.label)
    return {word: len(labels) for word, labels in senses.items()}


def describe_words(
    sentences: Iterable[Sequence[str]], words: Collection[str], *, drawn: int = DRAWN, window: int = WINDOW
) -> pd.DataFrame:
    """How often words occur, and in what company.

    Args:
        sentences: Words of each; equal sentences are one context.
        words: Those to describe, as they are spelled in the sentences.
        drawn: A word's variety is that of so many of its contexts, whatever it has.
        window: Neighbours on either side.

    Returns:
        A row a word that occurs, indexed by it: `contexts`, the distinct sentences with it, and `variety`, the expected
        number of different neighbours in `drawn` of them (rarefaction; Hurlbert 1971), NaN where it has fewer. Of its
        occurrences in a sentence the first counts.
    """
    wanted = set(words)
    contexts: Counter[str] = Counter()
    neighbours: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in dict.fromkeys(map(tuple, sentences)):
        folded = [word.casefold() for word in sentence]
        first = {word: i for i, word in reversed(list(enumerate(sentence))) if word in wanted}
        for word, i in first.items():
            contexts[word] += 1
            neighbours[word].update({*folded[max(0, i - window) : i], *folded[i + 1 : i + 1 + window]})
    rows = {
        word: (n, rarefied(np.fromiter(neighbours[word].values(), np.float64), n, drawn))
        for word, n in contexts.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["contexts", "variety"])


def rarefied(counts: np.ndarray, n: int, drawn: int) -> float:
    """The expected number of kinds in `drawn` of n samples without replacement, where kinds stand in so many of them
    (kinds,); NaN where n is less.

    Example:
        >>> rarefied(np.array([2.0, 1.0]), 2, 1)
        1.5
    """
    if n < drawn:
        return float("nan")
    without = n - counts
    possible = without >= drawn
    absent = np.exp(_log_choose(without[possible], drawn) - _log_choose(np.array(float(n)), drawn)).sum()
    return float(len(counts) - absent)


def _log_choose(n: np.ndarray, k: int) -> np.ndarray:
    result: np.ndarray = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return result
