"""A model's forward pass by plain or prepacked linear layers, with GPT-2's activation in one pass over memory.

torch hands float32 products to MKL, which runs at half of some processors' speed (AMD's Zen 5). oneDNN, with weights
that are laid out for it once, reaches twice that there, and little or no more than MKL elsewhere. The operator is the
one that `torch.compile` freezes models with; it is private, so it is a choice and not the default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import nn

from ctxexp.errors import ConfigError
from ctxexp.models.choices import LinearKernel
from ctxexp.models.transformer.facts import LayerHooks, ModelFacts, caught, reading

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.utils import ModelOutput

Forwards = Mapping[nn.Module, Callable[[torch.Tensor], torch.Tensor]]  # what stands in for a layer's own forward


class ForwardPass:
    """Calls a model, which is left as it is, by other forwards of some layers: `gelu` always, `linear` if prepacked.

    `layers` are the numbers of the hidden states that are kept until the end, by hooks; None, or where the model's
    facts have no sources: all. Without `final_norm` the last hidden state is what enters that norm.

    Raises ConfigError where prepacked layers can't be had.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        linear: LinearKernel,
        facts: ModelFacts,
        layers: Sequence[int] | None = None,
        *,
        final_norm: bool = True,
    ) -> None:
        self.model, self.gelu = model, fused_gelu(model)
        self.linear: Forwards = prepacked(model) if linear == "prepacked" else {}
        self.entering = [] if final_norm else [(model.get_submodule(facts.norm or ""), True)]
        self.read: Callable[..., ModelOutput] = partial(model, output_hidden_states=True)
        if facts.is_hooked or (facts.sources and layers is not None):
            kept = facts.sources.keys() if layers is None else {*layers, facts.n_layers - 1}
            sources = {layer: source for layer, source in facts.sources.items() if layer in kept}
            self.read = LayerHooks(model, sources, facts.n_layers)

    def __call__(self, ids: torch.Tensor) -> ModelOutput:
        """The model's output for `ids` (sentences, length), with hidden states: None in place of those not kept."""
        with reading(self.model), _replaced({**self.gelu, **self.linear}), caught(self.entering) as calls:
            out = self.read(input_ids=ids)
        return replace(out, last_hidden_state=calls[-1][2]) if calls else out


def prepacked(model: PreTrainedModel) -> Forwards:
    """A forward with prepacked weights for each float32 linear layer of a model on the CPU.

    Raises ConfigError where it can't be had.
    """
    from transformers.pytorch_utils import Conv1D  # GPT-2's linear layer, its weight transposed

    weights = {
        layer: layer.weight.T.contiguous() if type(layer) is Conv1D else layer.weight
        for layer in model.modules()
        if type(layer) in (nn.Linear, Conv1D) and "forward" not in vars(layer)  # someone stands in for it already
    }
    if not weights or any((w.dtype, w.device.type) != (torch.float32, "cpu") for w in weights.values()):
        raise ConfigError(
            f"linear=prepacked: expected a model with linear layers in float32 on a CPU, got {type(model).__name__} "
            f"in {model.dtype} on {model.device}; use linear=plain"
        )
    try:
        return {layer: prepacked_product(weight, layer.bias) for layer, weight in weights.items()}
    except (AttributeError, RuntimeError) as error:  # the operator is private
        raise ConfigError(
            f"linear=prepacked: torch {torch.__version__} has no such layers on this processor ({error}); use "
            "linear=plain"
        ) from error


def prepacked_product(weight: torch.Tensor, bias: torch.Tensor | None) -> Callable[[torch.Tensor], torch.Tensor]:
    """`x -> x @ weight.T + bias` by oneDNN, the weight laid out for it."""
    laid_out, operator = torch.ops.mkldnn._reorder_linear_weight(weight), torch.ops.mkldnn._linear_pointwise
    return lambda x: operator(x, laid_out, bias, "none", [], "")


def fused_gelu(model: PreTrainedModel) -> Forwards:
    """A forward in one pass over memory for each of a float32 model's GELU layers that transformers writes in eight.

    It is the same formula, and the result within 1e-6; such a layer takes a quarter of GPT-2's time otherwise.
    """
    from transformers.activations import NewGELUActivation

    gelu = partial(nn.functional.gelu, approximate="tanh")
    return {m: gelu for m in model.modules() if type(m) is NewGELUActivation and model.dtype == torch.float32}


@contextmanager
def _replaced(forwards: Forwards) -> Iterator[None]:
    """Puts these functions in the place of the layers' own forward."""
    for layer, forward in forwards.items():
        vars(layer)["forward"] = forward
    try:
        yield
    finally:
        for layer in forwards:
            del vars(layer)["forward"]
