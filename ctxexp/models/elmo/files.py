"""ELMo's two files in their original layout, the options in JSON and the weights in HDF5: found (at a path, a URL, in
the hub's cache or ctxexp's own; no silent fallback), read, checked and written.

The only place that knows the file's names and orders. bilm-tf wrote them, AllenNLP read them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

import numpy as np
from pydantic import AliasPath, BeforeValidator, Field, StrictBool, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from ctxexp.datasets.downloads import UNREACHABLE, cache_folder, content_at
from ctxexp.errors import DiskError, ModelError
from ctxexp.files import atomic_write, user_path

if TYPE_CHECKING:
    import h5py
    from torch import Tensor

log = logging.getLogger("ctxexp")
_Size = Annotated[int, Field(ge=1, le=10**5, strict=True)]
_Clip = Annotated[float, BeforeValidator(lambda clip: clip or float("inf")), Field(ge=0, strict=True)]
ORIGINAL = "elmo_2x4096_512_2048cnn_2xhighway"  # the "original" model: 93.6M parameters, 1 Billion Word benchmark
_NAMES = f"{ORIGINAL}_options.json", f"{ORIGINAL}_weights.hdf5"
_URLS = [f"https://allennlp.s3.amazonaws.com/models/elmo/{ORIGINAL.removeprefix('elmo_')}/{name}" for name in _NAMES]


def hub_cache() -> Path:
    """The hub library's cache folder."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def locate(given: str, key: str) -> Path:
    """The file of a path or an http(s) URL, downloaded to the cache once; `key` is the config key in errors."""
    return _fetch(given, key) if given.startswith(("http://", "https://")) else user_path(given)


def original_files() -> tuple[Path, Path]:
    """Options and weights of the original ELMo: from the hub's cache, ctxexp's cache, or AllenNLP's server."""
    if files := local_original():
        return files
    targets = [_target(url) for url in _URLS]
    try:
        for url, key in zip(_URLS, ("options_file", "weight_file"), strict=True):
            _fetch(url, key)
    except ModelError as error:
        raise ModelError(
            f"weights=published: no {' and '.join(_NAMES)} in the hub's cache ({hub_cache()}) or in "
            f"{targets[0].parent}, and {error}. Either run once with a network, or give copies of both files with "
            "model.options_file=<path> model.weight_file=<path>"
        ) from None
    return targets[0], targets[1]


def local_original() -> tuple[Path, Path] | None:
    """Its options and weights in the hub's cache or ctxexp's; None where neither has both."""
    for folder in (*sorted(hub_cache().glob("models--*/snapshots/*")), _target(_URLS[0]).parent):
        if all((folder / name).is_file() for name in _NAMES):
            return folder / _NAMES[0], folder / _NAMES[1]
    return None


def _target(url: str) -> Path:
    folder, _, name = url.partition("?")[0].rpartition("/")
    return cache_folder() / "models" / "elmo" / hashlib.sha256(folder.encode()).hexdigest()[:12] / (name or "file")


def _fetch(url: str, key: str) -> Path:
    target = _target(url)
    if target.is_file():
        return target
    if os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on"):
        raise ModelError(f"{key}: {url} is not in {target.parent}, and HF_HUB_OFFLINE forbids downloading it")
    try:
        content = content_at(url)
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(target) as part:
            part.write_bytes(content)
    except (*UNREACHABLE, DiskError) as error:
        raise ModelError(f"{key}: {url} could not be downloaded to {target.parent} ({error})") from None
    log.info("downloaded %s to %s (sha256 %s)", url, target, hashlib.sha256(content).hexdigest())
    return target


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
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} can't be read as JSON ({error}); expected an ELMo options.json") from None
    return ElmoOptions.parse(content, str(path))


class Part(NamedTuple):
    """A parameter of the network, how it lies in the file, and the shape of each of its datasets there."""

    ours: str
    way: str  # one of `WAYS`
    shapes: Mapping[str, tuple[int, ...]]


Arrays = Sequence[np.ndarray]
WAYS: dict[str, tuple[Callable[[Arrays], np.ndarray], Callable[[np.ndarray], Arrays]]] = {
    "same": (lambda parts: parts[0], lambda x: [x]),
    "transposed": (lambda parts: parts[0].T, lambda x: [x.T]),
    "filter": (lambda parts: parts[0][0].transpose(2, 1, 0), lambda x: [x.transpose(2, 1, 0)[None]]),
    "side by side": (lambda parts: np.concatenate(parts, axis=-1), lambda x: np.split(x, 2, axis=-1)),
    "stacked": (np.stack, list),
}
"""Way -> the parameter from its datasets, and the datasets of the parameter."""


