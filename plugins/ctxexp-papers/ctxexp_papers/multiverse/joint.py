"""All specifications at once: what their median effect and the share that falls are against chance (Simonsohn, Simmons
& Nelson 2020, Specification curve analysis, doi:10.1038/s41562-020-0912-z).

Single specifications are of one text, so that their number says nothing: a hundred that fall may be one finding. Their
joint statistics are held against two nulls. *Layers shuffled*: any layer may be called first and any other last, in all
specifications at once; layers beside each other are alike, so that random walks over 5 to 31 layers come to p = .05
in 13% to 18%. *The untrained twin*:
the same ways of measuring the same shape with random weights, one draw of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report.wording import LabelledResults
from ctxexp_papers.multiverse.specifications import Specification, all_paired, specifications

if TYPE_CHECKING:
    import pandas as pd

ORDERS = 400  # pairs of layers that are tried at most


@dataclass(frozen=True)
class Statistic:
    """A joint statistic, and what a null gives.

    Args:
        name: `median effect`, or `share that falls` (0 to 1).
        value: Of the trained models.
        low: End of its 95% interval over resamples of the text, all specifications together; NaN where not known.
        high: The other end.
        null: Which null.
        expected: Its statistic there, the median over orders of layers.
        p: The share of the null's draws that are as low (median) or as high (share) as the value; NaN: not known.
        draws: How many there are: the smallest p is 1 / draws.
    """

    name: str
    value: float
    low: float
    high: float
    null: str
    expected: float
    p: float
    draws: int


@dataclass(frozen=True, eq=False)
class Joint:
    """Joint statistics of all specifications; `null` (draws, n) and `twin` (n,) are sorted effects, for a figure."""

    statistics: tuple[Statistic, ...]
    null: np.ndarray
    twin: np.ndarray

    @property
    def frame(self) -> pd.DataFrame:
        """A row a statistic and null."""
        import pandas as pd

        return pd.DataFrame([vars(one) for one in self.statistics])

    def sentence(self) -> str:
        """The median effect and the share that falls, with what chance gives."""
        parts = []
        for name in ("median effect", "share that falls"):
            these = [one for one in self.statistics if one.name == name]
            value = these[0]
            phrase = f"{name} {_plain(value.value, name)}"
            if np.isfinite(value.low):
                phrase += f" [{_plain(value.low, name)}, {_plain(value.high, name)}]"
            nulls = [f"{one.null}: {_plain(one.expected, name)}{_p(one)}" for one in these]
            parts.append(f"{phrase} ({'; '.join(nulls)})")
        return "; ".join(parts)


def joint(runs: Sequence[LabelledResults]) -> Joint | None:
    """Of the runs' specifications, the untrained ones being the twin; None where there are none."""
    trained, twins = specifications(runs), specifications(runs, untrained=True)
    if not trained:
        return None
    orders = _orders(trained)
    null = np.array([_effects(trained, a, b) for a, b in orders])
    shares = np.array([_share(trained, a, b) for a, b in orders])
    median, share = float(np.median([one.effect for one in trained])), _share_of(trained)
    low, high = _interval(_median_replicates(trained))
    name = f"layers shuffled, {len(orders)} orders"
    statistics = [
        Statistic("median effect", median, low, high, name, float(np.median(null)),
                  float(np.mean(np.median(null, axis=1) <= median + 1e-12)), len(orders)),
        Statistic("share that falls", share, np.nan, np.nan, name, float(np.median(shares)),
                  float(np.mean(shares >= share - 1e-12)), len(orders)),
    ]  # fmt: skip
    if twins:
        statistics += _against_twin(trained, twins, statistics)
    return Joint(tuple(statistics), np.sort(null, axis=1), np.sort([one.effect for one in twins]))


def _against_twin(
    trained: Sequence[Specification], twins: Sequence[Specification], own: Sequence[Statistic]
) -> list[Statistic]:
    """p of the median: the share of resamples of the text in which the trained median isn't below the twin's."""
    expected = float(np.median([one.effect for one in twins]))
    p, draws = np.nan, 0
    if all_paired([*trained, *twins]):
        above = _median_replicates(trained) - _median_replicates(twins) >= 0
        draws = len(above) + 1
        p = float((above.sum() + 1) / draws)
    median, share = own
    return [
        Statistic(median.name, median.value, median.low, median.high, "untrained twin", expected, p, draws),
        Statistic(share.name, share.value, np.nan, np.nan, "untrained twin", _share_of(twins), np.nan, 0),
    ]


def _orders(specs: Sequence[Specification]) -> list[tuple[int, int]]:
    """Which layers stand for the first and the last: all pairs, the true one first, or so many at random."""
    n = min(len(one.curve) for one in specs)
    every = list(permutations(range(n), 2))
    true = (0, n - 1)
    rest = [pair for pair in every if pair != true]
    if len(rest) >= ORDERS:
        picks = np.random.default_rng(0).choice(len(rest), ORDERS - 1, replace=False)
        rest = [rest[i] for i in picks.tolist()]
    return [true, *rest]


def _at(one: Specification, layer: int, n: int) -> int:
    """The layer's place in a curve that may have more: the last is the last of each."""
    return layer if layer < n - 1 else len(one.curve) - 1


def _effects(specs: Sequence[Specification], first: int, last: int) -> np.ndarray:
    n = min(len(one.curve) for one in specs)
    return np.array([one.curve[_at(one, last, n)] - one.curve[_at(one, first, n)] for one in specs])


def _share(specs: Sequence[Specification], first: int, last: int) -> float:
    """The share of specifications whose interval lies below 0 where these layers stand for the first and the last."""
    n = min(len(one.curve) for one in specs)
    falls = []
    for one in specs:
        r = one.replicates
        if not r.size:
            falls.append(False)
            continue
        change = r[_at(one, last, n)] - r[_at(one, first, n)]
        falls.append(bool(np.nanpercentile(change, 97.5) < 0))
    return float(np.mean(falls))


def _share_of(specs: Sequence[Specification]) -> float:
    return float(np.mean([one.verdict == "falls" for one in specs]))


def _median_replicates(specs: Sequence[Specification]) -> np.ndarray:
    """(r,) the median effect in each resample of the text; empty where specifications don't share these."""
    if not all_paired(specs):
        return np.empty(0)
    result: np.ndarray = np.median([one.replicates[-1] - one.replicates[0] for one in specs], axis=0)
    return result


def _interval(replicates: np.ndarray) -> tuple[float, float]:
    if not np.isfinite(replicates).any():
        return np.nan, np.nan
    low, high = np.nanpercentile(replicates, [2.5, 97.5])
    return float(low), float(high)


def _plain(value: float, name: str) -> str:
    return f"{value:+.3f}" if name == "median effect" else f"{value:.0%}"


def _p(one: Statistic) -> str:
    return "" if not np.isfinite(one.p) else f", p = {one.p:.3f}"
