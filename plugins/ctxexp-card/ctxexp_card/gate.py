"""Two runs over the same text: has a curve moved by more than a margin, for certain?

Every value of every curve is one question, so that one interval in twenty would miss by chance: the intervals here are
simultaneous, as wide as lets all of them hold their values in 95% of resamples at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ctxexp.errors import ConfigError, DataError, MetricError, near
from ctxexp.report.charts import PAPER
from ctxexp.report.differences import paired
from ctxexp.report.wording import canonical, main_curves
from ctxexp.results import Results
from ctxexp.results.run_info import RunInfo
from ctxexp.results.values import LAYER, Key

if TYPE_CHECKING:
    import pandas as pd

MARGIN = 0.01  # in the curves' unit, all cosines or shares
LEVEL = 0.95

Verdict = Literal["held", "open", "moved"]


class Moved(NamedTuple):
    """B's curve less A's at one layer, with its simultaneous interval and what that says of the margin."""

    key: Key
    layer: int
    a: float
    b: float
    difference: float
    low: float
    high: float
    verdict: Verdict


@dataclass(frozen=True)
class Gate:
    """Every value compared, against the margin; `bare` are measures without replicates, which aren't."""

    values: tuple[Moved, ...]
    margin: float
    bare: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def moved(self) -> list[Moved]:
        """What moved beyond the margin for certain: its whole interval lies outside."""
        return [one for one in self.values if one.verdict == "moved"]

    @property
    def open(self) -> list[Moved]:
        """What may have: its interval lies partly outside."""
        return [one for one in self.values if one.verdict == "open"]

    @property
    def frame(self) -> pd.DataFrame:
        """A row a curve and layer."""
        import pandas as pd

        rows = [{"curve": str(one.key), **one._asdict()} for one in self.values]
        return pd.DataFrame(rows).drop(columns="key")


def diff(
    a: Results,
    b: Results,
    *,
    margin: float = MARGIN,
    measures: Sequence[str] = (),
    same_text: bool = True,
) -> Gate:
    """How far each headline curve (anisotropy and the paper's measures, adjusted) of b lies from a's, layer by layer.

    Runs over one text with one seed drew the same sentences, so that what both owe to these cancels. `measures`: these
    instead of the headlines. `same_text=False` lets runs over different texts be compared, as independent ones.
    Raises ConfigError or DataError for runs that can't be.
    """
    if not 0 <= margin < np.inf:
        raise ConfigError(f"margin={margin}: expected 0 or more, in the unit of the curves (cosines and shares)")
    _require(a, b, same_text=same_text)
    keys = _keys(a, b, measures)
    drawn = {key: _replicates(a, b, key) for key in keys}
    known = [key for key in keys if drawn[key] is not None]
    if not known:
        raise DataError("no curve of these runs has bootstrap replicates: run them with bootstrap=1000")
    width = _simultaneous([x for x in drawn.values() if x is not None])
    values: list[Moved] = []
    for key in known:
        one, other = a.held[key].value, b.held[key].value
        replicates = drawn[key]
        assert replicates is not None
        for layer, (x, y, r) in enumerate(zip(one, other, replicates, strict=True)):
            if not np.isfinite([x, y]).all():
                if np.isfinite([x, y]).any():  # defined for one of them alone
                    values.append(Moved(key, layer, x, y, np.nan, np.nan, np.nan, "moved"))
                continue
            half = width * float(np.std(r, ddof=1))
            value = float(y - x)
            values.append(Moved(key, layer, float(x), float(y), value, value - half, value + half, "held"))
    judged = tuple(one._replace(verdict=_verdict(one, margin)) for one in values)
    bare = tuple(str(key) for key in keys if drawn[key] is None)
    return Gate(judged, margin, bare, tuple(_notes(a.info, b.info)))


def _verdict(one: Moved, margin: float) -> Verdict:
    if one.verdict == "moved" or one.low > margin or one.high < -margin:
        return "moved"
    return "held" if -margin <= one.low and one.high <= margin else "open"


def _require(a: Results, b: Results, *, same_text: bool) -> None:
    if a.n_layers != b.n_layers:
        raise ConfigError(
            f"{a.n_layers} layers against {b.n_layers}: curves of equally deep models are compared; `ctxexp compare` "
            "(the distribution ctxexp-compare) takes any two"
        )
    if not same_text or paired(a, b):
        return
    one, other = a.info, b.info
    if one.corpus.fingerprint != other.corpus.fingerprint:
        raise ConfigError(
            f"the texts differ ({one.corpus.name}, {one.corpus.sentences:,} sentences; {other.corpus.name}, "
            f"{other.corpus.sentences:,}): measure both over one text, or say same_text=false"
        )
    raise ConfigError(
        f"resamples differ (seed {one.seed} and {other.seed}, bootstrap {one.bootstrap} and {other.bootstrap}, "
        f"{one.resampled.n} and {other.resampled.n} {one.resampled.unit}s): measure both with the same, or say "
        "same_text=false"
    )


def _keys(a: Results, b: Results, measures: Sequence[str]) -> list[Key]:
    """The main curves of the headline measures, or of those asked for, that both runs have."""
    found = [key for key in main_curves(a) if key.place == LAYER and key in b.held]
    if not measures:
        heads = [key for key in found if key.measure in PAPER and canonical(a, key.measure) == key.measure]
        if not heads and not found:
            raise DataError("these runs have no measure in common")
        return heads or found
    for name in measures:
        if name not in (key.measure for key in found):
            raise MetricError(f"no measure {name!r} in both runs{near(name, dict.fromkeys(k.measure for k in found))}")
    return [key for key in found if key.measure in measures]


def _replicates(a: Results, b: Results, key: Key) -> np.ndarray | None:
    """Replicates of the difference (n_layers, r); those of independent runs are paired at random."""
    x, y = a.replicates.get(key), b.replicates.get(key)
    n = len(a.held[key].value)
    if x is None or y is None or x.shape != y.shape or len(x) != n:
        return None
    if not paired(a, b):
        y = y[:, np.random.default_rng(len(y)).permutation(y.shape[1])]
    result: np.ndarray = y.astype(np.float64) - x
    return result


def _simultaneous(drawn: Sequence[np.ndarray]) -> float:
    """By how many standard deviations each interval is taken, so that in 95% of resamples all hold at once."""
    every = np.concatenate(list(drawn))
    spread = np.std(every, axis=1, ddof=1)
    free = np.isfinite(spread) & (spread > 0)
    if not free.any():
        return 0.0
    away = np.abs(every[free] - every[free].mean(axis=1, keepdims=True)) / spread[free, None]
    return float(np.quantile(away.max(axis=0), LEVEL))


def _notes(a: RunInfo, b: RunInfo) -> list[str]:
    """What else differs than the model."""
    kinds = {
        "control": (a.control, b.control),
        "transform": (a.transform.name, b.transform.name),
        "baseline": (a.baseline.name, b.baseline.name),
        "min_contexts": (a.corpus.min_contexts, b.corpus.min_contexts),
        "words without a vector": (a.corpus.skipped, b.corpus.skipped),
    }
    for label in sorted(a.measures.keys() & b.measures.keys()):
        kinds[f"chance level of {label}"] = (a.measures[label].level, b.measures[label].level)
    return [f"{kind} differs: {one} and {other}" for kind, (one, other) in kinds.items() if one != other]
