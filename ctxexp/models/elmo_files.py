"""ELMo's files in their original layout: `options.json` and the HDF5 weights, read and written.

The only place that knows the file's names and orders. bilm-tf wrote them, AllenNLP read them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ctxexp.errors import ModelError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class ElmoOptions:
    """The architecture: what an `options.json` says, checked."""

    character_dim: int
    filters: tuple[tuple[int, int], ...]  # (width, number) each
    n_highway: int
    n_characters: int
    word_width: int  # characters a word, its markers included
    activation: str  # "relu" or "tanh"
    cells: int
    projection: int
    n_layers: int
    cell_clip: float  # infinite: no clip
    projection_clip: float
    skip: bool  # residual connections from layer 2 on

    @property
    def n_filters(self) -> int:
        return sum(number for _, number in self.filters)

    @property
    def widest(self) -> int:
        return max(width for width, _ in self.filters)

    @property
    def has_projection(self) -> bool:
        """The original projects the filters' responses only where their number isn't the projection's already."""
        return self.n_filters != self.projection

    @classmethod
    def parse(cls, options: Mapping[str, Any], where: str = "options") -> ElmoOptions:
        """From the content of an `options.json`; `where` names it in errors."""

        def get(section: str, key: str, *default: Any) -> Any:
            try:
                return options[section][key]
            except (KeyError, TypeError):
                if default:
                    return default[0]
                raise ModelError(f"{where}: no {section}.{key}; is this the options.json of an ELMo biLM?") from None

        n_characters = get("char_cnn", "n_characters")
        if n_characters != 262:
            raise ModelError(
                f"{where}: char_cnn.n_characters is {n_characters!r}, expected 262 (256 bytes, 5 markers, the mask); "
                "a file written for training says 261: change it to 262"
            )
        activation = get("char_cnn", "activation")
        if activation not in ("relu", "tanh"):
            raise ModelError(f"{where}: char_cnn.activation is {activation!r}, expected 'relu' or 'tanh'")
        try:
            parsed = cls(
                character_dim=int(get("char_cnn", "embedding")["dim"]),
                filters=tuple((int(w), int(n)) for w, n in get("char_cnn", "filters")),
                n_highway=int(get("char_cnn", "n_highway", 0)),
                n_characters=262,
                word_width=int(get("char_cnn", "max_characters_per_token")),
                activation=activation,
                cells=int(get("lstm", "dim")),
                projection=int(get("lstm", "projection_dim")),
                n_layers=int(get("lstm", "n_layers")),
                cell_clip=float(get("lstm", "cell_clip", None) or "inf"),
                projection_clip=float(get("lstm", "proj_clip", None) or "inf"),
                skip=bool(get("lstm", "use_skip_connections", False)),
            )
        except (TypeError, ValueError, KeyError) as error:
            raise ModelError(f"{where}: a value is not of the expected type ({error!r})") from None
        sizes = parsed.character_dim, parsed.cells, parsed.projection, parsed.n_layers, *map(min, parsed.filters)
        if not parsed.filters or min(sizes) < 1 or parsed.word_width < max(3, parsed.widest):
            raise ModelError(f"{where}: sizes must be positive and words hold the widest filter; got {parsed}")
        return parsed


def read_options(path: Path) -> ElmoOptions:
    """The options in the JSON file `path`."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ModelError(f"no ELMo options file at {path}; give options_file=<path of an options.json>") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} can't be read as JSON ({error}); expected an ELMo options.json") from None
    return ElmoOptions.parse(content, str(path))


def layout(options: ElmoOptions) -> dict[str, tuple[int, ...]]:
    """The shape of each dataset of the weight file, by its name."""
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (options.n_characters - 1, options.character_dim)}
    for i, (width, number) in enumerate(options.filters):
        shapes[f"CNN/W_cnn_{i}"] = (1, width, options.character_dim, number)
        shapes[f"CNN/b_cnn_{i}"] = (number,)
    n = options.n_filters
    for j in range(options.n_highway):
        for gate in ("carry", "transform"):
            shapes[f"CNN_high_{j}/W_{gate}"], shapes[f"CNN_high_{j}/b_{gate}"] = (n, n), (n,)
    if options.has_projection:
        shapes["CNN_proj/W_proj"], shapes["CNN_proj/b_proj"] = (n, options.projection), (options.projection,)
    for d in range(2):
        for layer in range(options.n_layers):
            cell = _cell(d, layer)
            shapes[f"{cell}/W_0"] = (2 * options.projection, 4 * options.cells)
            shapes[f"{cell}/B"] = (4 * options.cells,)
            shapes[f"{cell}/W_P_0"] = (options.cells, options.projection)
    return shapes


def _cell(direction: int, layer: int) -> str:
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def read_weights(path: Path, options: ElmoOptions) -> dict[str, Tensor]:
    """The network's state (`ElmoNetwork.load_state_dict`), float32, from the HDF5 file `path`."""
    import h5py

    try:
        file = h5py.File(path, "r")
    except FileNotFoundError:
        raise ModelError(f"no ELMo weight file at {path}; give weight_file=<path of an HDF5 file>") from None
    except OSError as error:
        raise ModelError(f"{path} can't be read as HDF5 ({error}); is it a whole ELMo weight file?") from None
    arrays: dict[str, np.ndarray] = {}
    with file:
        for name, shape in layout(options).items():
            dataset = file.get(name)
            if not isinstance(dataset, h5py.Dataset):
                raise ModelError(f"{path} has no dataset {name!r}, which its options ask for; do the two files match?")
            if dataset.shape != shape:
                raise ModelError(
                    f"{path}: dataset {name!r} has shape {dataset.shape}, its options ask for {shape}; "
                    "do the two files match?"
                )
            arrays[name] = np.asarray(dataset[...], dtype=np.float32)
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ModelError(f"{path}: dataset {name!r} holds NaN or infinite values; the file is damaged")
    return _to_state(arrays, options)


