"""A transformers model in memory as an encoder, also one with adapters of peft."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from torch import nn

from ctxexp.errors import ConfigError, ModelError
from ctxexp.models.options import Dtype, TransformerOptions
from ctxexp.models.transformer.checkpoint import Checkpoint, cached_folder, local_path
from ctxexp.models.transformer.encoder import TransformerEncoder
from ctxexp.models.transformer.forward import model_call, window_size
from ctxexp.models.transformer.identity import Identity, state_hash
from ctxexp.models.transformer.loading import LoadedModel, as_reader, load_tokenizer, text_encoder
from ctxexp.models.transformer.pipeline import Pipeline

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

log = logging.getLogger("ctxexp")


def from_memory(
    model: nn.Module, tokenizer: PreTrainedTokenizerBase, options: TransformerOptions, name: str | None
) -> TransformerEncoder:
    """The encoder of a model in memory, in the type that it has; named by a hash of all that decides its vectors."""
    network = find_network(model)
    title = name or Path(network.config.name_or_path or type(network).__name__).name
    tuned = tuned_network(network)
    dtype = next((one for one in get_args(Dtype) if str(tuned.dtype) == f"torch.{one}"), None)
    if dtype is None:
        raise ModelError(f"model {title!r} has weights of type {tuned.dtype}; expected float32, bfloat16 or float16")
    reader, tokenizer = text_encoder(tuned), copy.deepcopy(tokenizer)  # the caller's keeps its truncation and padding
    checkpoint = Checkpoint(title, "", Path(os.devnull), "", "")  # its folder holds no files
    loaded = LoadedModel(checkpoint, Pipeline.of_model(model), reader, tokenizer, title=title)
    loaded = as_reader(loaded, options, reader.config.to_dict(), tokenizer_folder(tokenizer))
    window = window_size(reader, tokenizer)
    with model_call(reader, title):
        wrappers = [one for one in (network, model) if one is not reader and not is_of_torch(one)]
        identity = Identity(reader, window, wrappers)
    if identity.own_code:
        log.info("%s: its vectors are kept for no other run: it has %s", title, identity.own_code)
    backend = getattr(tokenizer, "backend_tokenizer", None)  # without one the encoder refuses it
    parts = (
        identity.digest,
        backend.to_str() if backend is not None else "",
        sorted(tokenizer.special_tokens_map.items()),
        tokenizer.model_max_length,
    )
    content = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    checkpoint = replace(checkpoint, weights_hash=state_hash(reader.state_dict()), content_hash=content)
    return TransformerEncoder(replace(loaded, checkpoint=checkpoint, identity=identity), replace(options, dtype=dtype))


def tokenizer_folder(tokenizer: PreTrainedTokenizerBase) -> Path | None:
    """The folder, or the hub's cache, that a tokenizer in memory was loaded from, if it is still as it was loaded; None
    for one that its caller has made or changed."""
    name = str(tokenizer.name_or_path or "")
    with suppress(Exception):  # no such files, no hub id, files of another kind: then it is the caller's own
        folder = local_path(name) or cached_folder((name,), None)
        if folder is not None and folder.is_dir():
            files = load_tokenizer(folder, {"pretrained_model_name_or_path": folder, "local_files_only": True})
            states = [json.loads(one.backend_tokenizer.to_str()) for one in (tokenizer, files)]
            same = [{**state, "truncation": None, "padding": None} for state in states]
            return folder if same[0] == same[1] else None
    return None


def find_network(model: nn.Module) -> PreTrainedModel:
    """The network of transformers or peft in a module: itself, or the one inside it; of several the one in training.
    Raises ConfigError, listing those that it holds."""
    networks: dict[str, Any] = {}
    for name, one in model.named_modules():
        is_network = hasattr(one, "base_model") and hasattr(one, "config") and not is_of_torch(one)
        if is_network and not any(f"{name}.".startswith(f"{outer}." if outer else "") for outer in networks):
            networks[name] = one
    for is_trained in (lambda one: any(p.requires_grad for p in one.parameters()), lambda one: one.training):
        networks = {name: one for name, one in networks.items() if is_trained(one)} or networks
    if len(networks) != 1:
        listed = ", ".join(f"{name} ({type(one).__name__})" for name, one in networks.items()) or "none"
        raise ConfigError(
            f"{type(model).__name__} holds {listed}: expected one network of transformers, or one of them in training; "
            "give the one that you mean"
        )
    return networks.popitem()[1]


def is_of_torch(module: nn.Module) -> bool:
    """Whether it is a wrapper of torch's, compiled or for several processes, which all must call."""
    return type(module).__module__.startswith("torch.")


def tuned_network(model: Any) -> Any:
    """The network itself of a model that peft has tuned, its adapters inside; any other model as it is. Raises
    ModelError for a learned prompt, which stands in no layer of the network."""
    if not hasattr(model, "get_base_model"):
        return model
    if model.active_peft_config.is_prompt_learning:
        raise ModelError("a prompt or prefix that peft has learned isn't read; expected adapters inside the network")
    return model.get_base_model()
