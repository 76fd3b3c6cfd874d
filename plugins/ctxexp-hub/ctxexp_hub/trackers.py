"""Runs in other trackers than MLflow: each value under the name that MLflow has it by, its layer as the step."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

from ctxexp import Results
from ctxexp.errors import ConfigError


def require(library: str) -> None:
    """Raise ConfigError, with what to type, where a sink's library isn't installed."""
    if find_spec(library) is None:
        raise ConfigError(f"sink {library}: {library} isn't installed; pip install {library}")


def values_by_layer(results: Results) -> Iterator[tuple[int, dict[str, float]]]:
    """The finite values of each layer by name; those of no layer are layer 0's."""
    curves = results.by_name
    for layer in range(max(map(len, curves.values()), default=0)):
        here = {name: float(curve[layer]) for name, curve in curves.items() if layer < len(curve)}
        if finite := {name: value for name, value in here.items() if np.isfinite(value)}:
            yield layer, finite
