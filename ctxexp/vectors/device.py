"""Where and how precisely models compute: `device=auto|cpu|cuda|mps`, `dtype=float32|bfloat16|float16`."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from ctxexp.errors import ConfigError, UnknownName

if TYPE_CHECKING:
    import torch

DEVICES = ("auto", "cpu", "cuda", "mps")
DEV = Path("/dev")
NODES = ("nvidia*", "nvhost*", "nvgpu*", "dxg", "kfd")  # NVIDIA, its Jetsons, WSL, AMD
DTYPES = ("float32", "bfloat16", "float16")


def resolve_device(device: str = "auto") -> torch.device:
    """The torch device of that name; `auto` is the first of cuda, mps and cpu that this machine has.

    `cuda:1` picks one of several. A device that is asked for by name and isn't there is a `ConfigError`, never cpu.
    """
    import torch

    kind, colon, index = device.partition(":")
    if kind not in DEVICES or (colon and (kind != "cuda" or not index.isdecimal())):
        raise UnknownName("device", device, DEVICES)
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if kind == "auto":
        kind = next(name for name in ("cuda", "mps", "cpu") if there[name])
    elif not there[kind]:
        raise ConfigError(
            f"device={device}: torch {torch.__version__} sees no {kind} device on this machine; "
            "use device=auto or device=cpu"
        )
    elif colon and int(index) >= torch.cuda.device_count():
        raise ConfigError(f"device={device}: this machine has {torch.cuda.device_count()} CUDA devices, counted from 0")
    return torch.device(f"{kind}:{index}" if colon else kind)


def check_device(device: str) -> None:
    """Raise ConfigError for a device that this machine can't have, without loading torch; what it says of the others,
    `resolve_device` finds out."""
    kind = device.partition(":")[0]
    why = _no_cuda() if kind == "cuda" else "" if kind != "mps" or sys.platform == "darwin" else "it is no Mac"
    if why:
        raise ConfigError(f"device={device}: this machine has none ({why}); use device=auto or device=cpu")


def is_cpu(device: str) -> bool:
    """Whether that device is surely the processor, so far as can be said without loading torch."""
    return device == "cpu" or (device == "auto" and sys.platform != "darwin" and bool(_no_cuda()))


def _no_cuda() -> str:
    """Why torch can't find a CUDA device here; empty if it may."""
    if version("torch").endswith("+cpu"):
        return f"torch {version('torch')} is built without CUDA"
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides them all"
    if sys.platform == "linux" and not any(any(DEV.glob(name)) for name in NODES):
        return "there is no /dev/nvidia0 or its like"
    return ""


def resolve_dtype(dtype: str = "float32") -> torch.dtype:
    """The torch dtype that a model computes in; vectors are stored as float32, those of a half type as float16."""
    if dtype not in DTYPES:
        raise UnknownName("dtype", dtype, DTYPES)
    import torch

    return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[dtype]
