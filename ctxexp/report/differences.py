"""Differences of curves, between runs and between layers, with intervals of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctxexp.measuring.bootstrap import interval
from ctxexp.results.values import Key

if TYPE_CHECKING:
    from ctxexp.results import Results


class Difference(NamedTuple):
    """A difference of two curves, value by value, and its 95% interval; NaN where that isn't known."""

    value: np.ndarray  # (n,)
    low: np.ndarray  # (n,)
    high: np.ndarray  # (n,)


def difference(
    one: Results,
    other: Results,
    key: Key,
    *,
    layers: list[int] | None = None,
    others: list[int] | None = None,
) -> Difference:
    """The curve `key` of one run minus that of another, layer by layer, with a 95% interval of the difference.

    Runs over one corpus with one seed drew the same documents, sentences or pairs (`share_resamples`). Chance effects
    of these on both curves then cancel, so that curves whose own intervals overlap may still differ for certain.
    Otherwise replicates are paired at random, as of independent runs. `layers` and `others` choose the layers to
    compare (all; negative ones count from the last): `difference(run, run, key, layers=[3], others=[0])` compares two
    layers of one run.
    """
    a, b = one.by_key[key].value, other.by_key[key].value
    at = list(range(min(len(a), len(b)))) if layers is None else layers
    against = at if others is None else others
    value = a[at] - b[against]
    x, y = one.replicates.get(key), other.replicates.get(key)
    if x is None or y is None or x.shape[1] != y.shape[1]:
        nothing = np.full(len(value), np.nan)
        return Difference(value, nothing, nothing)
    x, y = x[at].astype(np.float64), y[against].astype(np.float64)
    if not share_resamples(one, other):
        y = y[:, np.random.default_rng(len(y)).permutation(y.shape[1])]
    return Difference(value, *interval(x - y))


def share_resamples(one: Results, other: Results) -> bool:
    """Whether both runs' replicates are of the same resamples of the same text."""
    a, b = ((i.seed, i.bootstrap, i.corpus.fingerprint, i.corpus.pairs, i.resampled) for i in (one.info, other.info))
    return a == b
