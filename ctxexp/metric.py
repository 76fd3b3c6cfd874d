"""What a metric must offer: complete groups of rows in, numbers out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from ctxexp.errors import CtxexpError, MetricError, said, stranger
from ctxexp.maths.influence import by_leaving_out
from ctxexp.measuring.described import Described

GroupBy = Literal["occurrence", "word", "sense", "sentence", "sample", "corpus"]
"""Which rows form a group: one row by itself; a word's rows; a word's rows that have a sense label; a sentence's rows;
a random baseline group; all rows. The key of a `sense` group is (word, labels), a label a row."""


class Metric(Described, ABC):
    """A measure of one layer, fed one complete group of rows at a time. One instance serves one layer.

    What it says of itself (`title`, `unit`, `definition`, `variant` ...) are the attributes of `Described`.
    `invariances` names what leaves the numbers as they are: `rotation` of the space, `scale` (one factor for all rows),
    `row_scale` (a factor per row), `shift` (one vector added to all rows), `permutation` of a group's rows. An instance
    may have its own, where options decide. `ctxexp.testing.check_metric` holds a metric to them.

    Two methods are optional beside those below: `table(EmbeddingTable) -> dict[str, float]`, the values of a model's
    embedding table, and `finish(folder, *, n_layers, title)`, what is drawn when all layers and tables are measured
    (`ctxexp.measuring.tables`).

    `cosine_level` names the statistic, if any, that is the mean cosine of random occurrences: `baseline` where that is
    the chance level (`null` is `mean_cosine`), `mean_cosine` of anisotropy. Its expectation has a closed form, which
    then takes the place of a draw. A GroupMean whose `score` itself is the mean cosine leaves `null` as it is.
    """

    over: ClassVar[GroupBy]
    cosine_level: ClassVar[str] = ""
    invariances: frozenset[str] = frozenset()

    @abstractmethod
    def update(self, key: Hashable, x: np.ndarray) -> None:
        """Take one complete group: `x` is (n, d), float32 or float64; `key` names it (a word, a sentence's index).

        `x` is only lent: its memory holds the next group after the call. Copy what must be kept.
        """

    def update_block(self, keys: Sequence[Hashable], x: np.ndarray) -> None:
        """Take many groups of equal size at once: `x` is (len(keys), n, d). Override where a batch is faster."""
        for key, group in zip(keys, x, strict=True):
            self.update(key, group)

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Take over what `other` saw; it saw disjoint groups. Exact: as if this metric had seen them all."""

    @abstractmethod
    def compute(self) -> dict[str, float]:
        """The layer's statistics by name; undefined is NaN."""

    def null(self, x: np.ndarray) -> float:
        """The measure's value on a random group `x` (n, d): its chance level; NaN if it has none."""
        return float("nan")

    def save(self, folder: Path) -> None:  # optional: most metrics have nothing to write
        """Write tables or vectors beside the curves (optional)."""


class GroupMean(Metric):
    """The mean over groups of a pure function of one group: most of the field.

    A subclass defines `score`, and `null` where the paper's chance level is another function than the score.
    `sample` limits the groups to a seeded random sample (None: all). `size_matched` asks for the second chance level,
    the same score on random groups of the same size.
    """

    min_rows: ClassVar[int] = 2  # smaller groups have no score: NaN, and counted as undefined
    extremes: ClassVar[tuple[str, str] | None] = None  # names of the tables of the ten highest and ten lowest words

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

    def contributions(self, keys: Sequence[Hashable], x: np.ndarray) -> np.ndarray:
        """The same of groups with their keys, (len(keys), n), for scores that need the keys."""
        return self.influence(x)

    def null_influence(self, x: np.ndarray) -> np.ndarray:
        """How much each row of a random group (n, d) moves `null`: (n,) float64."""
        if type(self).null is GroupMean.null:
            result: np.ndarray = self.influence(x[None])[0]
            return result
        left: np.ndarray = by_leaving_out(x[None], lambda groups: np.array([self.null(group) for group in groups]))[0]
        return left

    def update(self, key: Hashable, x: np.ndarray) -> None:
        self.update_block([key], x[None])

    def update_block(self, keys: Sequence[Hashable], x: np.ndarray) -> None:
        scores = np.asarray(self.score(x)) if x.shape[1] >= self.min_rows else np.full(len(keys), np.nan)
        if scores.dtype.kind not in "fiub":
            raise MetricError(f"{type(self).__name__}.score gave {scores.dtype} scores; expected float64")
        if scores.shape != (len(keys),):
            raise MetricError(
                f"{type(self).__name__}.score gave shape {scores.shape} for {len(keys)} groups; "
                "expected one score per group"
            )
        self._keys.extend(keys)
        self._scores.append(scores.astype(np.float64, copy=False))

    def merge(self, other: Self) -> None:
        self._keys.extend(other._keys)
        self._scores.extend(other._scores)

    def collected(self) -> tuple[list[Hashable], np.ndarray]:
        """Keys and scores (groups,) float64 in the order of the updates."""
        return self._keys, np.concatenate(self._scores) if self._scores else np.empty(0)

    def scores(self) -> dict[Hashable, float]:
        """Each group's score by key, keys sorted, so that the order of updates never shows."""
        keys, flat = self.collected()
        pairs = zip(keys, flat.tolist(), strict=True)
        return dict(sorted(pairs, key=lambda kv: (str(type(kv[0])), kv[0])))

    def compute(self) -> dict[str, float]:
        """raw (mean), median, sd (ddof 1) over defined groups; n groups; undefined groups."""
        values = self.collected()[1]
        return {**summary(values[np.isfinite(values)]), "undefined": float(np.count_nonzero(~np.isfinite(values)))}


def summary(values: np.ndarray) -> dict[str, float]:
    """raw (mean), median, sd (ddof 1) and n of finite values, whatever their order, to the last bit."""
    ordered = np.sort(values)
    return {
        "raw": float(ordered.mean()) if ordered.size else float("nan"),
        "median": float(np.median(ordered)) if ordered.size else float("nan"),
        "sd": float(ordered.std(ddof=1)) if ordered.size > 1 else float("nan"),
        "n": float(ordered.size),
    }


def guard(label: str, metric: object, where: str, call: Callable[[], Any]) -> Any:
    """The call's result; what it raises is a MetricError that names the metric and where (`layer 3, word 'bank'`)."""
    try:
        with stranger():
            return call()
    except CtxexpError as error:
        cause: Exception = error
        named = MetricError(f"metric {label!r} at {where}: {error}")
    except Exception as error:  # a stranger's metric may raise anything
        cause, kind = error, type(metric).__name__
        named = MetricError(f"metric {label!r} ({kind}) failed at {where}: {said(error)}")
    named.of = "metric", label
    raise named from cause
