"""ELMo's two files in their original layout: where they are (a path, a URL, the hub's cache or ctxexp's own; no
silent fallback), the options in JSON and the weights in HDF5, read, checked and written.

The only place that knows the file's names and orders. bilm-tf wrote them, AllenNLP read them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import AliasPath, BeforeValidator, Field, StrictBool, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from ctxexp.errors import ModelError

if TYPE_CHECKING:
    import h5py
    from torch import Tensor

log = logging.getLogger("ctxexp")
_Size = Annotated[int, Field(ge=1, le=10**5, strict=True)]
_Clip = Annotated[float, BeforeValidator(lambda clip: clip or float("inf")), Field(ge=0, strict=True)]
DENSEST = 1100  # times that a packed array may be larger than its bytes in the file; deflate's best is 1,032


def _at(*keys: str, **bounds: Any) -> Any:
    """The field's place in an `options.json`."""
    return Field(validation_alias=AliasPath(*keys), **bounds)


@dataclass(frozen=True, slots=True, config={"populate_by_name": True})
class ElmoOptions:
    """The architecture: what an `options.json` says, checked."""

    character_dim: Annotated[_Size, _at("char_cnn", "embedding", "dim")]
    # (width, number) each
    filters: Annotated[tuple[tuple[_Size, _Size], ...], _at("char_cnn", "filters", min_length=1, max_length=100)]
    n_highway: Annotated[int, _at("char_cnn", "n_highway", default=0, ge=0, le=100, strict=True)]
    n_characters: Annotated[int, _at("char_cnn", "n_characters")]
    # characters per word, its markers included
    word_width: Annotated[_Size, _at("char_cnn", "max_characters_per_token", ge=3)]
    activation: Annotated[Literal["relu", "tanh"], _at("char_cnn", "activation")]
    cells: Annotated[_Size, _at("lstm", "dim")]
    projection: Annotated[_Size, _at("lstm", "projection_dim")]
    n_layers: Annotated[int, _at("lstm", "n_layers", ge=1, le=100, strict=True)]
    cell_clip: Annotated[_Clip, _at("lstm", "cell_clip", default=float("inf"))]  # infinite: no clip
    projection_clip: Annotated[_Clip, _at("lstm", "proj_clip", default=float("inf"))]
    # residual connections from layer 2 on
    skip: Annotated[StrictBool, _at("lstm", "use_skip_connections", default=False)]

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
    def parse(cls, options: Mapping[str, object], where: str = "options") -> ElmoOptions:
        """From the content of an `options.json`; `where` names it in errors."""
        try:
            parsed: ElmoOptions = TypeAdapter(cls).validate_python(options)
        except ValidationError as error:
            wrong = error.errors()[0]
            name = ".".join(map(str, wrong["loc"])) or "the whole"
            if wrong["type"] == "missing":
                raise ModelError(f"{where}: no {name}; is this the options.json of an ELMo biLM?") from None
            raise ModelError(f"{where}: {name} is {wrong['input']!r:.60}: {wrong['msg']}") from None
        if parsed.n_characters != 262:
            raise ModelError(
                f"{where}: char_cnn.n_characters is {parsed.n_characters!r}, expected 262 (256 bytes, 5 markers, the "
                "mask); a file written for training says 261: change it to 262"
            )
        if parsed.word_width < parsed.widest:
            raise ModelError(
                f"{where}: words of {parsed.word_width} characters don't hold the widest filter, {parsed.widest}"
            )
        return parsed


def read_options(path: Path) -> ElmoOptions:
    """The options in the JSON file `path`."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ModelError(f"no ELMo options file at {path}; give options_file=<path of an options.json>") from None
    except (OSError, ValueError, RecursionError) as error:
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
            cell = cell_name(d, layer)
            shapes[f"{cell}/W_0"] = (2 * options.projection, 4 * options.cells)
            shapes[f"{cell}/B"] = (4 * options.cells,)
            shapes[f"{cell}/W_P_0"] = (options.cells, options.projection)
    return shapes


def cell_name(direction: int, layer: int) -> str:
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
    with file:
        try:
            arrays = _read(file, path, layout(options))
        except (OSError, RuntimeError, KeyError, ValueError) as error:  # what HDF5 says of damage within
            raise ModelError(f"{path} can't be read as HDF5 ({error}); is it a whole ELMo weight file?") from None
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ModelError(f"{path}: dataset {name!r} holds NaN or infinite values; the file is damaged")
    return _to_state(arrays, options)


def _read(file: h5py.File, path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The datasets of these names and shapes, float32, which must be all that the network has."""
    import h5py

    arrays: dict[str, np.ndarray] = {}
    for name, shape in shapes.items():
        dataset = file.get(name)
        if not isinstance(dataset, h5py.Dataset):
            raise ModelError(f"{path} has no dataset {name!r}, which its options ask for; do the two files match?")
        if dataset.shape != shape or dataset.dtype.kind != "f":
            raise ModelError(
                f"{path}: dataset {name!r} has shape {dataset.shape} ({dataset.dtype}), its options ask for {shape} of "
                "floats; do the two files match?"
            )
        if dataset.nbytes > DENSEST * dataset.id.get_storage_size():  # what was never written would be read as noughts
            raise ModelError(f"{path} doesn't hold the {dataset.nbytes:,} bytes of {name!r}; copy or download it again")
        with np.errstate(over="ignore"):  # what overflows is infinite, and told
            arrays[name] = np.asarray(dataset[...], dtype=np.float32)
    dataset_names: list[str] = []
    file.visititems(lambda name, item: dataset_names.append(name) if isinstance(item, h5py.Dataset) else None)
    if more := sorted(name for name in dataset_names if name.startswith(("CNN", "RNN")) and name not in shapes):
        raise ModelError(
            f"{path} has {len(more)} datasets more than its options ask for, which would be dropped "
            f"({', '.join(more[:2])} ...); do the two files match?"
        )
    return arrays


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
            state[f"layers.{layer}.{ours}"] = np.stack([arrays[f"{cell_name(d, layer)}/{theirs}"] for d in range(2)])
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in state.items()}


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
