"""Joint tests of all specifications: their median effect, and the share that falls (Simonsohn, Simmons & Nelson 2020,
Specification curve analysis, doi:10.1038/s41562-020-0912-z).

The effect of a specification is the value of its curve in the last layer less that in the first; it FALLS if the 95%
interval of the effect lies below 0. All specifications measure one text, so that they aren't independent, and counting
them is no test. Their joint statistics are therefore compared with two nulls:

- *Layers shuffled*: any layer may be called first and any other last, in all specifications at once. Neighbouring
  layers are alike, so that this test rejects too often: for random walks over 5 to 31 layers, p reaches .05 in 13% to
  18%.
- *The untrained twin*: the same ways of measuring models of the same shape with random weights, drawn once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.report import LabelledResults, decimal
from ctxexp_lab.multiverse.specifications import Specification, all_paired, specifications

if TYPE_CHECKING:
    import pandas as pd

MAX_LAYER_PAIRS = 400  # pairs (first, last) of layers that are tried at most


@dataclass(frozen=True)
class Statistic:
    """A joint statistic of the trained models beside that of a null.

    Args:
        name: `median effect`, or `share that falls` (0 to 1).
        value: The statistic of the trained models.
        low: Lower end of its 95% interval over resamples of the text, all specifications together; NaN where not known.
        high: Upper end.
        null: Name of the null: `layers shuffled ...` or `untrained twin`.
        expected: The statistic under the null: its median over pairs of layers, or that of the untrained models.
        p: Layers shuffled: the share of pairs of layers whose statistic is as low (median) or as high (share) as the
            value. Untrained twin: the share of resamples of the text in which the trained models' median isn't below
            the untrained ones', the observed text counted as one of them; NaN for the share, and where not known.
        draws: Number of pairs of layers, or of resamples plus one (0: none); the smallest p is 1 / draws.
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
    """Joint statistics of all specifications; `null` (draws, n), sorted within each draw, and `twin` (n,),
    sorted, are effects for a figure."""

    statistics: tuple[Statistic, ...]
    null: np.ndarray
    twin: np.ndarray

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each statistic and null."""
        import pandas as pd

        return pd.DataFrame([vars(one) for one in self.statistics])

    def sentence(self) -> str:
        """A sentence with the median effect and the share that falls, each beside its value under the nulls."""
        parts = []
        for name in ("median effect", "share that falls"):
            these = [one for one in self.statistics if one.name == name]
            value = these[0]
            phrase = f"{name} {_format_value(value.value, name)}"
            if np.isfinite(value.low):
                phrase += f" [{_format_value(value.low, name)}, {_format_value(value.high, name)}]"
            nulls = [f"{one.null}: {_format_value(one.expected, name)}{_format_p(one)}" for one in these]
            parts.append(f"{phrase} ({'; '.join(nulls)})")
        return "; ".join(parts)


def joint(runs: Sequence[LabelledResults]) -> Joint | None:
    """The joint statistics of the runs' trained specifications, with the untrained runs as the twin; None where no run
    gives a trained specification."""
    trained, twins = specifications(runs), specifications(runs, untrained=True)
    if not trained:
        return None
    layer_pairs = _layer_pairs(trained)
    null = np.array([_effects(trained, a, b) for a, b in layer_pairs])
    shares = np.array([_share_falling_between(trained, a, b) for a, b in layer_pairs])
    median, share = float(np.median([one.effect for one in trained])), _share_with_verdict_falls(trained)
    low, high = _interval(_median_replicates(trained))
    name = f"layers shuffled, {len(layer_pairs)} orders"
    statistics = [
        Statistic("median effect", median, low, high, name, float(np.median(null)),
                  float(np.mean(np.median(null, axis=1) <= median + 1e-12)), len(layer_pairs)),
        Statistic("share that falls", share, np.nan, np.nan, name, float(np.median(shares)),
                  float(np.mean(shares >= share - 1e-12)), len(layer_pairs)),
    ]  # fmt: skip
    if twins:
        statistics += _against_twin(trained, twins, statistics)
    return Joint(tuple(statistics), np.sort(null, axis=1), np.sort([one.effect for one in twins]))


def _against_twin(
    trained: Sequence[Specification], twins: Sequence[Specification], own: Sequence[Statistic]
) -> list[Statistic]:
    """The statistics with the untrained models as the null; `own` are those with layers shuffled."""
    expected = float(np.median([one.effect for one in twins]))
    p, draws = np.nan, 0
    if all_paired([*trained, *twins]):
        above = _median_replicates(trained) - _median_replicates(twins) >= 0
        draws = len(above) + 1
        p = float((above.sum() + 1) / draws)
    median, share = own
    return [
        Statistic(median.name, median.value, median.low, median.high, "untrained twin", expected, p, draws),
        Statistic(
            share.name, share.value, np.nan, np.nan, "untrained twin", _share_with_verdict_falls(twins), np.nan, 0
        ),
    ]


def _layer_pairs(specs: Sequence[Specification]) -> list[tuple[int, int]]:
    """Pairs (first, last) of layers: the true one first, then all others, or MAX_LAYER_PAIRS - 1 random ones of
    them."""
    n = min(len(one.curve) for one in specs)
    every = list(permutations(range(n), 2))
    true = (0, n - 1)
    rest = [pair for pair in every if pair != true]
    if len(rest) >= MAX_LAYER_PAIRS:
        picks = np.random.default_rng(0).choice(len(rest), MAX_LAYER_PAIRS - 1, replace=False)
        rest = [rest[i] for i in picks.tolist()]
    return [true, *rest]


def _layer_of(one: Specification, layer: int, n: int) -> int:
    """The layer's index in a curve of possibly more than n layers: the last of n is the last of the curve."""
    return layer if layer < n - 1 else len(one.curve) - 1


def _effects(specs: Sequence[Specification], first: int, last: int) -> np.ndarray:
    n = min(len(one.curve) for one in specs)
    return np.array([one.curve[_layer_of(one, last, n)] - one.curve[_layer_of(one, first, n)] for one in specs])


def _share_falling_between(specs: Sequence[Specification], first: int, last: int) -> float:
    """The share of specifications that fall from layer `first` to layer `last`, by their replicates."""
    n = min(len(one.curve) for one in specs)
    falls = []
    for one in specs:
        r = one.replicates
        if not r.size:
            falls.append(False)
            continue
        change = r[_layer_of(one, last, n)] - r[_layer_of(one, first, n)]
        falls.append(bool(np.nanpercentile(change, 97.5) < 0))
    return float(np.mean(falls))


def _share_with_verdict_falls(specs: Sequence[Specification]) -> float:
    """The share of specifications that fall from the first to the last layer, by the verdict that they hold."""
    return float(np.mean([one.verdict == "falls" for one in specs]))


def _median_replicates(specs: Sequence[Specification]) -> np.ndarray:
    """(r,) the median effect in each resample of the text; empty where specifications don't share these."""
    if not all_paired(specs):
        return np.empty(0)
    return np.median([one.replicates[-1] - one.replicates[0] for one in specs], axis=0)


def _interval(replicates: np.ndarray) -> tuple[float, float]:
    if not np.isfinite(replicates).any():
        return np.nan, np.nan
    low, high = np.nanpercentile(replicates, [2.5, 97.5])
    return float(low), float(high)


def _format_value(value: float, name: str) -> str:
    return decimal(value, 3, sign=True) if name == "median effect" else f"{value:.0%}"


def _format_p(one: Statistic) -> str:
    return "" if not np.isfinite(one.p) else f", p = {one.p:.3f}"
