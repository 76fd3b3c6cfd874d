"""Chance levels: random groups of occurrences, the same rows in every layer."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ctxexp.errors import ConfigError
from ctxexp.measuring.levels import Over
from ctxexp.measuring.occurrences import Occurrences

log = logging.getLogger("ctxexp")

MOST_REDRAWS = 10_000


class Baseline(Protocol):
    """Random groups. The first is the reported baseline; the others, redraws of it, are for metrics over samples that
    tell their spread.

    Optional: `closed`, over what random occurrences are drawn (`sentence`: one word from each; `row`: all alike) where
    the mean cosine's expectation takes the place of the draw.
    """

    @property
    def name(self) -> str: ...
    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Arrays of row numbers, each without repetition: no occurrence is compared with itself."""
        ...


class OnePerSentence:
    """One word from each of `size` sentences: sentences uniform without replacement, then a word in each (the paper's).

    Unlike the released code, which draws with replacement, no occurrence meets itself. On a corpus with fewer distinct
    sentences every sentence is used, with a warning; `baseline_size` in the results is the real size. `exact`: mean
    cosines aren't read off the draw but are its expectation, over all pairs of distinct sentences.
    """

    name = "one_per_sentence"

    def __init__(self, *, size: int = 1000, redraws: int = 30, exact: bool = False) -> None:
        self.size, self.redraws = _size(size), _redraws(redraws)
        self.closed: Over | None = "sentence" if exact else None

    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        starts, rows = occurrences.distinct.starts, occurrences.distinct.rows
        size = _real(self.size, len(occurrences.distinct), "distinct sentences")
        for _ in range(1 + self.redraws):
            sentences = rng.permutation(len(starts) - 1)[:size]
            yield rows[rng.integers(starts[sentences], starts[sentences + 1])]


class Uniform:
    """`size` occurrences, uniform over all, without replacement: long sentences and their words weigh more.

    `exact`: mean cosines are the expectation, over all pairs of distinct occurrences.
    """

    name = "uniform"

    def __init__(self, *, size: int = 1000, redraws: int = 30, exact: bool = False) -> None:
        self.size, self.redraws = _size(size), _redraws(redraws)
        self.closed: Over | None = "row" if exact else None

    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        rows = occurrences.distinct.rows
        size = _real(self.size, len(rows), "occurrences")
        for _ in range(1 + self.redraws):
            yield rows[rng.choice(len(rows), size, replace=False)]


@dataclass(frozen=True)
class Matched:
    """Random groups at a ladder of sizes, and how to read a chance level between its rungs."""

    sizes: np.ndarray  # (k,) ascending
    draws: list[np.ndarray]  # k arrays (draws, size) of row numbers

    def weights(self, counts: np.ndarray) -> np.ndarray:
        """(len(counts), k): what each rung counts for groups of these sizes: linear in 1 / n, flat beyond the last."""
        at = 1.0 / np.clip(counts, self.sizes[0], self.sizes[-1])
        high = np.clip(np.searchsorted(self.sizes, counts), 1, max(1, len(self.sizes) - 1))
        result = np.zeros((len(counts), len(self.sizes)))
        if len(self.sizes) == 1:
            result[:] = 1
            return result
        a, b = 1.0 / self.sizes[high - 1], 1.0 / self.sizes[high]
        share = (a - at) / (a - b)
        each = np.arange(len(counts))
        result[each, high - 1], result[each, high] = 1 - share, share
        return result


class SizeMatched:
    """Random groups of the size of the group they are compared with, one word a sentence where there are enough.

    A share of variance, or a cosine to the mean, depends on the number of rows even for unrelated words; so each
    group is compared with `draws` random groups of its own size. Sizes up to `exact` are drawn as they are, above it
    those of a geometric ladder (`ratio`), between whose rungs the level is read off linearly in 1 / n; from `largest`
    on it is flat. The larger the size, the less its level varies: draws fall with its power 1.5, to two. Metrics over
    a sample (anisotropy) get one word from each of `size` sentences.
    """

    name = "size_matched"

    def __init__(
        self,
        *,
        size: int = 1000,
        redraws: int = 30,
        draws: int = 128,
        exact: int = 12,
        ratio: float = 1.35,
        largest: int = 4096,
    ) -> None:
        if min(draws, exact, largest) < 2 or ratio <= 1:
            raise ConfigError(
                f"size_matched: expected draws, exact and largest of at least 2 and ratio above 1, got draws={draws}, "
                f"exact={exact}, largest={largest}, ratio={ratio}"
            )
        self.sample = OnePerSentence(size=size, redraws=redraws)
        self.size = size
        self.draws, self.exact, self.ratio, self.largest = draws, exact, ratio, largest

    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        return self.sample.groups(occurrences, rng)

    def ladder(self, counts: np.ndarray) -> np.ndarray:
        """The sizes to draw for groups of these sizes, ascending."""
        counts = np.unique(np.clip(counts, 2, self.largest))
        rungs = set(counts[counts <= self.exact].tolist())
        above = counts[counts > self.exact]
        if len(above):
            size = int(above[0])
            while size < above[-1]:
                rungs.add(size)
                size = max(size + 1, round(size * self.ratio))
            rungs.add(int(above[-1]))
        return np.array(sorted(rungs), np.int64)

    def matched(self, counts: np.ndarray, occurrences: Occurrences, rng: np.random.Generator) -> Matched:
        """Random groups for groups of these sizes."""
        starts, rows = occurrences.distinct.starts, occurrences.distinct.rows
        n_sentences = len(starts) - 1
        sizes = self.ladder(np.minimum(counts, len(rows)))
        drawn = []
        for size in sizes.tolist():
            groups: list[np.ndarray] = []
            wanted = int(np.clip(self.draws * (self.exact / size) ** 1.5, 2, self.draws))
            while len(groups) < wanted:
                if size > n_sentences:
                    groups.append(rows[rng.choice(len(rows), size, replace=False)])
                    continue
                order = rng.permutation(n_sentences)
                for at in range(0, min(n_sentences // size, wanted - len(groups)) * size, size):
                    sentences = order[at : at + size]
                    groups.append(rows[rng.integers(starts[sentences], starts[sentences + 1])])
            drawn.append(np.stack(groups))
        return Matched(sizes, drawn)


def _size(size: int) -> int:
    if size < 2:
        raise ConfigError(f"baseline size={size}: expected at least 2 occurrences, since one has no pair")
    return size


def _redraws(redraws: int) -> int:
    if redraws < 0:
        raise ConfigError(f"baseline redraws={redraws}: expected 0 or more")
    if redraws > MOST_REDRAWS:
        raise ConfigError(
            f"baseline redraws={redraws}: expected at most {MOST_REDRAWS}, since every layer is measured on each of "
            "them; 30 give an interval"
        )
    return redraws


def _real(size: int, available: int, what: str) -> int:
    if available < 2:
        raise ConfigError(f"the baseline needs at least 2 {what}, the corpus has {available}; use a larger corpus")
    if size > available:
        log.warning(f"baseline: only {available:,} {what}, so {available:,} are sampled instead of {size:,}")
        return available
    return size