def write_weights(path: Path, state: Mapping[str, Tensor], options: ElmoOptions, *, dtype: str = "float32") -> None:
    """Write the network's `state_dict()` as HDF5 in the original layout; `dtype` "float16" halves the file."""
    import h5py

    arrays = _from_state({name: value.detach().float().cpu() for name, value in state.items()}, options)
    with h5py.File(path, "w") as file:
        for name in layout(options):
            file.create_dataset(name, data=arrays[name].astype(dtype))


def write_options(path: Path, options: ElmoOptions) -> None:
    """Write `options` as an `options.json` of the original layout."""

    def clip(value: float) -> float | None:
        return None if value == float("inf") else value

    content = {
        "lstm": {
            "cell_clip": clip(options.cell_clip),
            "proj_clip": clip(options.projection_clip),
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


def sha256(path: Path) -> str:
    """Hex digest (64 digits) of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _to_state(arrays: Mapping[str, np.ndarray], options: ElmoOptions) -> dict[str, Tensor]:
    """File arrays -> the network's parameters."""
    import torch

    state: dict[str, np.ndarray] = {"tokens.characters": arrays["char_embed"]}
    for i in range(len(options.filters)):
        state[f"tokens.filters.{i}"] = arrays[f"CNN/W_cnn_{i}"][0].transpose(2, 1, 0)
        state[f"tokens.biases.{i}"] = arrays[f"CNN/b_cnn_{i}"]
    for j in range(options.n_highway):
        for ours, theirs in (("weight", "W"), ("bias", "b")):
            parts = [arrays[f"CNN_high_{j}/{theirs}_{gate}"] for gate in ("carry", "transform")]
            state[f"tokens.highways.{j}.{ours}"] = np.concatenate(parts, axis=-1)
    if options.has_projection:
        state["tokens.projection.weight"] = arrays["CNN_proj/W_proj"].T
        state["tokens.projection.bias"] = arrays["CNN_proj/b_proj"]
    for layer in range(options.n_layers):
        for ours, theirs in (("weight", "W_0"), ("bias", "B"), ("project", "W_P_0")):
            state[f"layers.{layer}.{ours}"] = np.stack([arrays[f"{_cell(d, layer)}/{theirs}"] for d in range(2)])
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in state.items()}


def _from_state(state: Mapping[str, Tensor], options: ElmoOptions) -> dict[str, np.ndarray]:
    """The network's parameters -> file arrays: the inverse of `_to_state`."""
    held = {name: value.numpy() for name, value in state.items()}
    arrays: dict[str, np.ndarray] = {"char_embed": held["tokens.characters"]}
    for i in range(len(options.filters)):
        arrays[f"CNN/W_cnn_{i}"] = held[f"tokens.filters.{i}"].transpose(2, 1, 0)[None]
        arrays[f"CNN/b_cnn_{i}"] = held[f"tokens.biases.{i}"]
    for j in range(options.n_highway):
        for ours, theirs in (("weight", "W"), ("bias", "b")):
            parts = np.split(held[f"tokens.highways.{j}.{ours}"], 2, axis=-1)
            arrays |= {f"CNN_high_{j}/{theirs}_{g}": p for g, p in zip(("carry", "transform"), parts, strict=True)}
    if options.has_projection:
        arrays["CNN_proj/W_proj"] = held["tokens.projection.weight"].T
        arrays["CNN_proj/b_proj"] = held["tokens.projection.bias"]
    for layer in range(options.n_layers):
        for ours, theirs in (("weight", "W_0"), ("bias", "B"), ("project", "W_P_0")):
            for d in range(2):
                arrays[f"{_cell(d, layer)}/{theirs}"] = held[f"layers.{layer}.{ours}"][d]
    return arrays
