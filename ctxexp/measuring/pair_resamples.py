"""Resamples of gold pairs by what is independent: groups of pairs that share a sentence, or sentences themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ctxexp.maths.clusters import components
from ctxexp.maths.correlation import CHUNK, resamples

Statistics = Callable[[np.ndarray], dict[str, np.ndarray]]
"""How often each pair counts (c, n) to each statistic's values (c,)."""


def pair_groups(ends: np.ndarray) -> np.ndarray:
    """(n,) the number of each pair's group: pairs (n, 2) that sentences which they share link are in one."""
    _, code = np.unique(ends, return_inverse=True)
    code = code.reshape(ends.shape)
    result: np.ndarray = np.unique(components(code, ends.size)[code[:, 0]], return_inverse=True)[1]
    return result


def resampled_unit(strata: Sequence[np.ndarray]) -> str:
    """The unit that is drawn of strata of pairs (n, 2): `pair` if none shares a sentence, `group of pairs` if some do,
    `sentence` if one group holds most pairs of a stratum."""
    groups = [pair_groups(ends) for ends in strata if len(ends)]
    if any(np.bincount(group).max() > max(1, len(group) / 2) for group in groups):
        return "sentence"
    return "pair" if all(group.max() + 1 == len(group) for group in groups) else "group of pairs"


def replicates_of(
    strata: Sequence[np.ndarray], replicates: int, rng: np.random.Generator, statistics: Statistics
) -> dict[str, np.ndarray]:
    """Each statistic's bootstrap replicates (r,) over strata of pairs, each (n, 2) sentence numbers.

    Groups of pairs that share a sentence are drawn whole, within their stratum. Where one group is most of a stratum,
    sentences are drawn, and a pair counts as often as both its ends together (the product). That counts the pairs' own
    noise three times, so that the spread is narrowed by what resampled pairs say of it, twice: sqrt(1 - 2 v_p / v), but
    never below theirs.
    """
    if resampled_unit(strata) != "sentence":
        return _concatenate(_by_group(strata, replicates, rng), statistics)
    wide = _concatenate(_by_sentence(np.concatenate(strata), replicates, rng), statistics)
    alone = _concatenate(resamples([len(ends) for ends in strata], replicates, rng), statistics)
    return {name: _narrowed(wide[name], alone[name]) for name in wide}


def _concatenate(draws: Iterator[np.ndarray], statistics: Statistics) -> dict[str, np.ndarray]:
    replicates = [statistics(counts) for counts in draws]
    return {name: np.concatenate([each[name] for each in replicates]) for name in (replicates[0] if replicates else ())}


def _by_group(strata: Sequence[np.ndarray], replicates: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    groups = [pair_groups(ends) for ends in strata]
    sizes = [int(group.max(initial=-1)) + 1 for group in groups]
    starts = np.cumsum([0, *sizes])[:-1]
    where = np.concatenate([group + start for group, start in zip(groups, starts, strict=True)])
    for counts in resamples(sizes, replicates, rng):
        yield counts[:, where]


def _by_sentence(ends: np.ndarray, replicates: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    _, code = np.unique(ends, return_inverse=True)
    a, b = code.reshape(ends.shape).T
    for counts in resamples([int(code.max()) + 1], replicates, rng):
        for at in range(0, len(counts), step := max(1, CHUNK // len(ends))):
            yield counts[at : at + step, a] * counts[at : at + step, b]


def _narrowed(wide: np.ndarray, alone: np.ndarray) -> np.ndarray:
    defined = np.isfinite(wide)
    if defined.sum() < 2 or np.isfinite(alone).sum() < 2 or not (v := float(np.var(wide[defined]))) > 0:
        return wide
    pairs = float(np.nanvar(alone))
    scale = np.sqrt(max(v - 2 * pairs, pairs) / v)
    result: np.ndarray = np.nanmean(alone) + (wide - wide[defined].mean()) * scale
    return result
