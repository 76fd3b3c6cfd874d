"""What a metric must offer: complete groups of rows in, numbers out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from ctxexp.dataset import Corpus
from ctxexp.errors import MetricError
from ctxexp.maths.influence import by_leaving_out, of_mean_cosine
from ctxexp.maths.summary import summary
from ctxexp.measuring.described import Described
from ctxexp.model import EmbeddingTable

if TYPE_CHECKING:
    from ctxexp.measuring.occurrences import Text

AgainstLevel = Literal["run", "size_matched"]
"""Which level a measure's `baseline` and `adjusted` are: that of the run's `baseline=`, or of random groups of each
group's own size."""

Over = Literal["occurrence", "word", "sense", "sentence", "pair", "sample", "corpus"]
"""Which rows form a group: one row by itself; a word's rows; a word's rows that have a sense label; a sentence's rows;
the sentence vectors of a sub-set of gold pairs; a random group of the baseline; all rows."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """What is known of a sub-set's pairs of sentences."""

    gold: np.ndarray  # (n,) float64
    texts: Sequence[tuple[str, str]]
    ends: np.ndarray | None = None  # (n, 2) int64, the two sentences' numbers; None: no two pairs share one

    def __len__(self) -> int:
        return len(self.gold)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that belong together, in one layer, mix of layers or embedding table.

    `x` is only lent: its memory holds the next group after the call. Copy what must be kept.
    """

    key: Hashable  # a word, a sentence's number, a sub-set of pairs (`task/part`, or the task), a table's name
    x: np.ndarray  # (n, d) float32 or float64; of pairs (n, 2, d)
    labels: tuple[str, ...] = ()  # of a sense group: a label a row
    pairs: Pairs | None = None
    table: EmbeddingTable | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Groups of equal size, side by side."""

    keys: Sequence[Hashable]
    x: np.ndarray  # (w, n, d); of pairs (1, n, 2, d)
    rows: np.ndarray | None = None  # (w, n) their numbers
    labels: Sequence[tuple[str, ...]] = ()
    pairs: Pairs | None = None
    table: EmbeddingTable | None = None

    @classmethod
    def of(cls, group: Group) -> Block:
        """The group by itself."""
        return cls([group.key], group.x[None], None, [group.labels], group.pairs, group.table)

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Group]:
        for i, (key, x) in enumerate(zip(self.keys, self.x, strict=True)):
            yield Group(key, x, self.labels[i] if self.labels else (), self.pairs, self.table)

    def apart(self) -> Block:
        """Each row as a group of its own, its key its number."""
        assert self.rows is not None
        rows = self.rows.reshape(-1, 1)
        return Block(rows[:, 0].tolist(), self.x.reshape(-1, 1, self.x.shape[-1]), rows)

    def taken(self, which: np.ndarray) -> Block:
        """Only these groups."""
        rows = None if self.rows is None else self.rows[which]
        labels = [self.labels[i] for i in which.tolist()] if self.labels else ()
        return Block([self.keys[i] for i in which.tolist()], self.x[which], rows, labels, self.pairs, self.table)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its 95% interval, and the bootstrap replicates that runs are compared by."""

    value: float
    low: float
    high: float
    replicates: np.ndarray | None = None  # (r,)


class Metric(Described, ABC):
    """A measure of one layer, fed one complete group of rows at a time. One instance serves one layer.

    What it says of itself (`title`, `unit`, `definition`, `variant` ...) are the attributes of `Described`.
    `invariances` names what leaves the numbers as they are: `rotation` of the space, `scale` (one factor for all rows),
    `row_scale` (a factor per row), `shift` (one vector added to all rows), `permutation` of a group's rows. An instance
    may have its own, where options decide. `ctxexp.testing.check_metric` holds a metric to them. `tables`: embedding
    tables are measured too, each a group of its own, whose `table` tells its tokens.

    `cosine_level` names the statistic, if any, that is the mean cosine of random occurrences: `baseline` where that is
    the chance level (`null` is `mean_cosine`), `mean_cosine` of anisotropy. Its expectation has a closed form, which
    then takes the place of a draw. A GroupMean whose `score` itself is the mean cosine leaves `null` as it is.

    `baseline` says what `adjusted` is raw less of: `run`, the level of the run's `baseline=`; `size_matched`, for a
    score that depends on the number of rows, the mean score of random groups of each group's own size (unless the
    run's baseline gives groups levels of their own, which are of their size too). `size_matched=True` asks for the
    latter beside the former, as `size_matched_baseline` and `size_matched_adjusted`.
    """

    over: ClassVar[Over]
    tables: ClassVar[bool] = False
    scored: ClassVar[bool] = False  # whether every group has a score: a GroupMean
    cosine_level: ClassVar[str] = ""
    invariances: frozenset[str] = frozenset()
    min_rows: ClassVar[int] = 1
    extremes: ClassVar[tuple[str, str] | None] = None  # names of the tables of the ten highest and ten lowest words
    sample: int | None = None  # so many random groups only
    size_matched: bool = False
    baseline: AgainstLevel = "run"

    def require(self, corpus: Corpus) -> None:  # optional
        """Raise DataError unless the corpus has what is measured: called before anything is encoded."""

    def meet(self, text: Text) -> None:  # optional
        """What is measured, before the first group, for metrics that need to know more of a block's `rows` than which
        of them belong together; not called where pairs or tables are measured."""

    @abstractmethod
    def update(self, group: Group) -> None:
        """Take one complete group."""

    def update_block(self, block: Block) -> None:
        """Take many groups of equal size at once. Override where a batch is faster."""
        for group in block:
            self.update(group)

    def resample(self, rng: np.random.Generator, replicates: int) -> None:  # optional
        """What intervals are to be drawn from, before `compute`; `rng` is in the same state in every layer, so that
        resamples are the same; without replicates (0) intervals are NaN. Of metrics over pairs (optional)."""

    @abstractmethod
    def compute(self) -> Mapping[str, float | Estimate]:
        """The layer's statistics by name; undefined is NaN. A metric over pairs may name a task, as in `STS12/all`."""

    def null(self, x: np.ndarray) -> float:
        """The measure's value on a random group `x` (n, d): its chance level; NaN if it has none."""
        return float("nan")

    def null_influence(self, x: np.ndarray) -> np.ndarray | None:
        """How much each row of a random group (n, d) moves `null`: (n,) float64; None where that isn't known."""
        return of_mean_cosine(x) if self.cosine_level else None

    def level(self, x: np.ndarray) -> float:
        """`null` of the random group x (1, n, d)."""
        return self.null(x[0])

    def level_influence(self, x: np.ndarray) -> np.ndarray | None:
        """`null_influence` of the random group x (1, n, d)."""
        return self.null_influence(x[0])

    def contributions(self, block: Block) -> np.ndarray | None:
        """How much each row moves its group's score (w, n), float64, for intervals; None where groups have none."""
        return None

    def collected(self) -> tuple[list[Hashable], np.ndarray] | None:
        """Keys and scores (groups,) float64 in the order of the updates; None where groups have no scores."""
        return None

    @property
    def has_null(self) -> bool:
        """Whether there is a chance level to speak of."""
        return bool(self.cosine_level) or type(self).null is not Metric.null

    @property
    def score_is_cosine(self) -> bool:
        """Whether each group's score itself, and not the chance level alone, is its mean cosine."""
        return False

    def table_rows(self) -> list[dict[str, object]]:
        """Rows of the measure's table for this layer, such as one a sub-set; the layer is added to them (optional)."""
        return []

    def save(self, folder: Path) -> None:  # optional: most metrics have nothing to write
        """Write tables or vectors beside the curves (optional)."""

    def finish(self, folder: Path, *, n_layers: int, title: str) -> None:  # optional
        """Draw what needs all layers and tables, in the folder that holds each place's files (optional)."""


