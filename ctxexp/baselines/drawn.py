"""Baselines drawn from the whole corpus: one value for all groups of a measure.

"The paper" is Ethayarajh 2019, "the released code" its repository.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np

from ctxexp.baseline import Baseline
from ctxexp.errors import ConfigError
from ctxexp.measuring.levels import Among
from ctxexp.measuring.occurrences import Occurrences

log = logging.getLogger("ctxexp")

MAX_REDRAWS = 10_000


class OnePerSentence(Baseline):
    """One word from each of `size` sentences: sentences uniform without replacement, then a word in each (the paper's).

    Unlike the released code, which draws with replacement, no occurrence is paired with itself, nor with one of a
    sentence that gold pairs link to its own. On a corpus with fewer distinct sentences every sentence is used, with a
    warning; `info.baseline.size` is the actual size. `exact` (true or false): a mean cosine is its expected value over
    all pairs of distinct sentences instead of that of the sample.
    """

    name = "one_per_sentence"

    def __init__(self, *, size: int = 1000, redraws: int = 30, exact: bool = False) -> None:
        self.size, self.redraws = _checked_size(size), _checked_redraws(redraws)
        self.expectation: Among | None = "sentence" if exact else None

    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        starts, rows = occurrences.distinct.starts, occurrences.distinct.rows
        what = "distinct sentences" + (" that no gold pair links" if occurrences.units.pair_group is not None else "")
        size = _available_size(self.size, len(occurrences.unrelated(np.arange(len(starts) - 1))), what)
        for _ in range(1 + self.redraws):
            sentences = occurrences.unrelated(rng.permutation(len(starts) - 1))[:size]
            yield rows[rng.integers(starts[sentences], starts[sentences + 1])]


class Uniform(Baseline):
    """`size` occurrences, uniform over those of all distinct sentences, without replacement: long sentences weigh more.

    `exact` (true or false): a mean cosine is its expected value over all pairs of distinct occurrences instead of that
    of the sample.
    """

    name = "uniform"

    def __init__(self, *, size: int = 1000, redraws: int = 30, exact: bool = False) -> None:
        self.size, self.redraws = _checked_size(size), _checked_redraws(redraws)
        self.expectation: Among | None = "row" if exact else None

    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        rows = occurrences.distinct.rows
        size = _available_size(self.size, len(rows), "occurrences")
        for _ in range(1 + self.redraws):
            yield rows[rng.choice(len(rows), size, replace=False)]


def _checked_size(size: int) -> int:
    if size < 2:
        raise ConfigError(f"baseline size={size}: expected at least 2 occurrences, since one has no pair")
    return size


def _checked_redraws(redraws: int) -> int:
    if redraws < 0:
        raise ConfigError(f"baseline redraws={redraws}: expected 0 or more")
    if redraws > MAX_REDRAWS:
        raise ConfigError(
            f"baseline redraws={redraws}: expected at most {MAX_REDRAWS}, since every layer is measured on each of "
            "them; 30 give an interval"
        )
    return redraws


def _available_size(size: int, available: int, what: str) -> int:
    if available < 2:
        raise ConfigError(f"the baseline needs at least 2 {what}, the corpus has {available}; use a larger corpus")
    if size > available:
        log.warning(f"baseline: only {available:,} {what}, so {available:,} are sampled instead of {size:,}")
        return available
    return size
