"""The contract of metrics: complete groups of rows in, numbers out; and which metrics ship."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self

import numpy as np

from ctxexp.dataset import Corpus
from ctxexp.errors import MetricError
from ctxexp.groups import Block, Group
from ctxexp.maths.resampling import interval, jackknife, mean_cosine_influence
from ctxexp.maths.statistics import aggregate
from ctxexp.results.run_info import MeasureInfo

if TYPE_CHECKING:
    from ctxexp.occurrences import Text

OF_RUN = "run"  # among a metric's baselines, that of the run's `baseline=`

Over = Literal["occurrence", "word", "sense", "sentence", "pair", "sample", "corpus", "text"]
"""Which rows form a group: one row by itself; a word's rows; a word's rows that have a sense label; a sentence's rows;
the sentence vectors of a sub-set of gold pairs; a random group of the baseline; all rows of the sentences; all rows, of
bounded words too, each once."""


class GroupScores(NamedTuple):
    """The scores of a metric's groups, in the order of the updates."""

    keys: list[Hashable]
    scores: np.ndarray  # (groups,) float64
    weights: np.ndarray | None = None  # (groups,) in the mean over groups; None: equal


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its 95% interval, and the bootstrap replicates that runs are compared by.

    Example:
        >>> Estimate(0.5, low=0.4, high=0.6).value
        0.5
    """

    value: float
    low: float
    high: float
    replicates: np.ndarray | None = None  # (r,)

    @classmethod
    def of(cls, value: float, replicates: np.ndarray) -> Self:
        """The value with the 95% interval of its replicates (r,)."""
        low, high = interval(replicates[None])
        return cls(value, low.item(), high.item(), replicates)


class Output:
    """Something that a metric makes of one place and that is kept as files, such as a spectrum or points to draw.

    Example:
        >>> from tempfile import mkdtemp
        >>> class Note(Output):
        ...     def write(self, folder):
        ...         (folder / "note.txt").write_text("flat", encoding="utf-8")
        >>> folder = Path(mkdtemp())
        >>> Note().write(folder)
        >>> [path.name for path in folder.iterdir()]
        ['note.txt']
    """

    def write(self, folder: Path) -> None:
        """Write the files of one place.

        Args:
            folder: The place's, `<label>/layer_03`.
        """

    def write_together(self, by_place: Mapping[str, Self], folder: Path, *, n_layers: int, title: str) -> None:
        """Write what needs all places, once they are measured; called on one of them.

        Args:
            by_place: This output of each place, by the name of the place's folder (`layer_03`, `table_input`).
            folder: The metric's, which holds those of the places.
            n_layers: How many layers the model has.
            title: The run's.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a metric's values are read, by figures, tables and claims.

    Args:
        unit: The unit of its values: `cosine`, `l2 norm`; `share`: of a group's variance, 1 where its rows lie on one
            line through the origin.
        subject: What a change of the value is about, in the plural (`words`); with `lower` and `higher`, or none.
        lower: What it grows where the value falls: `more context-specific`.
        higher: What it grows where the value rises.
        main: The statistic that stands for the metric; empty: `adjusted` (the value less its baseline) where there is
            one, else `raw` (the value).
        line: The value at which figures of adjusted curves draw a reference line.
        maximum: The largest value of a measure with a baseline: 1 gives it a share of the room above that.
        extremes: The names of the tables of the ten highest and the ten lowest words.
        own_baseline: A few words on a `baseline` that the metric computes itself, in place of the run's.

    Example:
        >>> Reading(subject="words", lower="more context-specific", higher="less context-specific").main
        ''
    """

    unit: str = ""
    subject: str = ""
    lower: str = ""
    higher: str = ""
    main: str = ""
    line: float | None = None
    maximum: float | None = None
    extremes: tuple[str, str] | None = None
    own_baseline: str = ""


class Metric(ABC):
    """A measure of one layer, fed one complete group of rows at a time. One instance serves one layer.

    Attributes:
        over: The kind of groups that it gets: `word`, `sentence`, `pair` ...
        title: Its name on figures (default: its label).
        definition: One line on what is computed.
        variant: Tells metrics of one title apart, empty for the usual one: variants are panels of one figure, and none
            is compared with published values of another.
        reading: How its values are read.
        measures_embedding_tables: They are measured too, each a group of its own, whose `table` tells its tokens.
        invariances: What leaves the numbers as they are: `rotation` of the space, `scale` (one factor for all rows),
            `row_scale` (a factor per row), `shift` (one vector added to all rows), `permutation` of a group's rows. An
            instance may have its own, where options decide. `ctxexp.testing.check` holds a metric to them.
        min_rows: The least number of rows that a group must have to be scored (in `GroupMean`: 2).
        baselines: What a metric with scores is held against, each by `run` (the run's `baseline=`) or by the name of a
            registered baseline: `baseline` and `adjusted` are of the first, `<name>_baseline` and `<name>_adjusted` of
            each other one. A run's baseline that gives groups baselines of their own comes first in any case. A score
            that depends on the number of rows, even for noise, needs random groups of each group's own size
            (`size_matched`).
        resampling: The source of bootstrap resamples of a metric with intervals of its own, and how many there are (0:
            intervals are NaN). It is set before the first group, in the same state in every layer.

    Example:
        >>> class Rows(Metric):
        ...     over = "word"
        ...     def __init__(self):
        ...         self.sizes = []
        ...     def update(self, group):
        ...         self.sizes.append(len(group.x))
        ...     def compute(self):
        ...         return {"raw": float(np.mean(self.sizes))}
        >>> metric = Rows()
        >>> metric.update(Group("bank", np.zeros((4, 8), np.float32)))
        >>> metric.compute()
        {'raw': 4.0}
    """

    over: ClassVar[Over]
    title: str = ""
    definition: str = ""
    variant: str = ""
    reading: ClassVar[Reading] = Reading()
    measures_embedding_tables: ClassVar[bool] = False
    invariances: frozenset[str] = frozenset()
    min_rows: ClassVar[int] = 1
    _sample: int | None = None  # so many random groups only
    baselines: tuple[str, ...] = (OF_RUN,)
    resampling: tuple[np.random.Generator, int] = (np.random.default_rng(0), 0)
    cosine_statistic: ClassVar[str] = ""
    """The statistic, if any, that is the mean cosine of random occurrences: `baseline` where that is the baseline
    (`baseline_value` is `mean_cosine`), `mean_cosine` of anisotropy. Its expectation has a closed form, which takes the
    place of a draw. A GroupMean whose `score` itself is the mean cosine leaves `baseline_value` as it is."""

    def __init_subclass__(cls, **arguments: object) -> None:
        """Refuse what nothing would read: a part of `reading` beside it, or what has an underscore in the contract."""
        super().__init_subclass__(**arguments)
        contract = {name for base in cls.__mro__ if base.__module__ == __name__ for name in vars(base)}
        for name in vars(cls):
            if name in Reading.__dataclass_fields__:
                raise MetricError(f"{cls.__name__}.{name}: expected reading = Reading({name}=...)")
            if f"_{name}" in contract:
                raise MetricError(f"{cls.__name__}.{name}: expected _{name}, which is ctxexp's own and may change")

    def require(self, corpus: Corpus) -> None:  # noqa: B027  # optional
        """Check, before anything is encoded, that the corpus has what is measured.

        Raises:
            DataError: It doesn't.
        """

    def bind_text(self, text: Text) -> None:  # noqa: B027  # optional
        """Take the measured text before the first group, for metrics that need more than groups of rows.

        Not called where pairs or tables are measured."""

    @abstractmethod
    def update(self, group: Group) -> None:
        """Take one complete group.

        Args:
            group: The rows of a word, a sentence or a table, in the corpus's order.
        """

    def update_block(self, block: Block) -> None:
        """Take many groups of equal size at once. Override where a batch is faster."""
        for group in block:
            self.update(group)

    @abstractmethod
    def compute(self) -> Mapping[str, float | Estimate]:
        """The layer's statistics, once all groups were taken.

        Returns:
            Values by name, NaN where undefined. A metric over pairs may name a task, as in `STS12/all`.
        """

    def baseline_value(self, x: np.ndarray) -> float:
        """The measure's value on a random group `x` (n, d): its baseline; NaN if it has none."""
        return float("nan")

    def _baseline_influence(self, x: np.ndarray) -> np.ndarray | None:
        """The influence of each row of a random group (n, d) on `baseline_value`, (n,) float64; None where that isn't
        known."""
        return mean_cosine_influence(x) if self.cosine_statistic else None

    def outputs(self) -> Mapping[str, Output | list[dict[str, object]]]:
        """The place's results beside the statistics, by name, after `compute` (optional): files, or rows of the
        measure's table, such as one per sub-set, to which the layer is added."""
        return {}


class GroupMean(Metric):
    """The mean over groups of a pure function of one group: most of the field.

    A subclass defines `score`, and `baseline_value` where the paper's baseline is another function than the score.
    `sample` limits the groups to a seeded random sample (None: all). `baselines`: see `Metric`.

    Example:
        >>> class Spread(GroupMean):
        ...     over = "word"
        ...     def score(self, x):
        ...         return x.std(axis=-2).mean(axis=-1)
        >>> metric = Spread()
        >>> metric.update(Group("bank", np.array([[0.0, 0.0], [2.0, 2.0]])))
        >>> metric.compute()["raw"]
        1.0
    """

    min_rows: ClassVar[int] = 2  # smaller groups have no score: NaN, and counted as undefined

    def __init__(self, *, sample: int | None = None, baselines: Sequence[str] = (OF_RUN,)) -> None:
        if sample is not None and sample < 1:
            raise MetricError(f"sample={sample}: expected a positive number of groups, or null for all")
        if not baselines or isinstance(baselines, str):
            raise MetricError(f"baselines={baselines!r}: expected names of baselines, {OF_RUN} among them or not")
        self._sample, self.baselines = sample, tuple(baselines)
        self._keys: list[Hashable] = []
        self._scores: list[np.ndarray] = []
        self._weights: Callable[[np.ndarray], np.ndarray | None] | None = None

    @abstractmethod
    def score(self, x: np.ndarray) -> np.ndarray:
        """The scores of groups.

        Args:
            x: Groups of equal size (..., n, d). Functions of `ctxexp.maths.geometry` share their work with other
                metrics if this is marked by `ctxexp.maths.geometry.takes_prepared`, and so do influences.

        Returns:
            Scores (...,) float64; NaN where undefined.
        """

    def baseline_value(self, x: np.ndarray) -> float:
        return float(self.score(x[None])[0]) if len(x) >= self.min_rows else float("nan")

    def influence(self, x: np.ndarray) -> np.ndarray:
        """The influence of each row on its group's score, (..., n) float64 (`ctxexp.maths.resampling`), for intervals.

        By leaving out up to eight rows of a group. Override where there is a formula, which is faster.
        """
        return jackknife(x, self.score)

    def _set_weights(self, weights: Callable[[np.ndarray], np.ndarray | None]) -> None:
        """Take, before `compute`, the weights of groups in the mean over them.

        Args:
            weights: Whether each group has a score, (groups,) bool, to weights (groups,); None: equal.
        """
        self._weights = weights

    def _row_influence(self, block: Block) -> np.ndarray:
        """The influence of each row on its group's score, (w, n) float64; override for scores of more than the rows."""
        return block.prepared_rows.apply(self.influence)

    def _baseline_influence(self, x: np.ndarray) -> np.ndarray:
        if baseline_is_score(self):
            return self.influence(x[None])[0]
        values = jackknife(x[None], lambda groups: np.array([self.baseline_value(group) for group in groups]))
        return values[0]

    def update(self, group: Group) -> None:
        self.update_block(Block.of(group))

    def update_block(self, block: Block) -> None:
        has_scores = block.x.shape[1] >= self.min_rows
        scores = np.asarray(block.prepared_rows.apply(self.score)) if has_scores else np.full(len(block), np.nan)
        self._keep(block, scores)

    def _keep(self, block: Block, scores: np.ndarray) -> None:
        """Take the scores (w,) of a block's groups."""
        if scores.dtype.kind not in "fiub":
            raise MetricError(f"{type(self).__name__}.score gave {scores.dtype} scores; expected float64")
        if scores.shape != (len(block),):
            raise MetricError(
                f"{type(self).__name__}.score gave shape {scores.shape} for {len(block)} groups; "
                "expected one score per group"
            )
        self._keys.extend(block.keys)
        self._scores.append(scores.astype(np.float64, copy=False))

    def _group_scores(self) -> GroupScores:
        """The scores of the groups so far."""
        scores = np.concatenate(self._scores) if self._scores else np.empty(0)
        return GroupScores(self._keys, scores, self._weights(np.isfinite(scores)) if self._weights else None)

    def compute(self) -> Mapping[str, float | Estimate]:
        """raw (mean), median, sd (ddof 1) over defined groups; n groups; undefined groups."""
        groups = self._group_scores()
        return aggregate(groups.scores, groups.weights)


def has_baseline(metric: Metric) -> bool:
    """Whether there is a baseline to speak of."""
    return bool(metric.cosine_statistic) or type(metric).baseline_value is not Metric.baseline_value


def baseline_is_score(metric: Metric) -> bool:
    """Whether every group has a score, and the baseline is that of a random group."""
    return type(metric).baseline_value is GroupMean.baseline_value


def measure_info(label: str, metric: Metric, baseline_source: str = "") -> MeasureInfo:
    """The record of a metric in a run: its class's name in snake case, its attributes, and how its baseline is found
    (`exact`, `drawn`, `size-matched`, or the metric's own words; recorded as `level`)."""
    reading = metric.reading
    return MeasureInfo(
        name=re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(metric).__name__).lower(),
        title=metric.title,
        variant=metric.variant,
        definition=metric.definition or label.replace("_", " "),
        unit=reading.unit,
        over=metric.over,
        main=reading.main,
        line=reading.line,
        level=baseline_source or reading.own_baseline,
        subject=reading.subject,
        lower=reading.lower,
        higher=reading.higher,
    )