def parts(options: ElmoOptions) -> Iterator[Part]:
    """All parameters of the network, by their names in `ElmoNetwork.state_dict`."""
    width, cells, n = options.projection, options.cells, options.n_filters
    yield Part("tokens.characters", "same", {"char_embed": (options.n_characters - 1, options.character_dim)})
    for i, (reach, number) in enumerate(options.filters):
        yield Part(f"tokens.filters.{i}", "filter", {f"CNN/W_cnn_{i}": (1, reach, options.character_dim, number)})
        yield Part(f"tokens.biases.{i}", "same", {f"CNN/b_cnn_{i}": (number,)})
    for j in range(options.n_highway):
        for ours, theirs, shape in (("weight", "W", (n, n)), ("bias", "b", (n,))):
            shapes = {f"CNN_high_{j}/{theirs}_{gate}": shape for gate in ("carry", "transform")}
            yield Part(f"tokens.highways.{j}.{ours}", "side by side", shapes)
    if options.has_projection:
        yield Part("tokens.projection.weight", "transposed", {"CNN_proj/W_proj": (n, width)})
        yield Part("tokens.projection.bias", "same", {"CNN_proj/b_proj": (width,)})
    gates = 4 * cells
    lstm = (("weight", "W_0", (2 * width, gates)), ("bias", "B", (gates,)), ("project", "W_P_0", (cells, width)))
    for layer in range(options.n_layers):
        for ours, theirs, shape in lstm:
            cell = f"RNN/MultiRNNCell/Cell{layer}/LSTMCell/{theirs}"
            yield Part(f"layers.{layer}.{ours}", "stacked", {f"RNN_{d}/{cell}": shape for d in range(2)})


def layout(options: ElmoOptions) -> dict[str, tuple[int, ...]]:
    """The shape of each dataset of the weight file, by its name."""
    return {name: shape for part in parts(options) for name, shape in part.shapes.items()}


def read_weights(path: Path, options: ElmoOptions) -> dict[str, Tensor]:
    """The network's state (`ElmoNetwork.load_state_dict`), float32, from the HDF5 file `path`."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            arrays = _read(file, path, layout(options))
    except (OSError, RuntimeError, KeyError, ValueError) as error:  # what HDF5 says of damage within
        raise ModelError(f"{path} can't be read as HDF5 ({error}); is it a whole ELMo weight file?") from None
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ModelError(f"{path}: dataset {name!r} holds NaN or infinite values; the file is damaged")
    import torch

    state = {part.ours: WAYS[part.way][0]([arrays[name] for name in part.shapes]) for part in parts(options)}
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in state.items()}


def _read(file: h5py.File, path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The datasets of these names and shapes, float32, which must be all that the network has."""
    import h5py

    datasets: dict[str, h5py.Dataset] = {}
    file.visititems(lambda name, item: datasets.update({name: item}) if isinstance(item, h5py.Dataset) else None)
    for name in sorted(shapes.keys() | {name for name in datasets if name.startswith(("CNN", "RNN"))}):
        dataset, expected = datasets.get(name), shapes.get(name)
        if dataset is None or dataset.shape != expected or dataset.dtype.kind != "f":
            got = "isn't there" if dataset is None else f"has shape {dataset.shape} ({dataset.dtype})"
            asked = "none" if expected is None else f"{expected} of floats"
            raise ModelError(f"{path}: dataset {name!r} {got}, its options ask for {asked}; do the two files match?")
    arrays: dict[str, np.ndarray] = {}
    for name in shapes:
        with np.errstate(over="ignore"):  # what overflows is infinite, and told
            arrays[name] = np.asarray(datasets[name][...], dtype=np.float32)
    return arrays


def write_options(path: Path, options: ElmoOptions) -> None:
    """Write `options` as an `options.json` of AllenNLP's layout."""
    content: dict[str, Any] = {}
    for name, typed in get_type_hints(ElmoOptions, include_extras=True).items():
        *above, last = map(str, get_args(typed)[-1].validation_alias.path)
        place = content
        for key in above:
            place = place.setdefault(key, {})
        value = getattr(options, name)
        place[last] = None if value == float("inf") else value
    path.write_text(json.dumps(content, indent=2) + "\n", "utf-8")


def write_weights(path: Path, state: Mapping[str, Tensor], options: ElmoOptions, *, dtype: str = "float32") -> None:
    """Write the network's `state_dict()` as HDF5 in AllenNLP's layout; `dtype` "float16" halves the file."""
    import h5py

    with h5py.File(path, "w") as file:
        for part in parts(options):
            arrays = WAYS[part.way][1](state[part.ours].detach().float().cpu().numpy())
            for name, array in zip(part.shapes, arrays, strict=True):
                file.create_dataset(name, data=array.astype(dtype))
