"""`model=elmo`: the mini that ships with ctxexp, the original ELMo, or either shape untrained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxexp.files import file_sha256
from ctxexp.model import Encoder
from ctxexp.models import minis
from ctxexp.models.elmo.files import local_original, locate, original_files, read_options, read_weights
from ctxexp.models.lazy_encoder import lazy_encoder
from ctxexp.models.listing import ModelFiles
from ctxexp.models.options import (
    Dtype,
    ElmoState,
    Weights,
    check_choices,
    layer_selection,
)


def _original() -> Path | None:
    files = local_original()
    return files[1] if files else None


@minis.files("elmo")
@ModelFiles("elmo weights=published", 374e6, "AllenNLP's original", "downloaded when it is first used", _original)
def elmo(
    *,
    weights: Weights = "mini",
    options_file: str | None = None,
    weight_file: str | None = None,
    state: ElmoState = "reset",
    layers: Sequence[int] | None = None,
    device: str = "auto",
    dtype: Dtype = "float32",
    seed: int = 0,
) -> Encoder:
    """All layers of ELMo's biLM: weights=mini ships with ctxexp, weights=published is the original (2x4096, 512).

    weights: mini, published (from a cache or AllenNLP's server) or untrained (the mini's shape, weights drawn anew).
    options_file, weight_file: an options.json and its HDF5 weights, as paths or URLs, instead of those of weights.
    state: reset (a sentence's vectors don't depend on its neighbours) or carry (as the original, and Ethayarajh's 2019
        code: the LSTMs go on from where the sentence before left them).
    layers: the numbers of the layers to encode and measure, as in [0,2]; null: all.
    device: auto, cpu, cuda or mps.
    dtype: float32, bfloat16 or float16, for computing; half types are stored as float16.
    seed: of weights=untrained.

    options_file: the original's options.json and HDF5 weights
    """
    check_choices(weights=weights, options_file=options_file, weight_file=weight_file)
    source = None
    if options_file is not None:
        options_path = locate(options_file, "options_file")
        weight_path = None if weight_file is None else locate(weight_file, "weight_file")
    elif weights == "published":
        options_path, weight_path = original_files()
    else:
        folder = minis.folder("elmo")
        options_path, weight_path, source = folder / "options.json", folder / "weights.hdf5", "ctxexp mini elmo"

    options = read_options(options_path)
    layers = layer_selection(layers, options.n_layers + 1, source or str(options_path))
    weight_path = None if weights == "untrained" else weight_path
    digest = file_sha256(weight_path) if weight_path else ""
    identity = f"{digest[:16] or 'untrained'}:{file_sha256(options_path)[:16]}"
    how: dict[str, Any] = {"state": state, "device": device, "dtype": dtype, "layers": layers}

    def load() -> Encoder:
        from ctxexp.models.elmo.encoder import ElmoEncoder

        if weight_path is None:
            shape = f"untrained, shape of {source or options_path}"
            return ElmoEncoder.untrained(options, seed=seed, source=shape, **how)
        weights = read_weights(weight_path, options)
        encoder = ElmoEncoder(options, weights, source=source or str(weight_path), identity=f"sha256:{identity}", **how)
        encoder.details = {**encoder.details, "weights_sha256": digest}
        return encoder

    return lazy_encoder((options, identity, source, options_path, weight_path, seed, how), load, device=device)
