"""Placement of a model's parts on devices and quantization of its weights, which other libraries do while it loads."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ctxexp.errors import ConfigError
from ctxexp.models.choices import QUANTIZERS, TransformerOptions

if TYPE_CHECKING:
    import torch
    from transformers.utils.quantization_config import QuantizationConfigMixin


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
