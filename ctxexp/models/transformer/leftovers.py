"""What becomes of a checkpoint's parts: those that aren't used, and what is done about it (its files are looked at
without loading anything); and the devices and quantization of those that are, which other libraries do while they
load.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxexp.errors import ConfigError, ModelError, short
from ctxexp.models.choices import QUANTIZERS, TransformerOptions
from ctxexp.models.transformer.checkpoints import ADAPTER, Checkpoint, weight_files

if TYPE_CHECKING:
    import torch
    from transformers.utils.quantization_config import QuantizationConfigMixin

    from ctxexp.models.choices import Unused

log = logging.getLogger("ctxexp")


class Leftovers(NamedTuple):
    """What nothing of the network uses, as sentences: what would change vectors, and what can't be told."""

    losses: list[str]
    doubts: list[str]


def account(unused: Iterable[Leftovers], policy: Unused, source: str) -> list[str]:
    """Log what of the checkpoint isn't used. Raises `ModelError` under `refuse` for what would change vectors."""
    losses, doubts = [s for one in unused for s in one.losses], [s for one in unused for s in one.doubts]
    if losses and policy == "refuse":
        raise ModelError(
            f"{source} holds what isn't used, so that its vectors would be another model's: {'; '.join(losses)}. "
            "model.unused=warn measures what is left"
        )
    warnings = [f"{source}: not used: {sentence}" for sentence in losses + doubts]
    for warning in warnings:
        log.warning("%s", warning)
    return warnings


SENTENCE_SETTINGS = (  # of sentence-transformers, which change what its transformer is given, or how it is loaded
    "do_lower_case", "model_args", "model_kwargs", "config_args", "config_kwargs", "tokenizer_args",
    "processor_kwargs", "tokenizer_name_or_path",
)  # fmt: skip


def unused_files(checkpoint: Checkpoint, *, used: str = "") -> Leftovers:
    """Files of weights, adapters and settings in the checkpoint's folder that nothing reads, but for the setting of
    sentence-transformers that is `used`; copies of the same weights in other formats are no loss."""
    folder, settings = checkpoint.folder, checkpoint.sentence_settings
    weights = weight_files(folder)
    losses = [
        f"{key}={settings[key]!r} of its settings for sentence-transformers (sentence_..._config.json)"
        for key in SENTENCE_SETTINGS
        if settings.get(key) and key != used
    ]
    if (folder / "adapter_config.json").is_file():
        if not (folder / ADAPTER).is_file():
            raise ModelError(
                f"{folder} has an adapter beside its model (adapter_config.json) without {ADAPTER}, and ctxexp "
                "unpickles nothing: save the adapter there in safetensors, or remove adapter_config.json"
            )
        if find_spec("peft") is None:
            losses.append("its adapter (adapter_config.json), which needs the package peft: pip install peft")
    taken = {path.name for path in weights} | {ADAPTER}
    for path in sorted(folder.glob("*.safetensors")):
        # consolidated: Meta's and Mistral's own format; model.fp16: a variant that is asked for by name
        if path.name not in taken and not re.fullmatch(r"consolidated.*|[\w-]+\.(fp16|bf16|fp32)\..*", path.name):
            losses.append(
                f"the weights in {path.name}, beside {short([p.name for p in weights])}: remove the file, or the one "
                "that stands in its way"
            )
    newest = max(path.stat().st_mtime for path in weights)
    for path in sorted(folder.glob("pytorch_model*.bin")):
        if path.stat().st_mtime > newest and (name := _other_weight(path, weights)):
            losses.append(f"{path.name}, which is newer than the safetensors and has another {name}: convert it anew")
    return Leftovers(losses, [])


def _other_weight(pickled: Path, weights: Sequence[Path]) -> str:
    """The first weight of a pickle, read without running any code, that differs from the one in safetensors."""
    try:
        import torch

        tensors = torch.load(pickled, map_location="cpu", weights_only=True, mmap=True)
    except Exception:  # whatever it is, it isn't what transformers would read
        return "content, which can't be read"
    from safetensors import safe_open

    for path in weights:
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118  # the file is no mapping
                if name in tensors and not torch.equal(tensors[name].float(), file.get_tensor(name).float()):
                    return str(name)
    return ""


def loading_arguments(options: TransformerOptions, device: torch.device) -> Mapping[str, Any]:
    """`from_pretrained`'s arguments for `options.device_map` and `options.quantization`; none if it has neither.

    Raises ConfigError for a quantization that this device doesn't support.
    """
    arguments: dict[str, Any] = {}
    if options.device_map is not None:
        arguments["device_map"] = options.device_map
    elif options.quantization is not None and device.type != "cpu":
        arguments["device_map"] = {"": device}  # the weights are quantised on the device where they stay
    if options.quantization is not None:
        arguments["quantization_config"] = _quantization_config(options.quantization, device)
    return arguments


def quantization_label(options: TransformerOptions) -> str:
    """`torchao_int8(torchao 0.9)`: how weights were quantised on loading, and the package's version; empty if they
    weren't."""
    if options.quantization is None:
        return ""
    package = QUANTIZERS[options.quantization]
    return f"{options.quantization}({package} {version(package)})"


def _quantization_config(quantization: str, device: torch.device) -> QuantizationConfigMixin:
    from transformers import BitsAndBytesConfig, TorchAoConfig

    if QUANTIZERS[quantization] == "torchao":
        from torchao.quantization import Int8WeightOnlyConfig

        return TorchAoConfig(Int8WeightOnlyConfig())
    if device.type == "cpu":
        raise ConfigError(
            f"model.quantization={quantization}: expected a GPU, as bitsandbytes computes on one, got device=cpu; use "
            "model.quantization=torchao_int8, or leave it null"
        )
    eight = quantization == "bitsandbytes_8bit"
    return BitsAndBytesConfig(load_in_8bit=eight, load_in_4bit=not eight)
