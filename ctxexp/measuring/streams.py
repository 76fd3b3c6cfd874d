"""The random streams of one seed: each kind of draw has its own, so that none tells anything of another."""

from __future__ import annotations

from enum import IntEnum, unique


@unique
class Stream(IntEnum):
    """Kinds of draws, as in `default_rng([seed, Stream.TWINS])`. A number once given stays: results hang on it.

    Zero names nothing: `[seed, 0]` is the stream of the bare `seed`. 8 was k-means's beginnings.
    """

    BASELINE = 1  # the baseline's random groups
    SAMPLE = 2  # the sampled words or sentences of a measure with `sample`
    MATCHED = 3  # random groups of the measured groups' sizes
    RESAMPLE = 4  # bootstrap resamples behind the intervals of measures over words and sentences
    PAIRS = 5  # bootstrap resamples of sentence pairs
    TWINS = 6  # groups' twins
    SHUFFLE = 7  # words in random places
    LABELS = 9  # permuted sense labels, a word each
    PERIODS = 10  # permuted periods of a word's usages, a word each
    CLAIMS = 11  # curves as they might have come out, redrawn within their intervals where a run kept no replicates
    INSTANCES = 12  # drawn instances that a claim on a measure or a theorem is tried on
    PARTS = 13  # the halves of a text
    BEST_LAYER = 14  # resamples of the texts by which a best layer is chosen and tried
