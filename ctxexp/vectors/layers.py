"""Vectors by layer, as metrics, transforms and controls read them: the protocols of a store and of its views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Layers(Protocol):
    """Vectors by layer: a `ctxexp.vectors.store.Store`, or one that is seen through a transform."""

    @property
    def n_layers(self) -> int: ...  # of the model, the input layer 0 counted: 13 of BERT-base
    @property
    def layer_numbers(self) -> Sequence[int]: ...  # of the layers that are there, among 0 .. n_layers - 1
    @property
    def dim(self) -> int: ...
    def layer(self, i: int) -> np.ndarray: ...  # (n_rows, dim)


@dataclass(frozen=True)
class MemoryLayers:
    """Vectors in memory, read-only as those of a store."""

    arrays: np.ndarray  # (n_layers, n_rows, dim)

    @property
    def layer_numbers(self) -> Sequence[int]:
        return range(self.n_layers)

    @property
    def n_layers(self) -> int:
        return len(self.arrays)

    @property
    def dim(self) -> int:
        return int(self.arrays.shape[2])

    def layer(self, i: int) -> np.ndarray:
        return read_only(self.arrays[i])


class HasLayers(Protocol):
    """Anything that has some or all of a model's layers."""

    @property
    def n_layers(self) -> int: ...
    @property
    def layer_numbers(self) -> Sequence[int]: ...


def layer_subset(vectors: HasLayers) -> tuple[int, ...]:
    """The numbers of the layers that are there if some are missing; an empty tuple if all are there."""
    return tuple(vectors.layer_numbers) if len(vectors.layer_numbers) < vectors.n_layers else ()


def read_only(x: np.ndarray) -> np.ndarray:
    """A view of x that can't be written to, so that no metric or transform changes the vectors of the next one."""
    view = x.view()
    view.flags.writeable = False
    return view
