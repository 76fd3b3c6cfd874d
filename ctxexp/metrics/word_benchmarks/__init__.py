"""Nine benchmarks of static word vectors, those of Ethayarajh 2019's Table 1: similarity, analogy, relations, classes.

    from ctxexp.metrics.word_benchmarks import Space, evaluate, load
    scores = evaluate(Space.of(words, vectors), load("data/word"))

`python -m ctxexp bench-words vectors=FILE data=FOLDER` does so for any file of word vectors. Every score comes with
the share of its items that the vectors cover.
"""

from __future__ import annotations

from ctxexp.metrics.word_benchmarks.load import SOURCES, load
from ctxexp.metrics.word_benchmarks.score import Score
from ctxexp.metrics.word_benchmarks.space import Space, word_list
from ctxexp.metrics.word_benchmarks.suite import Choices, evaluate, table

__all__ = ["SOURCES", "Choices", "Score", "Space", "evaluate", "load", "table", "word_list"]
