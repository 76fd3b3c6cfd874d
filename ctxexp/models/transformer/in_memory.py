"""A transformers model in memory as an encoder, also one that peft has tuned, by adapters or a learned prompt."""

from __future__ import annotations

import copy
import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutputWithPooling

from ctxexp.errors import EncodingError
from ctxexp.models.options import Dtype, TransformerOptions
from ctxexp.models.transformer.checkpoint import Checkpoint
from ctxexp.models.transformer.encoder import TransformerEncoder
from ctxexp.models.transformer.forward import window_size
from ctxexp.models.transformer.loading import check_parts, loaded_model, state_hash, tokenizer_folder
from ctxexp.models.transformer.unused import report_unused

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def from_memory(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, options: TransformerOptions, name: str | None
) -> TransformerEncoder:
    """The encoder of a model in memory, in the type that it has; named by a hash of all that decides its vectors."""
    title = name or Path(model.config.name_or_path or type(model).__name__).name
    model = tuned_network(model)
    n_virtual = model.n_virtual if isinstance(model, PromptedModel) else 0
    if n_virtual and (model.config.is_encoder_decoder or not options.final_norm):
        raise EncodingError(
            f"model {title!r} has a learned prompt, which is read of encoders and decoders with final_norm=True"
        )
    dtype = next((one for one in get_args(Dtype) if str(model.dtype) == f"torch.{one}"), None)
    if dtype is None:
        raise EncodingError(f"model {title!r} has weights of type {model.dtype}; expected float32, bfloat16 or float16")
    tokenizer = copy.deepcopy(tokenizer)  # the caller's keeps its truncation and padding
    loaded = loaded_model(model, tokenizer)
    settings, folder = loaded.model.config.to_dict(), tokenizer_folder(tokenizer)
    unused = check_parts(loaded.model, tokenizer, title, settings=settings, folder=folder, lower=options.lower)
    warnings = report_unused(unused, options.unused, title)
    loaded = loaded._replace(is_shared=True, warnings=tuple(warnings))
    weights = state_hash(loaded.model)
    backend = getattr(tokenizer, "backend_tokenizer", None)  # without one the encoder refuses it
    parts = (
        weights,
        backend.to_str() if backend is not None else "",
        sorted(tokenizer.special_tokens_map.items()),
        tokenizer.model_max_length,
        loaded.model.config.to_json_string(),
        loaded.model.config._attn_implementation,
        tuning_state(loaded.model),
    )
    content = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    checkpoint = Checkpoint(title, "", Path(os.devnull), weights, content)  # its folder holds no files
    if n_virtual and (window := window_size(loaded.model, tokenizer)) is not None:
        options = replace(options, window=window - n_virtual)  # the prompt takes its place among the positions
    return TransformerEncoder(checkpoint, replace(options, dtype=dtype), loaded, title=title)


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
        """The network's attribute where the prompt has none: its device, dtype, input embeddings."""
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
    """The settings by which a tuned model's adapters count, beside its weights: scales, and which are active."""
    return [
        (name, repr((getattr(layer, "scaling", None), layer.active_adapters, layer.disable_adapters)))
        for name, layer in model.named_modules()
        if hasattr(layer, "adapter_layer_names")
    ]
