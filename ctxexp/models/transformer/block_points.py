"""What attention and the feed-forward network of each block add to the residual stream, caught while a model reads.

Families name a block's parts differently, so each has a map, and a model is used only after its parts have been seen
to add up: residual + attention + mlp is the next residual where norms stand before the parts (pre-norm, as in GPT-2
and Llama); where they stand behind (post-norm, as in BERT), it is what enters each norm that adds up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from ctxexp.errors import ConfigError, ModelError
from ctxexp.models.options import Point
from ctxexp.models.transformer.forward import catch_tensors, evaluation, probe_pieces

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.utils import ModelOutput

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


class BlockPoints:
    """The vectors that one part of each block adds to the residual stream, caught while the model reads.

    Args:
        model: A transformers model of a known family.
        point: `attention` or `mlp`.
        source: The model's name in messages.

    Raises:
        ConfigError: The model's family has no map.
        ModelError: The map doesn't fit: parts are missing, or don't add up.
    """

    def __init__(self, model: PreTrainedModel, point: Point, source: str) -> None:
        kind = model.config.model_type
        if kind not in FAMILIES:
            raise ConfigError(
                f"model.point={point}: {source} is of the family {kind!r}, whose blocks have no map of their parts; "
                f"known: {', '.join(FAMILIES)}"
            )
        self.point = point
        names, self._where = FAMILIES[kind], f"model.point={point}: {source} ({type(model).__name__})"
        try:
            self._blocks = [*model.get_submodule(names.blocks).children()]
            self._parts = [block.get_submodule(getattr(names, point)) for block in self._blocks]
            self._check(model, names)
        except AttributeError as error:
            raise ModelError(f"{self._where} isn't built as its family is: {error}") from None

    def __str__(self) -> str:
        """The point's share in the encoder's name."""
        return f" point={self.point}"

    def read(self, forward: Callable[[torch.Tensor], ModelOutput], ids: torch.Tensor) -> ModelOutput:
        """The output of `forward` on `ids` (sentences, length), with the point's vectors in place of each block's."""
        with catch_tensors((part, False) for part in self._parts) as calls:
            out = forward(ids)
        parts = [x for _, _, x in calls]
        return replace(out, hidden_states=(out.hidden_states[0], *parts), last_hidden_state=parts[-1])

    def _check(self, model: PreTrainedModel, names: BlockMap) -> None:
        """Raise ModelError unless each block's parts add up, on eight pieces."""
        parts = [names.attention, names.mlp, *(names.norms or ()), ""]
        sources = [
            (b.get_submodule(part), is_input) for b in self._blocks for part in parts for is_input in (True, False)
        ]
        with torch.inference_mode(), evaluation(model), catch_tensors(sources) as calls:
            model(input_ids=probe_pieces(model)[:1])
        tensors = {(module, is_input): x.cpu() for module, is_input, x in calls}
        for number, block in enumerate(self._blocks, 1):
            modules = [block.get_submodule(part) for part in parts]
            attention, mlp, *norms, end = (tensors[module, False] for module in modules)
            start = tensors[modules[-1], True]
            sums = [(end, start + attention + mlp)]
            if norms:  # what enters each norm, and what it is the sum of
                first, second = (tensors[module, True] for module in modules[2:4])
                sums = [(first, start + attention), (second, norms[0] + mlp), (end, norms[1])]
            if any((a - b).abs().max() > TOLERANCE[model.dtype] * a.abs().max() for a, b in sums):
                raise ModelError(
                    f"{self._where}: in block {number} residual + attention + mlp isn't the next residual, so its "
                    "parts are others than its family's; model.point=residual reads it"
                )
