"""Occurrences that spaces have in common: the same characters of the same sentence, whatever the tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from zlib import crc32

import numpy as np

from ctxexp.errors import DataError
from ctxexp_compare.measure import Null, Sample, Stream
from ctxexp_compare.space import Space

FEW = 5


def matched(
    spaces: Sequence[Space], *, sample: int, seed: int, null: Null = "words"
) -> tuple[Sample, list[np.ndarray], int]:
    """The sample of common occurrences, each space's rows for them (n,), and how many are common in all.

    Those whose hash of (seed, sentence, characters) is smallest: the same for the same texts whatever the order of
    spaces or sentences. Units and words are the first space's. Where chance permutes rows within words, words that
    occur once in the sample are left out, since their only permutation says nothing, and so many more are taken.
    Raises DataError where next to nothing is left.
    """
    number: dict[str, int] = {}
    texts = [np.array([number.setdefault(text, len(number)) for text in space.texts], np.int64) for space in spaces]
    width = 1 + max(int(space.spans.max(initial=0)) for space in spaces)
    codes = [
        (of[s.sentence] * width + s.spans[:, 0]) * width + s.spans[:, 1] for of, s in zip(texts, spaces, strict=True)
    ]
    common = reduce(np.intersect1d, codes)
    if len(common) < FEW:
        who = ", ".join(f"{space.label} ({len(space.rows):,})" for space in spaces)
        raise DataError(
            f"{len(common)} occurrences are common to {who}: expected the same words of the same sentences; give the "
            "runs one text, with the same words.tokenizer and words.lower"
        )
    told = list(number)
    seeds = np.array(
        [crc32(f"{seed} {Stream.SAMPLED:d} {told[i]}".encode(errors="surrogatepass")) for i in range(len(told))]
    )
    key = _mixed(seeds[common // width**2].astype(np.uint64), common % width**2)
    order = np.lexsort([common, key])
    found = [np.argsort(code, kind="stable")[np.searchsorted(np.sort(code), common)] for code in codes]
    first = spaces[0]
    within = null == "words" and first.has_words
    if within:
        words = np.unique(np.array(first.words(found[0])), return_inverse=True)[1]
        order = _again(order, words[order], sample)
        if len(order) < FEW:
            raise DataError(
                f"{len(order)} of {len(common)} common occurrences are of words that occur twice, and chance permutes "
                "rows within words: give the runs more text, or null=free, which knows no words"
            )
    chosen = np.sort(order[:sample])
    found = [at[chosen] for at in found]
    words = np.unique(np.array(first.words(found[0])), return_inverse=True)[1]
    strata = words if within else None
    rows = [space.rows[at] for space, at in zip(spaces, found, strict=True)]
    return Sample(first.blocks[found[0]], first.unit, seed, words, strata), rows, len(common)


def _again(order: np.ndarray, words: np.ndarray, most: int) -> np.ndarray:
    """Of occurrences in order, with their words, the longest beginning of which at most so many are of words that come
    twice in it, and of it these."""
    by_word = np.argsort(words, kind="stable")
    start = np.flatnonzero(np.diff(words[by_word], prepend=-1))
    nth = np.empty(len(words), np.int64)
    nth[by_word] = np.arange(len(words)) - np.repeat(start, np.diff(np.append(start, len(words))))
    held = np.cumsum(np.choose(np.minimum(nth, 2), [0, 2, 1]))  # a word's second brings in its first as well
    taken = words[: int(np.searchsorted(held, most, side="right"))]
    result: np.ndarray = order[: len(taken)][np.bincount(taken, minlength=1)[taken] > 1]
    return result


def _mixed(seeds: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(n,) uint64 that look random (splitmix64's last steps)."""
    x = (seeds << np.uint64(32)) ^ (places.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: np.ndarray = x ^ (x >> np.uint64(31))
    return result
