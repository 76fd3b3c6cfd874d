"""A model while it reads: in evaluation mode, without a cache of keys and values, and afterwards what it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from ctxexp.errors import ModelError
from ctxexp.models.transformer.checks import table_rows

if TYPE_CHECKING:
    from transformers import PreTrainedModel

N_PIECES = 8  # of a model that is tried out


@contextmanager
def reading(model: PreTrainedModel) -> Iterator[None]:
    """Sets the model to evaluation without a cache, and restores it: some change themselves by what they read, and the
    next text would be read otherwise (BigBird leaves its sparse attention for good at the first short text)."""
    configs = {id(config): config for config in (model.config, model.config.get_text_config())}.values()
    caches = [(config, config.use_cache) for config in configs if hasattr(config, "use_cache")]
    before = []
    for module in model.modules():
        own = vars(module)
        before.append((own, dict(own), dict(module._modules), dict(module._buffers)))
    try:
        for own, *_ in before:
            own["training"] = False
        for config, _ in caches:
            config.use_cache = False
        yield
    finally:
        for own, attributes, modules, buffers in before:
            own.update(attributes)
            own["_modules"].update(modules)
            own["_buffers"].update(buffers)
        for config, use_cache in caches:
            config.use_cache = use_cache


def probe_pieces(model: PreTrainedModel) -> torch.Tensor:
    """Pieces (3, 8) to try a model with: a row, the row with another first piece, and with another last piece; none is
    special where that can be had. Raises ModelError for a model that has no table of pieces."""
    config = model.config.get_text_config()
    rows = table_rows(model) or getattr(config, "vocab_size", 0)
    if rows < 2:
        raise ModelError("it has no table of pieces (get_input_embeddings, vocab_size); expected a model that has one")
    special = {number for key, number in config.to_dict().items() if "token_i" in key and isinstance(number, int)}
    numbers = [i for i in range(3, min(rows, 200)) if i not in special] or [*range(rows)]
    ids = torch.tensor([numbers[i % len(numbers)] for i in range(N_PIECES + 1)], device=model.device)
    row, other = ids[:-1], ids[-1:]
    return torch.stack([row, torch.cat([other, row[1:]]), torch.cat([row[:-1], other])])
