"""Values by key (measure, statistic, task and place), and the builder that measuring fills in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

LAYER = "layer"  # the place of values of the layers themselves, one for each
BY_BASELINE = (
    "baseline",
    "adjusted",
    "share_of_room",
    "share_of_room_undefined",
)  # statistics computed with a baseline
COLUMNS = ("measure", "task", "statistic", "place", "layer", "value", "low", "high", "n")


class Key(NamedTuple):
    """The key of a curve by layer, or of a scalar at another place (a mix of layers, an embedding table).

    `place` says where the measured vectors come from: the layers, a mix of layers, an embedding table. `baseline` names
    the baseline that the statistic is computed with; empty: the measure's first. Where results are stored or shown,
    statistic and baseline are one name: `position_matched_adjusted`.

    Example:
        >>> Key.of("self_similarity", "position_matched_adjusted")
        Key(measure='self_similarity', statistic='adjusted', task='', place='layer', baseline='position_matched')
    """

    measure: str
    statistic: str
    task: str = ""
    place: str = LAYER
    baseline: str = ""

    @classmethod
    def of(cls, measure: str, statistic: str, task: str = "", place: str = LAYER) -> Key:
        """The key of a statistic by its shown name."""
        for own in BY_BASELINE:
            if statistic.endswith(f"_{own}"):
                return cls(measure, own, task, place, statistic.removesuffix(f"_{own}"))
        return cls(measure, statistic, task, place)

    @property
    def name(self) -> str:
        """The statistic's shown name, the inverse of `of`."""
        return f"{self.baseline}_{self.statistic}" if self.baseline else self.statistic

    @property
    def columns(self) -> dict[str, str]:
        """The key as files have it: measure, statistic by its shown name, task and place."""
        return {"measure": self.measure, "statistic": self.name, "task": self.task, "place": self.place}

    @property
    def curve_name(self) -> str:
        """Measure, place and task as messages, charts and sinks write them: `sts/STS12`, `sts.last2/STS12`."""
        curve = self.measure if self.place == LAYER else f"{self.measure}.{self.place}"
        return f"{curve}/{self.task}" if self.task else curve

    def label(self, level: str = "chance") -> str:
        """The statistic's name for a legend; `level` is the measure's word for its baseline.

        Example:
            >>> Key("self_similarity", "share_of_room").label(), Key("self_similarity", "baseline").label()
            ('share of the room above chance', 'chance')
        """
        names = {"share_of_room": "share of the room above chance", "mean_cosine": "mean", "baseline": level}
        name = names.get(self.statistic, self.statistic.replace("_", " "))
        return f"{name}, {self.baseline.replace('_', '-')}" if self.baseline else name

    def __str__(self) -> str:
        return f"{self.curve_name}/{self.name}"


class Estimates(NamedTuple):
    """The values of a key with the ends of their 95% intervals: (n_layers,) each, or (1,) at another place.

    Example:
        >>> Estimates(np.array([0.5]), np.array([0.4]), np.array([0.6])).value.tolist()
        [0.5]
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Values:
    """The values of a run in progress, which measuring fills in."""

    def __init__(self, by_key: Mapping[Key, Estimates] | None = None) -> None:
        self.by_key: dict[Key, Estimates] = dict(by_key or {})
        self.replicates: dict[Key, np.ndarray] = {}

    def set(
        self,
        key: Key,
        values: np.ndarray | float,
        *,
        low: np.ndarray | float | None = None,
        high: np.ndarray | float | None = None,
        replicates: np.ndarray | None = None,
    ) -> None:
        """Set the values of a key, in place of any that it had: (n_layers,), or one number at another place; NaN where
        undefined. `low` and `high` are the ends of their 95% intervals, `replicates` (..., r) their bootstrap
        values."""
        value = _row(values)
        nothing = np.full(len(value), math.nan)
        self.by_key[key] = Estimates(value, *(nothing if end is None else _row(end) for end in (low, high)))
        self.replicates.pop(key, None)
        if replicates is not None and replicates.size:
            self.replicates[key] = replicates

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Values:
        """The values of a frame, the inverse of `frame()` where all layers were measured."""
        where: dict[Key, list[int]] = {}
        names = (frame[column] for column in ("measure", "statistic", "task", "place"))
        for row, key in enumerate(zip(*names, strict=True)):
            where.setdefault(Key.of(*key), []).append(row)
        numbers = frame[["value", "low", "high"]].to_numpy(np.float64)
        return cls({key: Estimates(*numbers[rows].T) for key, rows in where.items()})

    def expand_layers(self, layers: Sequence[int], n_layers: int) -> Values:
        """The same values for all `n_layers` layers: those of `layers`, which were measured, and NaN elsewhere."""
        expanded = Values()
        for key, estimates in self.by_key.items():
            by_layer = key.place == LAYER
            expanded.by_key[key] = (
                Estimates(*(_scatter(end, layers, n_layers) for end in estimates)) if by_layer else estimates
            )
        for key, replicates in self.replicates.items():
            expanded.replicates[key] = replicates if key.place != LAYER else _scatter(replicates, layers, n_layers)
        return expanded

    def frame(self, layers: Sequence[int] = ()) -> pd.DataFrame:
        """One row per value, as `Results.frame`; with `layers`, rows of these layers only."""
        import pandas as pd

        rows = []
        for key, estimates in self.by_key.items():
            group_counts = self.by_key.get(key._replace(statistic="n", baseline=""))
            same = group_counts is not None and len(group_counts.value) == len(estimates.value)
            counts = group_counts.value if group_counts and same else np.full(len(estimates.value), math.nan)
            columns = key.measure, key.task, key.name, key.place
            for layer, numbers in enumerate(np.stack([*estimates, counts], axis=1).tolist()):
                if key.place != LAYER:
                    rows.append((*columns, None, *numbers))
                elif not layers or layer in layers:
                    rows.append((*columns, layer, *numbers))
        kinds = dict.fromkeys(COLUMNS[:4], "str") | {"layer": "Int64"} | dict.fromkeys(COLUMNS[5:], "float64")
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype(kinds)


def metric_key(measure: str, statistic: str, place: str = LAYER) -> Key:
    """The key of a metric's statistic by the name that the metric gives it, in which a task may come first."""
    task, _, name = statistic.rpartition("/")
    return Key.of(measure, name, task, place)


def _scatter(values: np.ndarray, layers: Sequence[int], n_layers: int) -> np.ndarray:
    """Scatter the values of `layers` (layers, ...) into an array of all layers (n_layers, ...), NaN elsewhere."""
    out = np.full((n_layers, *values.shape[1:]), np.nan, values.dtype)
    out[list(layers)] = values
    return out


def _row(values: np.ndarray | float) -> np.ndarray:
    return np.atleast_1d(np.asarray(values, np.float64))
