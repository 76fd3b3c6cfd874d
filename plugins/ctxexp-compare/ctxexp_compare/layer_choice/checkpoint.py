"""A layer as a plain checkpoint: a folder that sentence-transformers and transformers load without ctxexp.

The blocks above the layer are cut off. A network with a final norm puts it behind whatever block is its last, and no
weights make a norm leave its rows as they are: there one block more is kept, and sentence-transformers' own
WeightedLayerPooling reads the hidden state before it. A linear transform is a Dense module.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ctxexp import Encoder, Transform
from ctxexp.errors import ModelError, error_text
from ctxexp.report import write_file
from ctxexp_compare.checks.encoding import text_layers

POOLINGS = {"mean": "mean_tokens", "cls": "cls_token", "last": "lasttoken"}  # by the names of ours
MODULES, SETTINGS = "sentence_transformers.models.", "config_sentence_transformers.json"
CHECKED = ("Yes.", "The bank by the river was closed.", "She lent us money, a boat and " + "two oars, " * 300)
Fitted = tuple[Any, Transform]  # an experiment's calibration, and its transform fitted on the layer
TOLERANCE = 1e-5  # of the largest number: a few roundings of float32


def plain_view(encoder: Encoder, pooling: str) -> Any:
    """The encoder's sentence vectors. Raises ModelError where no plain checkpoint can hold a layer of it, and where the
    library that checks one isn't installed."""
    try:
        import sentence_transformers  # noqa: F401  # what is written is loaded by it, and compared
    except ModuleNotFoundError:
        raise ModelError("out=: a checkpoint is checked by its library: pip install sentence-transformers") from None
    view: Any = encoder.sentence_encoder()
    if view is None or not hasattr(view, "pipeline"):
        raise ModelError(f"{encoder.title or encoder.name}: a checkpoint can be cut of models of transformers alone")
    if pooling not in (*POOLINGS, view.pipeline.pooling):
        raise ModelError(f"pooling={pooling}: sentence-transformers has no such one; expected {', '.join(POOLINGS)}")
    return view


def save_layer(view: Any, layer: int, folder: Path, *, pooling: str, transform: Fitted | None = None) -> Path:
    """Write the layer's sentence vectors as a checkpoint, load it by sentence-transformers and compare.

    Args:
        view: What `plain_view` returned.
        layer: The layer's number.
        folder: The folder; files of the same names are written over.
        pooling: The pooling that was measured.
        transform: A calibration, and its transform, fitted on this layer.

    Returns:
        The path of the list of modules.

    Raises:
        ModelError: A transform that isn't linear, or a model whose checkpoint gives other vectors, with the reason.
    """
    file = _write(view, layer, folder, pooling, transform)
    _check(view, layer, folder, pooling, transform)
    return file


def _write(view: Any, layer: int, folder: Path, pooling: str, transform: Fitted | None) -> Path:
    """Write the files; the path of the list of modules."""
    base, pipeline = view.base, view.pipeline
    has_norm = base.norm is not None and layer < base.n_layers - 1
    network, tokenizer = _cut(base.model, layer + has_norm, base.n_layers - 1), copy.copy(base.loaded.tokenizer)
    network.config.output_hidden_states = has_norm
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token or tokenizer.unk_token
    folder.mkdir(parents=True, exist_ok=True)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    limit = {} if view.limit is None else {"max_seq_length": view.limit}
    _write_json(folder / "sentence_bert_config.json", {**limit, "do_lower_case": pipeline.lower})
    modules = [("Transformer", "")]
    width = {"word_embedding_dimension": base.dim}
    if has_norm:  # of the last two hidden states, before and after the block that is left over, the first
        config = {**width, "layer_start": layer, "num_hidden_layers": layer + 1}
        _add(folder, modules, "WeightedLayerPooling", config, {"layer_weights": np.array([1.0, 0.0])})
    if pipeline.needs_library:
        modules += _copied(pipeline.source, folder, len(modules))
    else:
        modes = {f"pooling_mode_{mode}": pooling == name for name, mode in POOLINGS.items()}
        _add(folder, modules, "Pooling", {**width, **modes, "include_prompt": pipeline.include_prompt})
        if pipeline.normalizes:
            _add(folder, modules, "Normalize", {})
    if transform is not None:
        weight, bias = linear_map(*transform, view.dim)
        shape = {"in_features": weight.shape[1], "out_features": len(weight), "bias": True}
        identity = {"activation_function": "torch.nn.modules.linear.Identity"}
        _add(folder, modules, "Dense", {**shape, **identity}, {"linear.weight": weight, "linear.bias": bias})
    names = [name if "." in name else MODULES + name for name, _ in modules]
    listing = [{"idx": i, "name": str(i), "path": path, "type": names[i]} for i, (_, path) in enumerate(modules)]
    if isinstance(pipeline.source, Path) and (settings := pipeline.source / SETTINGS).is_file():  # with its prompts
        shutil.copyfile(settings, folder / SETTINGS)
    return _write_json(folder / "modules.json", listing)


