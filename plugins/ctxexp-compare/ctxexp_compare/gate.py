"""Two runs over the same text: do all curves of one certainly lie within a margin of the other's, or has one moved?

Every value of every curve is one question, so that one interval in twenty would miss by chance: the intervals here are
simultaneous, as wide as lets all of them hold their values in 95% of texts at once. A test of equivalence passes when
all of them lie inside the margin, as two one-sided tests do (Schuirmann 1987, doi:10.1007/BF01068419), not when none
lies outside: a text too small to tell passes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ctxexp import Results
from ctxexp.errors import ConfigError, DataError, MetricError, UnknownName
from ctxexp.maths import Resamples
from ctxexp.results import LAYER, Key, RunInfo

if TYPE_CHECKING:
    import pandas as pd

PAPER_MEASURES = ("self_similarity", "anisotropy", "intra_sentence_similarity", "max_explainable_variance")
MARGIN = 0.01  # in the curves' unit, all cosines or shares
CONFIDENCE = 0.95
POWER = 0.8  # share of texts like this in which the smallest move that is named would be found
FEWEST = 100  # replicates: fewer don't tell a 95% interval's ends
FEW = 20  # documents or sentences: with fewer a model fails against itself in more than 5% of texts

Verdict = Literal["held", "open", "moved"]


class CurveDifference(NamedTuple):
    """B's curve less A's at one layer, with its simultaneous interval and what that says of the margin.

    `smallest` is how far the value would have to move to be found, beyond the margin for certain, in 80% of texts like
    this; NaN where no interval is known.
    """

    key: Key
    layer: int
    a: float
    b: float
    difference: float
    low: float
    high: float
    smallest: float
    verdict: Verdict


@dataclass(frozen=True)
class Gate:
    """Every value compared, against the margin."""

    values: tuple[CurveDifference, ...]
    margin: float
    notes: tuple[str, ...]

    @property
    def outside(self) -> list[CurveDifference]:
        """Values that moved beyond the margin for certain: the whole interval lies outside."""
        return [one for one in self.values if one.verdict == "moved"]

    @property
    def open(self) -> list[CurveDifference]:
        """Values that may have moved beyond the margin: the interval lies partly outside."""
        return [one for one in self.values if one.verdict == "open"]

    @property
    def verdict(self) -> Verdict:
        """`moved` if any value did, `held` if every one is certainly within the margin, `open` otherwise."""
        return "moved" if self.outside else "open" if self.open else "held"

    @property
    def smallest(self) -> CurveDifference | None:
        """The value that has to move furthest to be found (its `smallest`); None where no interval is known."""
        bounded = [one for one in self.values if np.isfinite(one.smallest)]
        return max(bounded, key=lambda one: one.smallest, default=None)

    @property
    def widest(self) -> float:
        """The largest half of an interval: at a smaller margin nothing passes on this text."""
        return max(((one.high - one.low) / 2 for one in self.values if np.isfinite(one.low)), default=np.nan)

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
    independent_sentences: bool = False,
) -> Gate:
    """How far each headline curve (the paper's four measures) of b lies from a's, layer by layer.

    Args:
        a: A run, of a text whose documents are known: sentences of one document are alike, and intervals that take
            them for independent are too narrow.
        b: Another, over the same text with the same seed, so that what both owe to its sentences cancels.
        margin: 0 or more, in the curves' unit (cosines and shares).
        measures: These instead of the headlines.
        same_text: False lets runs over different texts be compared, as independent ones; their words differ too,
            which no interval knows of.
        independent_sentences: True takes a text without documents, on your word that its sentences are independent.

    Returns:
        Every value with its simultaneous interval and verdict.

    Raises:
        ConfigError: Runs that can't be compared, or a text without documents.
        DataError: Fewer than 100 bootstrap replicates, or fewer than 20 documents.
        MetricError: A measure that one of them doesn't have.
    """
    if not 0 <= margin < np.inf:
        raise ConfigError(f"margin={margin}: expected 0 or more, in the unit of the curves (cosines and shares)")
    _require(a, b, same_text=same_text)
    keys = _keys(a, b, measures)
    if any(a.info.measure(key.measure).over != "pair" for key in keys):  # pairs of sentences have units of their own
        for run in (a, b):
            _require_units(run.info, independent_sentences=independent_sentences)
    by_key = _all_replicates(a, b, keys)
    width = _simultaneous(list(by_key.values()), min(a.info.resampled.n, b.info.resampled.n))
    values: list[CurveDifference] = []
    for key, replicates in by_key.items():
        one, other = a.by_key[key].value, b.by_key[key].value
        for layer, (x, y, r) in enumerate(zip(one, other, replicates, strict=True)):
            if not np.isfinite([x, y]).all():
                if np.isfinite([x, y]).any():  # defined for one of them alone
                    values.append(CurveDifference(key, layer, x, y, np.nan, np.nan, np.nan, np.nan, "moved"))
                continue
            spread, value = float(np.std(r, ddof=1)), float(y - x)
            half = width * spread
            smallest = margin + half + NormalDist().inv_cdf(POWER) * spread
            values.append(
                CurveDifference(key, layer, float(x), float(y), value, value - half, value + half, smallest, "held")
            )
    verdicts = tuple(one._replace(verdict=_verdict(one, margin)) for one in values)
    return Gate(verdicts, margin, tuple(_notes(a.info, b.info)))


def _verdict(one: CurveDifference, margin: float) -> Verdict:
    if one.verdict == "moved" or one.low > margin or one.high < -margin:
        return "moved"
    return "held" if -margin <= one.low and one.high <= margin else "open"


def _require(a: Results, b: Results, *, same_text: bool) -> None:
    if a.n_layers != b.n_layers:
        raise ConfigError(
            f"{a.n_layers} layers against {b.n_layers}: curves of equally deep models are compared; `ctxexp compare` "
            "takes any two"
        )
    if a.info.model.layers != b.info.model.layers:
        layers = " and ".join(str(list(run.info.model.layers) or "all") for run in (a, b))
        raise ConfigError(f"layers differ (model.layers: {layers}): measure the same layers of both")
    if not same_text or a.info.shares_resamples(b.info):
        return
    one, other = a.info, b.info
    if one.corpus.fingerprint != other.corpus.fingerprint:
        raise ConfigError(
            f"the texts differ ({one.corpus.name}, {one.corpus.sentences:,} sentences; {other.corpus.name}, "
            f"{other.corpus.sentences:,}): measure both over one text, or say same_text=false"
        )
    raise ConfigError(
        f"resamples differ (seed {one.seed} and {other.seed}, bootstrap {one.bootstrap} and {other.bootstrap}, "
        f"{one.resampled.clusters} and {other.resampled.clusters}): measure both with the same, or say "
        "same_text=false"
    )


def _require_units(info: RunInfo, *, independent_sentences: bool) -> None:
    """Raise ConfigError for intervals that take sentences for independent, DataError for those of a few units."""
    is_embedded = info.corpus.name == "polysemy" and "path" not in info.corpus.choices  # each was written by itself
    if not (independent_sentences or is_embedded) and info.resampled.unit in ("sentence", "shard of sentences"):
        raise ConfigError(
            f"the documents of {info.corpus.name} are not known, so that its sentences would be taken for independent: "
            "those of one document are alike, and models that differ by nothing would fail more often than in 5% of "
            "texts. Say where documents end (dataset.documents=blank, or file), or say "
            "independent_sentences=true if no two sentences come from one text"
        )
    if 0 < info.resampled.n < FEW:
        raise DataError(
            f"{info.corpus.name} has {info.resampled.clusters}: expected {FEW} or more, of fewer "
            "intervals are too narrow to gate by"
        )


def _all_replicates(a: Results, b: Results, keys: Sequence[Key]) -> dict[Key, np.ndarray]:
    """Those of every curve. Raises DataError without enough of any."""
    by_key = {key: replicates for key in keys if (replicates := _replicates(a, b, key)) is not None}
    if bare := [str(key) for key in keys if key not in by_key]:
        raise DataError(
            f"{', '.join(bare)}: no bootstrap replicates, so nothing to judge by: run with bootstrap=1000, or leave "
            "out by measures="
        )
    if (fewest := min(x.shape[1] for x in by_key.values())) < FEWEST:
        raise DataError(
            f"bootstrap={fewest}: expected {FEWEST} replicates or more, which tell where a 95% interval ends; run "
            "both with bootstrap=1000"
        )
    return by_key


def _keys(a: Results, b: Results, measures: Sequence[str]) -> list[Key]:
    """The main curves of the headline measures, or of those asked for, that both runs have. Raises MetricError for what
    one of them alone has: what isn't compared can't pass."""
    ours, theirs = ([key for key in run.main_keys if key.place == LAYER] for run in (a, b))
    common = [key for key in ours if key in b.by_key]
    if not measures:
        if not common:
            raise DataError("these runs have no measure in common")
        heads = [key for run, keys in ((a, ours), (b, theirs)) for key in keys if _is_headline(run, key.measure)]
        if alone := [str(key) for key in heads if key not in common]:
            both = ",".join(dict.fromkeys(key.measure for key in common))
            raise MetricError(f"only one of the runs has {', '.join(alone)}: measure both, or say measures={both}")
        return list(dict.fromkeys(heads)) or common
    for name in measures:
        if name not in (key.measure for key in common):
            raise UnknownName("measure of both runs", name, {key.measure for key in common})
    return [key for key in common if key.measure in measures]


def _is_headline(run: Results, measure: str) -> bool:
    return measure in PAPER_MEASURES and run.info.definition_name(measure) == measure


def _replicates(a: Results, b: Results, key: Key) -> np.ndarray | None:
    """Replicates of the difference (n_layers, r); those of independent runs are paired at random."""
    x, y = a.replicates.get(key), b.replicates.get(key)
    n = len(a.by_key[key].value)
    if x is None or y is None or x.shape != y.shape or len(x) != n:
        return None
    if not a.info.shares_resamples(b.info):
        y = y[:, np.random.default_rng(len(y)).permutation(y.shape[1])]
    return y.astype(np.float64) - x


def _simultaneous(drawn: Sequence[np.ndarray], n: int) -> float:
    """By how many of the replicates' standard deviations each interval is taken, so that in 95% of texts all hold at
    once: of `n` documents or sentences (0: unknown), by Student's distribution.

    Replicates are widened for intervals of one value (`student`); those further out need more.
    """
    from scipy.special import ndtr, stdtrit

    every = np.concatenate(list(drawn))
    spread = np.std(every, axis=1, ddof=1)
    free = np.isfinite(spread) & (spread > 0)
    if not free.any():
        return 0.0
    away = np.abs(every[free] - every[free].mean(axis=1, keepdims=True)) / spread[free, None]
    width = float(np.quantile(away.max(axis=0), CONFIDENCE))
    if n < 2:
        return width
    heavy = -float(stdtrit(n - 1, ndtr(-width))) * float(np.sqrt(n / (n - 1)))
    return max(width, heavy / Resamples.student(n))


def _notes(a: RunInfo, b: RunInfo) -> list[str]:
    """Differences between the runs other than the model."""
    kinds = {
        "control": (a.control, b.control),
        "transform": (a.transform.name, b.transform.name),
        "baseline": (a.baseline.name, b.baseline.name),
        "min_contexts": (a.corpus.min_contexts, b.corpus.min_contexts),
        "words.weights": (a.mix.weights, b.mix.weights),
        "filling of bands of frequency": (a.mix.mark or "all bands", b.mix.mark or "all bands"),
        "words without a vector": (a.corpus.skipped, b.corpus.skipped),
    }
    for label in sorted(a.measures.keys() & b.measures.keys()):
        kinds[f"chance level of {label}"] = (a.measures[label].level, b.measures[label].level)
    return [f"{kind} differs: {one} and {other}" for kind, (one, other) in kinds.items() if one != other]
