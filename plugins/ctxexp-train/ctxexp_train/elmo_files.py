"""Write an ELMo checkpoint as AllenNLP's files: options.json, and weights in HDF5."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.models.elmo.files import ElmoOptions, cell_name, layout

if TYPE_CHECKING:
    from torch import Tensor


def write_options(path: Path, options: ElmoOptions) -> None:
    """Write `options` as an `options.json` of AllenNLP's layout."""

    def finite_or_none(value: float) -> float | None:
        return None if value == float("inf") else value

    content = {
        "lstm": {
            "cell_clip": finite_or_none(options.cell_clip),
            "proj_clip": finite_or_none(options.projection_clip),
            "use_skip_connections": options.skip,
            "n_layers": options.n_layers,
            "projection_dim": options.projection,
            "dim": options.cells,
        },
        "char_cnn": {
            "embedding": {"dim": options.character_dim},
            "filters": [list(pair) for pair in options.filters],
            "n_highway": options.n_highway,
            "n_characters": options.n_characters,
            "max_characters_per_token": options.word_width,
            "activation": options.activation,
        },
    }
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")


def write_weights(path: Path, state: Mapping[str, Tensor], options: ElmoOptions, *, dtype: str = "float32") -> None:
    """Write the network's `state_dict()` as HDF5 in AllenNLP's layout; `dtype` "float16" halves the file."""
    import h5py

    arrays = _file_arrays({name: value.detach().float().cpu() for name, value in state.items()}, options)
    with h5py.File(path, "w") as file:
        for name in layout(options):
            file.create_dataset(name, data=arrays[name].astype(dtype))


def _file_arrays(state: Mapping[str, Tensor], options: ElmoOptions) -> dict[str, np.ndarray]:
    """The arrays of the file by name, from the network's parameters: the inverse of reading."""
    values = {name: value.numpy() for name, value in state.items()}
    arrays: dict[str, np.ndarray] = {"char_embed": values["tokens.characters"]}
    for i in range(len(options.filters)):
        arrays[f"CNN/W_cnn_{i}"] = values[f"tokens.filters.{i}"].transpose(2, 1, 0)[None]
        arrays[f"CNN/b_cnn_{i}"] = values[f"tokens.biases.{i}"]
    for j in range(options.n_highway):
        for ours, theirs in (("weight", "W"), ("bias", "b")):
            parts = np.split(values[f"tokens.highways.{j}.{ours}"], 2, axis=-1)
            arrays |= {f"CNN_high_{j}/{theirs}_{g}": p for g, p in zip(("carry", "transform"), parts, strict=True)}
    if options.has_projection:
        arrays["CNN_proj/W_proj"] = values["tokens.projection.weight"].T
        arrays["CNN_proj/b_proj"] = values["tokens.projection.bias"]
    for layer in range(options.n_layers):
        for ours, theirs in (("weight", "W_0"), ("bias", "B"), ("project", "W_P_0")):
            for d in range(2):
                arrays[f"{cell_name(d, layer)}/{theirs}"] = values[f"layers.{layer}.{ours}"][d]
    return arrays
