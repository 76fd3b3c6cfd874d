"""The contract of baselines: random groups of occurrences, and the value of each measure on them (the baseline).

A metric is a class; a measure is a metric configured under a label of a run's config.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from ctxexp.groups import WordReader
from ctxexp.maths.resampling import Curve
from ctxexp.metric import GroupMean, Metric, Over
from ctxexp.occurrences import Occurrences

Among = Literal["sentence", "row"]
"""Over which pairs a mean cosine is expected: one word from each of two sentences, or any two rows."""


class BaselineValues(NamedTuple):
    """A measure's baseline in every layer."""

    by_group: np.ndarray  # (n_groups, n_layers) each group's own, or (n_layers,) where all have one
    curve: Curve  # its mean over the groups that have a score


class MeasuredGroups(NamedTuple):
    """A measure's metric, and the indices of the groups that it is applied to, among those of its kind (None: all)."""

    metric: GroupMean
    indices: np.ndarray | None


class ScoredGroups(NamedTuple):
    """A measure's groups with their scores."""

    scores: np.ndarray  # (n_groups, n_layers) NaN where undefined
    indices: np.ndarray | None = None  # among the groups of their kind; None: all of them
    weights: np.ndarray | None = None  # (n_groups, n_layers) in the mean over groups; None: equal


class GroupBaseline(ABC):
    """Baselines of measures over one kind of groups: observes each layer, then gives the values."""

    @abstractmethod
    def observe_layer(self, reader: WordReader, measures: Mapping[str, MeasuredGroups], *, influence: bool) -> None:
        """Compute and remember one layer's baselines of the measures, by label; with `influence`, also the influence of
        each cluster on them."""

    @abstractmethod
    def values(self, label: str, groups: ScoredGroups) -> BaselineValues:
        """The baselines of one measure for the groups that it scored."""

    def baseline_source(self, metric: Metric) -> str:
        """The source of the measure's baseline: `exact`, `drawn`, `size-matched`; an empty string for a measure without
        a baseline."""
        return "drawn"


class Baseline(ABC):
    """Random groups of occurrences, the same rows in every layer.

    The first group is the reported baseline; the others are redraws, from which metrics over samples get their spread.
    A measure's baseline is its value on the first (`baseline_value`), unless `group_baseline` gives groups baselines of
    their own. `expectation`: if set, the expected mean cosine over all pairs of distinct sentences ("sentence") or of
    distinct rows ("row") replaces that of the sample. A metric may name further baselines, registered under their names
    (`Metric.baselines`).

    Example:
        >>> class AnyRows(Baseline):
        ...     name = "any_rows"
        ...     def groups(self, occurrences, rng):
        ...         yield rng.permutation(occurrences.rows)[:1000]
        >>> AnyRows().group_baseline(None, "word", seed=0) is None
        True
    """

    name: ClassVar[str] = ""
    has_group_baselines: ClassVar[bool] = False  # whether groups have baselines of their own
    expectation: Among | None = None

    @abstractmethod
    def groups(self, occurrences: Occurrences, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """The random groups, the reported baseline first.

        Args:
            occurrences: The measured rows.
            rng: The source of all draws.

        Returns:
            Arrays of row numbers, each without repetition: no occurrence is compared with itself.
        """

    def group_baseline(self, occurrences: Occurrences, over: Over, seed: int) -> GroupBaseline | None:
        """The source of baselines of single groups of a kind (optional); None: all have that of the first random group.

        Args:
            occurrences: The measured rows.
            over: The kind of groups.
            seed: The seed of its draws.

        Returns:
            The source, which observes each layer and then gives the baselines; None as above.
        """
        return None
