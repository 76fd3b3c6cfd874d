"""What attention and the feed-forward network of each block add to the residual stream, caught while a model reads.

Families name a block's parts differently, so each has a map, and a model is used only after its parts have been seen
to add up: residual + attention + mlp is the next residual where norms stand before the parts (pre-norm, as in GPT-2
and Llama); where they stand behind (post-norm, as in BERT), it is what enters each norm that adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from ctxexp.errors import ConfigError, ModelError
from ctxexp.models.options import Point
from ctxexp.models.transformer.forward import Source, catch_tensors, evaluation, probe_pieces

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel

TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}  # of the largest value of a residual


@dataclass(frozen=True)
class BlockMap:
    """Names of modules: the list of blocks in the model, and in a block the two whose outputs are added to the residual
    stream; for post-norm blocks also the norms behind each sum."""

    blocks: str
    attention: str
    mlp: str
    norms: tuple[str, str] | None = None


_LLAMA = BlockMap("layers", "self_attn", "mlp")
_BERT = BlockMap(
    "encoder.layer", "attention.output.dense", "output.dense", ("attention.output.LayerNorm", "output.LayerNorm")
)
FAMILIES = {
    "bert": _BERT, "roberta": _BERT, "xlm-roberta": _BERT, "camembert": _BERT, "electra": _BERT,
    "distilbert": BlockMap("transformer.layer", "attention", "ffn", ("sa_layer_norm", "output_layer_norm")),
    "gpt2": BlockMap("h", "attn", "mlp"),
    "gpt_neox": BlockMap("layers", "attention", "mlp"),
    "llama": _LLAMA, "mistral": _LLAMA, "qwen2": _LLAMA, "qwen3": _LLAMA,
}  # fmt: skip


def block_points(model: PreTrainedModel, point: Point, source: str) -> dict[int, Source]:
    """Where the vectors leave that one part of each block adds to the residual stream, by the number of the layer
    behind the block.

    Args:
        model: A transformers model of a known family.
        point: `attention` or `mlp`.
        source: The model's name in messages.

    Raises:
        ConfigError: The model's family has no map.
        ModelError: The map doesn't fit: parts are missing, or don't add up.
    """
    kind, where = model.config.model_type, f"model.point={point}: {source}"
    if kind not in FAMILIES:
        raise ConfigError(
            f"{where} is of the family {kind!r}, whose blocks have no map of their parts; known: {', '.join(FAMILIES)}"
        )
    names = FAMILIES[kind]
    try:
        blocks = [*model.get_submodule(names.blocks).children()]
        check_sums(model, blocks, names)
        return {i: (block.get_submodule(getattr(names, point)), False) for i, block in enumerate(blocks, 1)}
    except (AttributeError, ModelError) as error:
        raise ModelError(
            f"{where} ({type(model).__name__}) isn't built as its family is: {error}; model.point=residual reads it"
        ) from None


def check_sums(model: PreTrainedModel, blocks: Sequence[nn.Module], names: BlockMap) -> None:
    """Raise ModelError unless each block's parts add up, on a few pieces."""
    parts = [names.attention, names.mlp, *(names.norms or ()), ""]
    sources = [(b.get_submodule(part), is_input) for b in blocks for part in parts for is_input in (True, False)]
    with torch.inference_mode(), evaluation(model), catch_tensors(sources) as calls:
        model(input_ids=probe_pieces(model)[:1])
    tensors = {(module, is_input): x.cpu() for module, is_input, x in calls}
    for number, block in enumerate(blocks, 1):
        modules = [block.get_submodule(part) for part in parts]
        attention, mlp, *norms, end = (tensors[module, False] for module in modules)
        start = tensors[block, True]
        sums = [(end, start + attention + mlp)]
        if norms:  # what enters each norm, and what it is the sum of
            first, second = (tensors[module, True] for module in modules[2:4])
            sums = [(first, start + attention), (second, norms[0] + mlp), (end, norms[1])]
        if any((a - b).abs().max() > TOLERANCE[model.dtype] * a.abs().max() for a, b in sums):
            raise ModelError(f"in block {number} residual + attention + mlp isn't the next residual")
