"""What is measured, transformed or controlled of a store: its layers, whoever holds them."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Layers(Protocol):
    """Vectors by layer: a `ctxexp.vectors.store.Store`, or one that is seen through a transform."""

    @property
    def n_layers(self) -> int: ...
    @property
    def dim(self) -> int: ...
    def layer(self, i: int) -> np.ndarray: ...  # (n_rows, dim)


def lent(x: np.ndarray) -> np.ndarray:
    """A view of x that can't be written to: what one metric or transform changed, the next would measure."""
    view = x.view()
    view.flags.writeable = False
    return view
