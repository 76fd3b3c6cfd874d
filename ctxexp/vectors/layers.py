"""What is measured, transformed or controlled of a store: its layers, whoever holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class Layers(Protocol):
    """Vectors by layer: a `ctxexp.vectors.store.Store`, or one that is seen through a transform."""

    @property
    def n_layers(self) -> int: ...
    @property
    def numbers(self) -> Sequence[int]: ...  # the numbers of those that are there
    @property
    def dim(self) -> int: ...
    def layer(self, i: int) -> np.ndarray: ...  # (n_rows, dim)


class Counted(Protocol):
    """Anything that has some of a model's layers."""

    @property
    def n_layers(self) -> int: ...
    @property
    def numbers(self) -> Sequence[int]: ...


def fewer(held: Counted) -> tuple[int, ...]:
    """The numbers of the layers that are there where these aren't all; else none."""
    return tuple(held.numbers) if len(held.numbers) < held.n_layers else ()


def lent(x: np.ndarray) -> np.ndarray:
    """A view of x that can't be written to: what one metric or transform changed, the next would measure."""
    view = x.view()
    view.flags.writeable = False
    return view
