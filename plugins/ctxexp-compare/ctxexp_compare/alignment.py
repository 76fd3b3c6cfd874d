"""Common occurrences of spaces: the same characters of the same sentence, whatever the tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from zlib import crc32

import numpy as np

from ctxexp.errors import DataError
from ctxexp_compare.contract import ComparisonStream, Null, Sample
from ctxexp_compare.space import Space

MIN_OCCURRENCES = 5


def align(
    spaces: Sequence[Space], *, sample: int, seed: int, null: Null = "words"
) -> tuple[Sample, list[np.ndarray], int]:
    """Sample the common occurrences of spaces: the sample, each space's rows for it (n,), and the number in common.

    The sample has the smallest hashes of (seed, sentence, characters): the same for the same texts whatever the order
    of spaces or sentences. Resampling units and words are the first space's. Where chance permutes rows within words,
    words that occur once in the sample are left out, since they have no other permutation, and others are drawn in
    their place. Raises DataError where fewer than MIN_OCCURRENCES are left.
    """
    number: dict[str, int] = {}
    texts = [np.array([number.setdefault(text, len(number)) for text in space.texts], np.int64) for space in spaces]
    width = 1 + max(int(space.spans.max(initial=0)) for space in spaces)
    codes = [
        (of[s.sentence] * width + s.spans[:, 0]) * width + s.spans[:, 1] for of, s in zip(texts, spaces, strict=True)
    ]
    common = reduce(np.intersect1d, codes)
    if len(common) < MIN_OCCURRENCES:
        who = ", ".join(f"{space.label} ({len(space.rows):,})" for space in spaces)
        raise DataError(
            f"{len(common)} occurrences are common to {who}: expected the same words of the same sentences; give the "
            "runs one text, with the same words.tokenizer and words.lower"
        )
    names = list(number)
    seeds = np.array(
        [
            crc32(f"{seed} {ComparisonStream.SAMPLED:d} {names[i]}".encode(errors="surrogatepass"))
            for i in range(len(names))
        ]
    )
    seed_of, place = seeds[common // width**2].astype(np.uint64), (common % width**2).astype(np.uint64)
    key = splitmix64((seed_of << np.uint64(32)) ^ (place * np.uint64(0x9E3779B97F4A7C15)))
    order = np.lexsort([common, key])
    positions = [np.argsort(code, kind="stable")[np.searchsorted(np.sort(code), common)] for code in codes]
    first = spaces[0]
    within = null == "words" and first.has_words
    if within:
        words = np.unique(np.array(first.words(positions[0])), return_inverse=True)[1]
        order = _repeated_only(order, words[order], sample)
        if len(order) < MIN_OCCURRENCES:
            raise DataError(
                f"{len(order)} of {len(common)} common occurrences are of words that occur twice, and chance permutes "
                "rows within words: give the runs more text, or null=free, which knows no words"
            )
    selection = np.sort(order[:sample])
    positions = [at[selection] for at in positions]
    words = np.unique(np.array(first.words(positions[0])), return_inverse=True)[1]
    strata = words if within else None
    rows = [space.rows[at] for space, at in zip(spaces, positions, strict=True)]
    return Sample(first.blocks[positions[0]], first.unit, seed, words, strata), rows, len(common)


def _repeated_only(order: np.ndarray, words: np.ndarray, most: int) -> np.ndarray:
    """Occurrences of words that come at least twice in the longest start of `order` (n,) in which at most `most` do;
    `words` (n,) are in the same order."""
    by_word = np.argsort(words, kind="stable")
    start = np.flatnonzero(np.diff(words[by_word], prepend=-1))
    nth = np.empty(len(words), np.int64)
    nth[by_word] = np.arange(len(words)) - np.repeat(start, np.diff(np.append(start, len(words))))
    size = np.cumsum(np.choose(np.minimum(nth, 2), [0, 2, 1]))  # a word's second brings in its first as well
    prefix = words[: int(np.searchsorted(size, most, side="right"))]
    return order[: len(prefix)][np.bincount(prefix, minlength=1)[prefix] > 1]


def splitmix64(x: np.ndarray) -> np.ndarray:
    """Hashes of 64-bit integers (n,) uint64, by the finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