class GroupMean(Metric):
    """The mean over groups of a pure function of one group: most of the field.

    A subclass defines `score`, and `null` where the paper's chance level is another function than the score.
    `sample` limits the groups to a seeded random sample (None: all). `size_matched` asks for the second chance level,
    the same score on random groups of the same size, where that isn't the first one (`baseline`).
    """

    scored: ClassVar[bool] = True
    min_rows: ClassVar[int] = 2  # smaller groups have no score: NaN, and counted as undefined

    def __init__(self, *, sample: int | None = None, size_matched: bool = False) -> None:
        if sample is not None and sample < 1:
            raise MetricError(f"sample={sample}: expected a positive number of groups, or null for all")
        self.sample, self.size_matched = sample, size_matched
        self._keys: list[Hashable] = []
        self._scores: list[np.ndarray] = []

    @abstractmethod
    def score(self, x: np.ndarray) -> np.ndarray:
        """Scores (...,) of groups (..., n, d), float64; NaN where undefined."""

    def null(self, x: np.ndarray) -> float:
        return float(self.score(x[None])[0]) if len(x) >= self.min_rows else float("nan")

    def influence(self, x: np.ndarray) -> np.ndarray:
        """How much each row moves its group's score (..., n), float64 (`ctxexp.maths.influence`), for intervals.

        By leaving out up to eight rows of a group. Override where there is a formula, which is faster.
        """
        return by_leaving_out(x, self.score)

    def contributions(self, block: Block) -> np.ndarray:
        """The influences of a block's groups, (w, n); override for scores that need more than the rows."""
        return self.influence(block.x)

    def level(self, x: np.ndarray) -> float:
        if self.null_is_score and x.shape[1] >= self.min_rows:
            return float(self.score(x)[0])  # the same as null(x[0]), but on the array whose work is shared
        return self.null(x[0])

    def level_influence(self, x: np.ndarray) -> np.ndarray | None:
        return self.influence(x) if self.null_is_score else self.null_influence(x[0])

    @property
    def null_is_score(self) -> bool:
        """Whether the chance level is the score of a random group."""
        return type(self).null is GroupMean.null

    @property
    def has_null(self) -> bool:
        return True

    @property
    def score_is_cosine(self) -> bool:
        return bool(self.cosine_level) and self.null_is_score

    def null_influence(self, x: np.ndarray) -> np.ndarray:
        if self.null_is_score:
            result: np.ndarray = self.influence(x[None])[0]
            return result
        left: np.ndarray = by_leaving_out(x[None], lambda groups: np.array([self.null(group) for group in groups]))[0]
        return left

    def update(self, group: Group) -> None:
        self.update_block(Block.of(group))

    def update_block(self, block: Block) -> None:
        x, w = block.x, len(block)
        self.keep(block.keys, np.asarray(self.score(x)) if x.shape[1] >= self.min_rows else np.full(w, np.nan))

    def keep(self, keys: Sequence[Hashable], scores: np.ndarray) -> None:
        """Take the scores (w,) of groups."""
        if scores.dtype.kind not in "fiub":
            raise MetricError(f"{type(self).__name__}.score gave {scores.dtype} scores; expected float64")
        if scores.shape != (len(keys),):
            raise MetricError(
                f"{type(self).__name__}.score gave shape {scores.shape} for {len(keys)} groups; "
                "expected one score per group"
            )
        self._keys.extend(keys)
        self._scores.append(scores.astype(np.float64, copy=False))

    def collected(self) -> tuple[list[Hashable], np.ndarray]:
        """Keys and scores (groups,) float64 in the order of the updates."""
        return self._keys, np.concatenate(self._scores) if self._scores else np.empty(0)

    def scores(self) -> dict[Hashable, float]:
        """Each group's score by key, keys sorted, so that the order of updates never shows."""
        keys, flat = self.collected()
        pairs = zip(keys, flat.tolist(), strict=True)
        return dict(sorted(pairs, key=lambda kv: (str(type(kv[0])), kv[0])))

    def compute(self) -> Mapping[str, float | Estimate]:
        """raw (mean), median, sd (ddof 1) over defined groups; n groups; undefined groups."""
        values = self.collected()[1]
        return {**summary(values[np.isfinite(values)]), "undefined": float(np.count_nonzero(~np.isfinite(values)))}


def paired(group: Group) -> Pairs:
    """What is known of the group's pairs; MetricError unless its rows (n, 2, d) and texts are as many."""
    if group.pairs is None or group.x.ndim != 3 or not len(group.x) == len(group.pairs) == len(group.pairs.texts):
        known = "no pairs" if group.pairs is None else f"{len(group.pairs)} gold values, {len(group.pairs.texts)} texts"
        raise MetricError(
            f"sub-set {group.key!r}: vectors of shape {group.x.shape} and {known}; expected (n, 2, d) and n of each"
        )
    return group.pairs
