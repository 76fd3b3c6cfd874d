"""Models in memory that peft has tuned by a learned prompt, which stands before each text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutputWithPooling

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class PromptedModel(nn.Module):
    """A model with its learned prompt, or prefix of keys and values, as a model whose hidden states are the text's."""

    def __init__(self, tuned: Any) -> None:
        """Take a peft model of a method that learns a prompt."""
        super().__init__()
        self.tuned, self.n_virtual = tuned, tuned.active_peft_config.num_virtual_tokens
        self.config = tuned.get_base_model().base_model.config

    @property
    def base_model(self) -> PromptedModel:
        """The model itself: it has no head."""
        return self

    def __getattr__(self, name: str) -> Any:
        """What isn't the prompt's is the network's: its device, dtype, input embeddings."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.tuned.get_base_model(), name)

    def forward(self, input_ids: torch.Tensor, output_hidden_states: object = True) -> BaseModelOutputWithPooling:
        """The tuned model's hidden states at the pieces of the text."""
        out = self.tuned(input_ids=input_ids, attention_mask=torch.ones_like(input_ids), output_hidden_states=True)
        hidden = tuple(layer[:, -input_ids.shape[1] :] for layer in out.hidden_states)
        return BaseModelOutputWithPooling(last_hidden_state=hidden[-1], hidden_states=hidden)


def tuned_network(model: PreTrainedModel) -> PreTrainedModel | PromptedModel:
    """The network itself of a model that peft has tuned, its adapters inside, or with its learned prompt; any other
    model as it is."""
    if not hasattr(model, "get_base_model"):
        return model
    config = model.active_peft_config
    return PromptedModel(model) if config.is_prompt_learning else model.get_base_model()


def tuning_state(model: nn.Module) -> list[tuple[str, str]]:
    """What decides how a tuned model's adapters count, which isn't among its weights: scales, and which are active."""
    return [
        (name, repr((getattr(layer, "scaling", None), layer.active_adapters, layer.disable_adapters)))
        for name, layer in model.named_modules()
        if hasattr(layer, "adapter_layer_names")
    ]
