"""A model in the midst of its training, read as an encoder and left as it was."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed, nn

import ctxexp
from ctxexp import EncodedSentence, Encoder, Sentence
from ctxexp.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

SHARED = (
    "n_layers", "dim", "dtype", "sequential", "allows_prefetch", "positional", "causal", "start", "layers",
    "lengths", "count_unknown", "token_spans", "unit_keys", "encode_tensors",
)  # fmt: skip
HASHES = ("weights_hash", "content_hash", "weights_sha256")  # of the weights that an encoder was made with


class LiveEncoder(Encoder):
    """An encoder whose weights change between its readings: each step has a name of its own.

    Args:
        inner: The encoder of the model, made once.
        training: The training's name.
        step: The step whose weights are read.
    """

    def __init__(self, inner: Encoder, training: str, step: int) -> None:
        for name in SHARED:
            setattr(self, name, getattr(inner, name))
        self.inner, self.name, self.title = inner, f"{training}, step {step}", f"step {step}"
        details = {name: value for name, value in inner.details.items() if name not in HASHES}
        self.details = details | {"checkpoint": f"{training}/step{step}"}  # by which figures know training and step

    def encode(self, batch: Sequence[Sentence]) -> Iterable[EncodedSentence]:
        return self.inner.encode(batch)


def encoder_of(network: object, tokenizer: PreTrainedTokenizerBase | None) -> Encoder:
    """The encoder of a network that `network_of` found."""
    return network if isinstance(network, Encoder) else ctxexp.from_transformers(network, tokenizer)


def network_of(model: Any) -> Any:
    """The network of transformers in a model that may be wrapped (DistributedDataParallel, torch.compile, Lightning);
    an Encoder as it is.

    Raises ConfigError where there is none, or its weights are spread over several processes.
    """
    if isinstance(model, Encoder):
        return model
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    if any(_is_sharded(module) for module in modules):
        raise ConfigError(
            "LayerCurves: the model's weights are spread over several processes (FSDP, DeepSpeed ZeRO-3), and one "
            "process alone can't read them; measure its checkpoints afterwards: ctxexp steps FOLDER"
        )
    found = next((one for one in modules if hasattr(one, "base_model") and hasattr(one, "config")), None)
    if found is None:
        raise ConfigError(
            f"LayerCurves: expected a model of transformers, a module that holds one, or a ctxexp.Encoder, got "
            f"{type(model).__name__}"
        )
    return found


def _is_sharded(module: nn.Module) -> bool:
    weights = list(module.parameters(recurse=False))
    names = {type(module).__name__, *(type(weight).__name__ for weight in weights)}
    return bool(names & {"FullyShardedDataParallel", "DTensor"}) or any(hasattr(weight, "ds_id") for weight in weights)


def device_of(network: object) -> torch.device:
    """The device of a network; the processor for an encoder."""
    weights = network.parameters() if isinstance(network, nn.Module) else ()
    return next((weight.device for weight in weights), torch.device("cpu"))


@contextmanager
def keep_states(device: torch.device) -> Iterator[None]:
    """Inside, a model is read in the type that it has, and what is drawn at random moves no state outside."""
    states = random.getstate(), np.random.get_state()
    devices = [device] if device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices), torch.autocast(device.type, enabled=False):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def is_distributed() -> bool:
    """Whether several processes train together."""
    return distributed.is_available() and distributed.is_initialized()


def is_first_process() -> bool:
    """Whether this process is the one that measures: rank 0."""
    return not is_distributed() or distributed.get_rank() == 0


def first_process_says(flag: bool, device: torch.device) -> bool:
    """The flag of rank 0, in every process; all of them call this."""
    if not is_distributed():
        return flag
    shared = torch.tensor([int(flag)], device=device)
    distributed.broadcast(shared, src=0)
    return bool(shared.item())
