"""Word frequency against geometry: norms and nearest neighbours by frequency rank (Li et al. 2020, section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Literal, get_args

import numpy as np
from annotated_types import Ge

from ctxexp import Estimate
from ctxexp.command import Progress
from ctxexp.errors import MetricError
from ctxexp.maths import interval, midranks, resamples, spearman
from ctxexp_measures.frequency.neighbours import NeighbourMeasure, nearest

Among = Literal["all", "bin"]
Bins = Sequence[int] | Annotated[int, Ge(2)] | Literal["auto"]

BINS = (0, 100, 500, 5000, 10000)
FILLED = 30  # rows that each of the paper's bins needs before bins=auto takes them
QUARTERS = 4  # bins of equal size that it makes otherwise, as many as the paper's
LARGE = 20_000  # rows from which on the search of neighbours shows its progress


def check_bins(bins: Bins) -> None:
    """Raise MetricError for edges that don't ascend from 0 or more."""
    if isinstance(bins, str | int):
        return
    if len(bins) < 2 or bins[0] < 0 or any(b <= a for a, b in pairwise(bins)):
        raise MetricError(f"bins={list(bins)}: expected ascending ranks such as {list(BINS)}")


def place_in_bins(rank: np.ndarray, bins: Bins) -> tuple[list[str], np.ndarray]:
    """Names of the rank bins, and the bin of each rank (n,) int64, -1 for ranks below 0 and outside of the bins.

    Edges give half-open bins, `0_100` for [0, 100). A number q gives q bins `q1` ... of as many rows each as can be
    (the first ones hold the remainder), in the order of the ranks. "auto": `BINS` where each holds `FILLED` rows or
    more, otherwise 4 of equal size.

    Example:
        >>> place_in_bins(np.array([7, 0, 3, -1, 12]), 2)
        (['q1', 'q2'], array([ 1,  0,  0, -1,  1]))
    """
    if not isinstance(bins, str | int):
        place = np.where(rank >= 0, np.searchsorted(bins, rank, side="right") - 1, -1)
        place[place >= len(bins) - 1] = -1
        return [f"{first}_{last}" for first, last in pairwise(bins)], place
    if isinstance(bins, str):
        names, place = place_in_bins(rank, BINS)
        if np.bincount(place[place >= 0], minlength=len(names)).min() >= FILLED:
            return names, place
        bins = QUARTERS
    place = np.full(len(rank), -1, np.int64)
    ranked = np.flatnonzero(rank >= 0)
    for i, members in enumerate(np.array_split(ranked[np.argsort(rank[ranked], kind="stable")], bins)):
        place[members] = i
    return [f"q{i + 1}" for i in range(bins)], place


def geometry(
    x: np.ndarray,
    rank: np.ndarray,
    *,
    bins: Bins = BINS,
    k: Sequence[int] = (3, 5, 7),
    neighbours: Among = "all",
    replicates: int = 200,
    seed: int = 0,
) -> dict[str, float | Estimate]:
    """Geometry of rows `x` (n, d) by frequency rank (n,), -1 for none.

    `spearman_norm`, `spearman_l2_3nn` ...: Spearman's correlation of the rank with the l2 norm, with the mean distance
    to (product with, cosine to) the k nearest others, over the rows whose rank lies within the bins; their 95%
    percentile intervals resample those rows, their neighbours held. `norm_0_100`,
    `l2_3nn_0_100`, `dot_3nn_0_100`, `cosine_3nn_0_100`, `n_0_100`: means and number of the rows of a bin [0, 100);
    of bins of equal size `norm_q1` ..., with the lowest and highest rank in each, `first_q1` and `last_q1`.
    `n`: rows within the bins; `outside`: with a rank that no bin has; `unranked`: without a rank; `undefined`: with
    NaN or infinity, left out. The four make up all rows.

    Distances and products grow with the norms, cosines don't: where only the former follow the rank, the norm is all
    there is to it. neighbours="all": among all rows, ranked or not; "bin": among the rows of the same bin.
    """
    check_bins(bins)
    names, place = place_in_bins(rank, bins)
    finite = np.isfinite(x.sum(axis=1, dtype=np.float64))
    undefined = int(np.count_nonzero(~finite))
    if undefined:
        x, rank, place = x[finite], rank[finite], place[finite]
    rows = np.flatnonzero(place >= 0)
    rows = rows[np.argsort(rank[rows], kind="stable")]  # so that resamples don't depend on the order of the rows
    bin_of = place[rows]
    values: dict[str, np.ndarray] = {"norm": np.sqrt(np.einsum("nd,nd->n", x[rows], x[rows], dtype=np.float64))}
    by: tuple[NeighbourMeasure, ...] = get_args(NeighbourMeasure)
    near_values = {f"{name}_{each}nn": np.full(len(rows), np.nan) for name in by for each in k}
    groups = [(np.arange(len(x)), np.arange(len(rows)))]
    if neighbours == "bin":
        groups = [(rows[bin_of == i], np.flatnonzero(bin_of == i)) for i in range(len(names))]
    for among, whose in groups:
        if not len(whose):
            continue
        queries = np.arange(len(whose)) if neighbours == "bin" else rows
        whole = len(among) == len(x)
        progress = Progress.of(len(among) >= LARGE)
        search = nearest(x if whole else x[among], k=max(k), by=by, queries=queries, progress=progress)
        for measure, near in search.items():
            for each in k:
                near_values[f"{measure}_{each}nn"][whose] = near.mean(each)
    values |= near_values
    stats: dict[str, float | Estimate] = {**_correlations(rank[rows], values, replicates, seed)}
    return {
        **stats,
        **_bin_means(names, bin_of, rank[rows], values),
        "n": float(len(rows)),
        "outside": float(np.count_nonzero((rank >= 0) & (place < 0))),
        "unranked": float(np.count_nonzero(rank < 0)),
        "undefined": float(undefined),
    }


