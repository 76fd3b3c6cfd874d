"""Values by what they are of: the keys that results are looked up by, and the builder that the engine fills."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

LAYER = "layer"  # the place of what has a value a layer
COLUMNS = ("measure", "task", "statistic", "place", "layer", "value", "low", "high", "n")


class Key(NamedTuple):
    """What a value is of: a curve by layer, or at another place (a mix of layers, an embedding table) a scalar."""

    measure: str
    statistic: str
    task: str = ""
    place: str = LAYER

    @property
    def subject(self) -> str:
        """What the statistic is of, as messages, charts and sinks call it: `sts/STS12`, `sts.last2/STS12`."""
        measured = self.measure if self.place == LAYER else f"{self.measure}.{self.place}"
        return f"{measured}/{self.task}" if self.task else measured

    def __str__(self) -> str:
        return f"{self.subject}/{self.statistic}"


class Held(NamedTuple):
    """The values of a key with the ends of their 95% intervals, (n_layers,) each, (1,) off the layers."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Values:
    """What a run has measured so far, as the engine fills it."""

    def __init__(self, held: Mapping[Key, Held] | None = None) -> None:
        self.held: dict[Key, Held] = dict(held or {})
        self.replicates: dict[Key, np.ndarray] = {}

    def add(
        self,
        key: Key,
        values: np.ndarray | float,
        *,
        low: np.ndarray | float | None = None,
        high: np.ndarray | float | None = None,
        replicates: np.ndarray | None = None,
    ) -> None:
        """Take the values of a key, (n_layers,) or off the layers one number, NaN where undefined, in place of those
        that it had; `low` and `high` end their 95% intervals, `replicates` (..., r) are their bootstrap's."""
        value = _row(values)
        nothing = np.full(len(value), math.nan)
        self.held[key] = Held(value, *(nothing if end is None else _row(end) for end in (low, high)))
        if replicates is not None and replicates.size:
            self.replicates[key] = replicates

    def at(self, layers: Sequence[int], n_layers: int) -> Values:
        """The same values of `n_layers` layers, of which only `layers` were measured; the others are NaN."""
        spread = Values()
        for key, held in self.held.items():
            of = held if key.place != LAYER else Held(*(_spread(one, layers, n_layers) for one in held))
            spread.held[key] = of
        for key, drawn in self.replicates.items():
            spread.replicates[key] = drawn if key.place != LAYER else _spread(drawn, layers, n_layers)
        return spread

    def frame(self, layers: Sequence[int] = ()) -> pd.DataFrame:
        """A row a value, as `Results.frame`; with `layers` of these alone."""
        import pandas as pd

        rows = []
        for key, held in self.held.items():
            counted = self.held.get(key._replace(statistic="n"))
            same = counted is not None and len(counted.value) == len(held.value)
            counts = counted.value if counted and same else np.full(len(held.value), math.nan)
            named = key.measure, key.task, key.statistic, key.place
            for layer, numbers in enumerate(np.stack([*held, counts], axis=1).tolist()):
                if key.place != LAYER:
                    rows.append((*named, None, *numbers))
                elif not layers or layer in layers:
                    rows.append((*named, layer, *numbers))
        kinds = dict.fromkeys(COLUMNS[:4], "str") | {"layer": "Int64"} | dict.fromkeys(COLUMNS[5:], "float64")
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype(kinds)


def named(measure: str, statistic: str, place: str = LAYER) -> Key:
    """The key of a metric's statistic by the name that the metric gives it, in which a task may come first."""
    task, _, name = statistic.rpartition("/")
    return Key(measure, name, task, place)


def _spread(values: np.ndarray, layers: Sequence[int], n_layers: int) -> np.ndarray:
    """Values of `layers` (layers, ...) among those of all, (n_layers, ...)."""
    out = np.full((n_layers, *values.shape[1:]), np.nan, values.dtype)
    out[list(layers)] = values
    return out


def _row(values: np.ndarray | float) -> np.ndarray:
    return np.atleast_1d(np.asarray(values, np.float64))
