"""Where a model's parts are laid and in which numbers its weights are held: what other libraries do while it loads."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ctxexp.errors import ConfigError
from ctxexp.models.choices import QUANTIZERS, Reading

if TYPE_CHECKING:
    import torch
    from transformers.utils.quantization_config import QuantizationConfigMixin


def placing(reading: Reading, device: torch.device) -> Mapping[str, Any]:
    """`from_pretrained`'s arguments for `reading.device_map` and `reading.quantization`; none if it has neither.

    Raises ConfigError for weights that can't be held so on this device.
    """
    chosen: dict[str, Any] = {}
    if reading.device_map is not None:
        chosen["device_map"] = reading.device_map
    elif reading.quantization is not None and device.type != "cpu":
        chosen["device_map"] = {"": device}  # quantised where they are to stay
    if reading.quantization is not None:
        chosen["quantization_config"] = _quantizer(reading.quantization, device)
    return chosen


def quantized(reading: Reading) -> str:
    """What names weights that were quantised on loading: how, and by which version of what; empty for others."""
    if reading.quantization is None:
        return ""
    package = QUANTIZERS[reading.quantization]
    return f"{reading.quantization}({package} {version(package)})"


def _quantizer(quantization: str, device: torch.device) -> QuantizationConfigMixin:
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
