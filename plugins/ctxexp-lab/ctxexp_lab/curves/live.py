"""A model in the midst of its training, read as an encoder and left as it was; callbacks of transformers' and
Lightning's trainers that measure it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed, nn

import ctxexp
from ctxexp import EncodedSentence, Encoder, Sentence
from ctxexp.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from ctxexp_lab.curves.layer_curves import LayerCurves

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


def encoder_of(model: Any, tokenizer: PreTrainedTokenizerBase | None) -> Encoder:
    """The encoder of the network of transformers in a model that may be wrapped (DistributedDataParallel,
    torch.compile, Lightning); an Encoder as it is.

    Raises ConfigError where there is none, or its weights are spread over several processes.
    """
    if isinstance(model, Encoder):
        return model
    if isinstance(model, nn.Module) and any(map(_is_sharded, model.modules())):
        raise ConfigError(
            "LayerCurves: the model's weights are spread over several processes (FSDP, DeepSpeed ZeRO-3), and one "
            "process alone can't read them; measure its checkpoints afterwards: ctxexp steps FOLDER"
        )
    return ctxexp.from_transformers(model, tokenizer)


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
    """Inside, what is drawn at random moves no state outside."""
    states = random.getstate(), np.random.get_state()
    devices = [device] if device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices):
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


def attach(curves: LayerCurves, trainer: Any) -> None:
    """Add the callback to a trainer of transformers or of Lightning. Raises ConfigError."""
    packages = {base.__module__.partition(".")[0] for base in type(trainer).__mro__}
    if "transformers" in packages and hasattr(trainer, "add_callback"):
        curves.on_init_end(None, None, None, model=trainer.model, processing_class=trainer.processing_class)
        trainer.add_callback(curves)
    elif lightning := packages & {"lightning", "pytorch_lightning"}:
        package = "lightning.pytorch" if "lightning" in lightning else "pytorch_lightning"
        trainer.callbacks.append(_for_lightning(curves, import_module(package).Callback))
    else:
        raise ConfigError(
            f"LayerCurves.attach: expected a Trainer of transformers or of Lightning, got {type(trainer).__name__}; in "
            "a loop of your own call curves.step(model, step)"
        )


def _for_lightning(curves: LayerCurves, base: Any) -> Any:
    """A Callback; values go to the trainer's loggers."""

    class LayerCurvesCallback(base):  # type: ignore[misc]  # of whichever Lightning is installed
        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            curves.begin(pl_module)
            self.on_train_batch_end(trainer, pl_module)

        def on_train_batch_end(self, trainer: Any, pl_module: Any, *args: Any) -> None:
            if values := curves.step(pl_module, trainer.global_step):
                for logger in trainer.loggers:
                    logger.log_metrics(values, step=trainer.global_step)
            trainer.should_stop = trainer.should_stop or curves.should_stop

    return LayerCurvesCallback()
