"""One forward pass for the words of a batch and for its sentence vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ctxexp.model import Encoder
from ctxexp.models.lazy import LazyEncoder

if TYPE_CHECKING:
    import numpy as np
    import torch


@contextmanager
def shared_passes(encoder: Encoder) -> Iterator[None]:
    """Inside, pieces that a transformer has read for words aren't read again for their sentences' vectors.

    Encode a batch, then the same batch by `sentence_encoder()`: hidden states stay in memory until they are asked for
    again, or until the end. The vectors are the same to the bit. Of another encoder nothing is shared.
    """
    base: Any = encoder._whole if isinstance(encoder, LazyEncoder) else encoder
    if not hasattr(base, "hidden_states"):
        yield
        return
    compute: Callable[[np.ndarray], list[torch.Tensor]] = base.hidden_states
    states: dict[tuple[object, bytes], tuple[list[torch.Tensor], torch.Tensor | None]] = {}

    def once(ids: np.ndarray) -> list[torch.Tensor]:
        key = (ids.shape, ids.tobytes())
        if key in states:
            layers, base._pooled = states.pop(key)
            return layers
        layers = compute(ids)
        states[key] = layers, base._pooled
        return layers

    vars(base)["hidden_states"] = once
    try:
        yield
    finally:
        del vars(base)["hidden_states"]