def _cut(model: Any, blocks: int, n_blocks: int) -> Any:
    """A copy of the network with its first blocks alone."""
    config = copy.deepcopy(model.config)
    for key, value in config.to_dict().items():
        if isinstance(value, list | tuple) and len(value) == n_blocks:  # such as layer_types: an entry a block
            setattr(config, key, value[:blocks])
    config.num_hidden_layers = blocks
    network = type(model)(config).to(model.dtype).eval()
    missing = network.load_state_dict(model.state_dict(), strict=False).missing_keys
    if missing:
        raise ModelError(f"{type(model).__name__} can't be cut: with {blocks} blocks it has {missing[0]}, besides")
    return network


def _add(
    folder: Path,
    modules: list[tuple[str, str]],
    name: str,
    config: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write a module behind the others."""
    from safetensors.numpy import save_file

    path = f"{len(modules)}_{name}"
    modules.append((name, path))
    (folder / path).mkdir(exist_ok=True)
    _write_json(folder / path / "config.json", config)
    if tensors:
        arrays = {key: np.ascontiguousarray(value, np.float32) for key, value in tensors.items()}
        save_file(arrays, folder / path / "model.safetensors")


def _copied(source: Any, folder: Path, first: int) -> list[tuple[str, str]]:
    """The modules behind the network of a model of sentence-transformers, copied."""
    if not isinstance(source, Path):
        raise ModelError("a model in memory with modules beyond pooling can't be cut; save it, and name its folder")
    modules = []
    for i, one in enumerate(json.loads((source / "modules.json").read_text(encoding="utf-8"))[1:], first):
        path = f"{i}_{one['path'].partition('_')[2] or one['name']}"
        shutil.copytree(source / one["path"], folder / path, dirs_exist_ok=True)
        modules.append((one["type"], path))
    return modules


def linear_map(calibration: Any, fitted: Transform, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights (width, dim) and bias (width,) of a fitted transform, by what it makes of unit vectors about the mean
    that it takes off. Raises ModelError for one that isn't linear."""

    def apply(rows: np.ndarray) -> np.ndarray:
        return np.asarray(calibration.apply(fitted, rows.astype(np.float32), "export"), np.float64)

    centre = np.array(getattr(fitted, "mean", np.zeros(dim)), np.float32).astype(np.float64)
    at_centre = apply(centre[None])[0]
    weight = (apply(centre + np.eye(dim)) - at_centre).T
    bias = at_centre - weight @ centre
    rows = centre + np.random.default_rng(0).normal(size=(8, dim)) * np.arange(1, 9)[:, None]
    made = apply(rows)
    if not np.allclose(rows @ weight.T + bias, made, rtol=0, atol=1e-3 * np.abs(made).max()):
        raise ModelError(f"transform {calibration.name} isn't linear, and no module of sentence-transformers holds it")
    return weight, bias


def _check(view: Any, layer: int, folder: Path, pooling: str, transform: Fitted | None) -> None:
    from sentence_transformers import SentenceTransformer

    expected = layer_vectors(view, CHECKED, layer, pooling)
    if transform is not None:
        expected = transform[0].apply(transform[1], expected, "export")
    try:
        loaded = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        found = loaded.encode([*CHECKED], batch_size=1, show_progress_bar=False)
    except Exception as error:
        raise ModelError(
            f"{folder} was written, but sentence-transformers can't use it: {error_text(error)}"
        ) from error
    far = np.abs(found - expected).max() / np.abs(expected).max() if found.shape == expected.shape else np.inf
    if not far < TOLERANCE:
        (folder / "modules.json").unlink()
        raise ModelError(
            f"no plain checkpoint: layer {layer} gives vectors that differ by {far:.2g} from those measured here (by a "
            "prefix, a window or a dtype that only the options of ctxexp have?)"
        )


def layer_vectors(encoder: Encoder, texts: Sequence[str], layer: int, pooling: str) -> np.ndarray:
    """The layer's vectors of texts (n, dim) float32 by one pooling."""
    return np.asarray(text_layers(encoder, texts, pooling)[list(encoder.layer_numbers).index(layer)])


def _write_json(path: Path, content: object) -> Path:
    return write_file(path, json.dumps(content, indent=1) + "\n")