def _bin_means(
    names: Sequence[str], bin_of: np.ndarray, rank: np.ndarray, values: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """Of each bin the means of the values, over the rows where they are finite, and its size and ranks."""
    stats: dict[str, float] = {}
    for i, of_bin in enumerate(names):
        members = bin_of == i
        for name, value in values.items():
            finite_values = value[members & np.isfinite(value)]
            stats[f"{name}_{of_bin}"] = float(finite_values.mean()) if len(finite_values) else math.nan
        stats[f"n_{of_bin}"] = float(np.count_nonzero(members))
        if of_bin.startswith("q"):
            stats[f"first_{of_bin}"] = float(rank[members].min()) if members.any() else math.nan
            stats[f"last_{of_bin}"] = float(rank[members].max()) if members.any() else math.nan
    return stats


def _correlations(
    rank: np.ndarray, values: Mapping[str, np.ndarray], replicates: int, seed: int
) -> dict[str, Estimate]:
    """Spearman's correlation of the rank with each value where that is defined, and its interval."""
    stats: dict[str, Estimate] = {}
    alike: dict[bytes, list[str]] = {}  # values that are defined for the same rows share their resamples
    for name, value in values.items():
        alike.setdefault(np.isfinite(value).tobytes(), []).append(name)
        stats[f"spearman_{name}"] = Estimate(math.nan, math.nan, math.nan)
    for names in alike.values():
        is_defined = np.isfinite(values[names[0]])
        n, own = int(is_defined.sum()), rank[is_defined]
        if n < 3:  # of two the correlation is always 1 or -1
            continue
        replicates_of: dict[str, list[np.ndarray]] = {name: [] for name in names}
        for counts in resamples([n], replicates, np.random.default_rng(seed)):
            total = counts.sum(axis=1, keepdims=True)
            first = _standard(midranks(own, counts), counts, total) * counts
            for name in names:
                second = _standard(midranks(values[name][is_defined], counts), counts, total)
                replicates_of[name].append(np.einsum("cn,cn->c", first, second))
        for name in names:
            each = np.concatenate(replicates_of[name]) if replicates_of[name] else np.empty(0)
            rho = spearman(own, values[name][is_defined])
            low, high = interval(each[None])
            stats[f"spearman_{name}"] = Estimate(rho, float(low[0]), float(high[0]))
    return stats


def _standard(ranked: np.ndarray, counts: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Ranks (c, n) of each resample less their mean, of weighted norm 1; NaN where they are all equal."""
    centred = ranked - (total + 1) / 2
    spread = np.sqrt(np.einsum("cn,cn,cn->c", counts, centred, centred))
    spread[spread == 0] = np.nan
    return centred / spread[:, None]
