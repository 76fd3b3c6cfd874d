"""Checks of a loaded checkpoint before its vectors are used: sizes, layers, vocabulary, finite numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ctxexp.errors import ModelError, error_text
from ctxexp.files.paths import no_device

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

MOST_LAYERS = 1000
WeightSizes = Mapping[str, tuple[str, int]]  # type and number of values of each weight, by its name
FLOATS = ("F64", "F32", "F16", "BF16")


def check_size(config: PretrainedConfig, source: str) -> None:
    """Raise `ModelError` for a config of more layers than any model has, before a network of them is built."""
    n = getattr(config.get_text_config(), "num_hidden_layers", 1)
    if isinstance(n, int) and not 0 < n <= MOST_LAYERS:
        raise ModelError(f"{source}: its config says num_hidden_layers={n}; expected 1 to {MOST_LAYERS:,} layers")


def check_room(build: Callable[[], torch.nn.Module], held: WeightSizes, source: str) -> None:
    """Raise `ModelError` if the network that `build` makes is far larger than its files (`held`: type and size of each
    weight), or its floats are integers there; nothing is allocated."""
    with torch.device("meta"):
        weights = dict(build().named_parameters())
    n = sum(weight.numel() for weight in weights.values())
    n_held = sum(size for _, size in held.values())
    if n > 2 * n_held + 10**7:  # a pooler may be missing
        raise ModelError(
            f"{source}: its config.json describes {n:,} weights, its files hold {n_held:,}; do they belong together?"
        )
    for name, (kind, _) in held.items():
        if kind not in FLOATS and any(name == own or name.endswith(f".{own}") for own in weights):
            raise ModelError(
                f"{source}: the weight {name} is of type {kind} in its file, and would be read without its scale; "
                "expected floats: use the checkpoint that isn't quantised"
            )


def weight_sizes(files: Iterable[Path]) -> WeightSizes:
    """Type and number of values of each weight in safetensors files, by its name, from their headers."""
    from safetensors import safe_open

    size_by_name: dict[str, tuple[str, int]] = {}
    for path in files:
        with safe_open(no_device(path), "pt") as file:
            for name in file.keys():  # noqa: SIM118  # the file is no mapping
                if name in size_by_name:
                    raise ModelError(f"{path} holds the weight {name}, as another file beside it does; keep one")
                part = file.get_slice(name)
                size_by_name[name] = str(part.get_dtype()), math.prod(part.get_shape())
    return size_by_name


def damaged_file(folder: Path) -> str:
    """A message about the first file of a checkpoint folder that can't be read as its suffix says; empty if all can."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            if path.suffix == ".json":
                json.loads(no_device(path).read_text(encoding="utf-8"))
            elif path.suffix == ".safetensors":
                weight_sizes([path])
        except Exception as error:  # safetensors has an exception of its own for each mishap
            return f"{path.name} can't be read ({error_text(error)}); copy or download it again"
    return ""


def check_finite(model: torch.nn.Module, source: str) -> None:
    """Raise `ModelError` naming a weight that holds NaN or infinity: attention and clips can hide it from vectors."""
    for name, weight in model.state_dict().items():
        if type(weight) is not torch.Tensor or not weight.is_floating_point() or not weight.numel():
            continue  # of another type are quantised weights, and those that lie elsewhere until they are used
        if not all(map(math.isfinite, torch.stack(torch.aminmax(weight)).tolist())):  # 10 times quicker than isfinite
            hint = "" if weight.dtype == torch.float32 else f", or it overflows in {weight.dtype}: try dtype=float32"
            raise ModelError(f"{source}: the weight {name} holds NaN or infinite values; the file is damaged{hint}")


def table_rows(model: PreTrainedModel) -> int:
    """Rows of the model's input embedding table; 0 for a model without one."""
    try:
        return len(model.get_input_embeddings().weight)
    except (AttributeError, NotImplementedError):
        return 0


def check_vocabulary(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel, source: str) -> None:
    """Raise `ModelError` if the tokenizer's pieces are few for the model's embedding table: its files are missing."""
    n, rows = len(tokenizer) - len(set(tokenizer.all_special_ids)), table_rows(model)
    if n <= 0 or 2 * n < rows:
        raise ModelError(
            f"{source}: its tokenizer ({type(tokenizer).__name__}) knows {n:,} pieces besides its special ones, but "
            f"the model's embedding table has {rows:,} rows; the tokenizer's files (tokenizer.json, vocab.txt ...) are "
            "missing or another model's: save them there with AutoTokenizer.from_pretrained(original).save_pretrained"
        )
