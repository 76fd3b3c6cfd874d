"""Occurrences that spaces have in common: the same characters of the same sentence, whatever the tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from zlib import crc32

import numpy as np

from ctxexp.errors import DataError
from ctxexp_compare.measure import Sample, Stream
from ctxexp_compare.space import Space

FEW = 5


def matched(spaces: Sequence[Space], *, sample: int, seed: int) -> tuple[Sample, list[np.ndarray], int]:
    """The sample of common occurrences, each space's rows for them (n,), and how many are common in all.

    Those whose hash of (seed, sentence, characters) is smallest: the same for the same texts whatever the order of
    spaces or sentences. Units and words are the first space's. Raises DataError where next to nothing is common.
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
    chosen = np.sort(np.lexsort([common, key])[:sample])
    held = common[chosen]
    found = [np.argsort(code, kind="stable")[np.searchsorted(np.sort(code), held)] for code in codes]
    first = spaces[0]
    words = np.unique(np.array(first.words(found[0])), return_inverse=True)[1]
    rows = [space.rows[at] for space, at in zip(spaces, found, strict=True)]
    return Sample(first.blocks[found[0]], first.unit, seed, words), rows, len(common)


def _mixed(seeds: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(n,) uint64 that look random (splitmix64's last steps)."""
    x = (seeds << np.uint64(32)) ^ (places.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: np.ndarray = x ^ (x >> np.uint64(31))
    return result
