"""What else a pass gives: every layer's vectors of every token, special ones included, what the final norm does to
them, and words and sentence vectors of one batch from one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp.dataset import Sentence
from ctxexp.errors import ModelError
from ctxexp.model import TokenStates

if TYPE_CHECKING:
    import torch


def token_states(base: Any, sentence: Sentence) -> TokenStates:
    """The token states of a sentence by a transformer encoder. Raises ModelError where its window is too short."""
    import torch  # not when plugins are registered

    (pieces,) = base._read([sentence])
    if base.window is not None and len(pieces.ids) > base.window:
        raise ModelError(
            f"{sentence.text[:60]!r} has {len(pieces.ids)} pieces, the model takes {base.window}; shorten it"
        )
    entering: list[torch.Tensor] = []
    norm = None if (name := base.details["final_norm_module"]) == "-" else base.model.get_submodule(str(name))
    hook = norm.register_forward_pre_hook(lambda _, args: entering.append(args[0])) if norm is not None else None
    with torch.inference_mode():
        try:
            out = base._forward(torch.from_numpy(pieces.ids[None]).to(base._device, torch.long)).hidden_states
        finally:
            if hook is not None:
                hook.remove()
        layers = torch.stack([layer[0].float().cpu() for layer in out]).numpy()
        normed = None if norm is None else torch.stack([norm(layer)[0].float().cpu() for layer in out]).numpy()
    before = entering[-1][0].float().cpu().numpy() if entering else None
    (words,) = base.token_spans([sentence])
    return TokenStates(pieces.ids, layers, before, normed, np.asarray(words))


@contextmanager
def shared_passes(base: Any) -> Iterator[None]:
    """Inside, pieces that a transformer has read for words aren't read again for their sentences' vectors.

    Encode a batch, then the same batch by `sentence_encoder()`: hidden states stay in memory until they are asked for
    again, or until the end. The vectors are the same to the bit.
    """
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
