"""Variance components by class: of the words of one part of speech, one frequency, one number of tokens alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ctxexp import Corpus, Estimate, Text
from ctxexp_measures.senses.attributes import row_attributes
from ctxexp_measures.senses.by_class.classes import LEAST, By, classes, kinds, require_tags, warn_left_out
from ctxexp_measures.senses.by_class.metric import ALL
from ctxexp_measures.senses.components.design import Design, population
from ctxexp_measures.senses.components.metric import VarianceComponents


class VarianceComponentsByClass(VarianceComponents):
    """Shares of the variance of the vectors of a class's words, in [0, 1] but for noise, for every class.

    What each share is says `VarianceComponents`; here every class is decomposed by itself, about its own mean, so that
    `word` is what tells the words of the class apart. Classes by `pos`, by `frequency` and by `pieces` as in
    `self_similarity_by_class`; words are those that are decomposed, lemma and part of speech where the corpus tags
    them. Statistics are named by class, `pos NOUN/context`, with its `words` and `occurrences`. Classes of fewer than
    five words have no shares, and a warning names them; a factor that a class's rows can't tell (sentences, where each
    holds one of them) stays in the `rest` of that class.
    """

    title = "What word vectors vary with, by class of word"
    name: ClassVar[str] = "variance_components_by_class"

    def __init__(self, *, by: Sequence[By] = ALL) -> None:
        super().__init__()
        self.by = kinds(by)

    def require(self, corpus: Corpus) -> None:
        require_tags(self.name, self.by, corpus)

    def compute(self) -> dict[str, float | Estimate]:
        statistics = super().compute()
        if self._text is None:
            return statistics
        small = self._classes(self._text)[1]
        warn_left_out(self._text, self.name, {name: words for name, (words, _) in small.items()})
        for name, (words, rows) in small.items():
            statistics |= {f"{name}/words": float(words), f"{name}/occurrences": float(rows)}
        return statistics

    def _sizes(self, design: Design) -> dict[str, float]:
        return {"words": float(design.n_words), "occurrences": float(len(design.attributes))}

    def _designs(self, text: Text) -> dict[str, Design]:
        return self._classes(text)[0]

    def _classes(self, text: Text) -> tuple[dict[str, Design], dict[str, tuple[int, int]]]:
        """The design of every class, by its name; words and rows of those that are too small for one."""
        key = f"ctxexp_measures.senses.designs {self.by}"
        if key not in text.derived:
            whole = row_attributes(text)
            some = population(whole, min_contexts=text.occurrences.min_contexts)
            word = whole.word.codes[np.searchsorted(whole.rows, some.rows)]
            designs: dict[str, Design] = {}
            small: dict[str, tuple[int, int]] = {}
            for names in classes(text, whole.word.codes, whole.rows, self.by).values():
                of_row = np.array(names)[word]
                for name in np.unique(of_row).tolist():
                    mine = some.subset(np.flatnonzero(of_row == name))
                    if len(mine.word) < LEAST:
                        small[name] = len(mine.word), len(mine)
                    else:
                        designs[name] = Design.of(mine)
            text.derived[key] = designs, small
        result: tuple[dict[str, Design], dict[str, tuple[int, int]]] = text.derived[key]  # type: ignore[assignment]
        return result
