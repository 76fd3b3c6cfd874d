"""Bytes of tensors that are alive at once, traced by torch's dispatcher: a processor counts none itself."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class PeakBytes(TorchDispatchMode):
    """Within `with`: `peak`, the most bytes at once of tensors that were made inside; what an operator takes for itself
    and gives back isn't seen.

    Example:
        >>> with PeakBytes() as traced:
        ...     x = torch.zeros(1000)
        ...     del x
        ...     y = torch.zeros(500)
        >>> traced.peak
        4000
    """

    def __init__(self) -> None:
        super().__init__()
        self.peak = self._now = 0
        self._known: set[int] = set()

    def __torch_dispatch__(  # type: ignore[override]
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        before = {one.untyped_storage()._cdata for one in tree_leaves([args, kwargs]) if isinstance(one, torch.Tensor)}
        out = func(*args, **(kwargs or {}))
        for one in tree_leaves(out):
            if isinstance(one, torch.Tensor):
                self._add(one, before)
        return out

    def _add(self, tensor: torch.Tensor, before: set[int]) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in before or key in self._known:
            return
        self._known.add(key)
        self._now += size
        self.peak = max(self.peak, self._now)
        weakref.finalize(storage, self._drop, key, size)

    def _drop(self, key: int, size: int) -> None:
        self._known.discard(key)
        self._now -= size
