"""What a loaded checkpoint must be before its vectors are believed: sizes, layers, vocabulary, finite numbers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ctxexp.errors import ModelError, said

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

MOST_LAYERS = 1000
MOST_DRAWN = 10**10  # weights of an untrained model: beyond it no machine's memory is asked
FLOATS = ("F64", "F32", "F16", "BF16")


def check_size(config: PretrainedConfig, source: str) -> None:
    """Raise `ModelError` for a config of more layers than any model has, before a network of them is built."""
    inner = config.get_text_config()
    for part in (config, inner):
        for key in ("num_hidden_layers", "num_layers", "num_decoder_layers"):
            n = getattr(part, key, None)
            if isinstance(n, int) and not 0 < n <= MOST_LAYERS:
                raise ModelError(f"{source}: its config.json says {key}={n}; expected 1 to {MOST_LAYERS:,} layers")


def check_room(build: Callable[[], torch.nn.Module], held: Mapping[str, tuple[str, int]] | None, source: str) -> None:
    """Raise `ModelError` if the network that `build` makes is far larger than its files (`held`: type and size of each
    weight; None: it is drawn), or its floats are integers there; nothing is allocated."""
    with torch.device("meta"):
        weights = dict(build().named_parameters())
    n = sum(weight.numel() for weight in weights.values())
    if held is None:
        if n > MOST_DRAWN:
            raise ModelError(f"{source}: its config.json describes {n:,} weights; at most {MOST_DRAWN:,} are drawn")
        return
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


def held_weights(files: Iterable[Path]) -> dict[str, tuple[str, int]]:
    """Type and number of values of each weight in safetensors files, by its name, from their headers."""
    from safetensors import safe_open

    found = {}
    for path in files:
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118  # the file is no mapping
                part = file.get_slice(name)
                found[name] = str(part.get_dtype()), math.prod(part.get_shape())
    return found


def damaged_file(folder: Path) -> str:
    """What is wrong with the first file of a checkpoint that isn't what its name says; empty if all are."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            if path.suffix == ".json":
                json.loads(path.read_text(encoding="utf-8"))
            elif path.suffix == ".safetensors":
                held_weights([path])
        except Exception as error:  # safetensors has an exception of its own for each mishap
            return f"{path.name} can't be read ({said(error)}); copy or download it again"
    return ""


def check_layers(model: PreTrainedModel, unused: Collection[str], source: str) -> None:
    """Raise `ModelError` if among the file's `unused` weights are those of layers that the config leaves out."""
    for name, stack in model.named_modules():
        if not isinstance(stack, torch.nn.ModuleList):
            continue
        numbers = re.compile(rf"(?:^|\.){re.escape(name)}\.(\d+)\.")
        held = [int(found[1]) for found in map(numbers.search, unused) if found]
        if beyond := [n for n in held if n >= len(stack)]:
            raise ModelError(
                f"{source}: by its config.json the layers end with {name}.{len(stack) - 1}, its weights go on to "
                f"{name}.{max(beyond)}, which would be dropped; do the two files match?"
            )


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
    n, rows = len(tokenizer) - len(tokenizer.all_special_ids), table_rows(model)
    if n <= 0 or 2 * n < rows:
        raise ModelError(
            f"{source}: its tokenizer ({type(tokenizer).__name__}) knows {n:,} pieces besides its special ones, but "
            f"the model's embedding table has {rows:,} rows; the tokenizer's files (tokenizer.json, vocab.txt ...) are "
            "missing or another model's: save them there with AutoTokenizer.from_pretrained(original).save_pretrained"
        )


def check_tokenizer(
    tokenizer: PreTrainedTokenizerBase,
    config: PretrainedConfig,
    source: str,
    *,
    pieces: Mapping[str, int],
    verified: bool = False,
) -> str:
    """Why the tokenizer may be another model's, in a sentence; empty where nothing speaks for it. Raises `ModelError`
    where that is beyond doubt: it isn't of the class that config.json names, or gives the special `pieces` of a paper's
    tokenizer other numbers beside the paper's own weights (`verified`).

    Sizes can't tell: GPT-2's 50,257 pieces fit many tables, and all its numbers below a table's rows have a vector.
    """
    own, named = _tokenizer_class(tokenizer), str(getattr(config, "tokenizer_class", None) or "")
    if own and _slow(named) not in ("", own):
        raise ModelError(
            f"{source}: config.json names the tokenizer {named}, but the tokenizer's files are of {own}; copy the "
            "model's own tokenizer files there, or correct tokenizer_class in config.json"
        )
    vocabulary = tokenizer.get_vocab() if pieces else {}
    for piece, number in pieces.items():
        if (has := vocabulary.get(piece)) != number:
            here = "none" if has is None else has
            wrong = f"{piece} has the number {number} in its paper's tokenizer, and {here} in the files here"
            if verified:
                raise ModelError(f"{source}: {wrong}; copy the model's own tokenizer files there")
            return wrong
    return _tokenizer_doubt(tokenizer, config, own)


def _tokenizer_doubt(tokenizer: PreTrainedTokenizerBase, config: PretrainedConfig, own: str) -> str:
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES

    usual = TOKENIZER_MAPPING_NAMES.get(config.model_type)
    usual = usual[-1] or usual[0] if isinstance(usual, tuple) else usual
    if own and usual and _slow(usual) not in _GENERAL and own != _slow(usual):
        return f"its tokenizer is a {own}, models of type {config.model_type} have a {_slow(usual)} as a rule"
    for role in ("pad", "bos", "eos"):
        number, has = getattr(config, f"{role}_token_id", None), getattr(tokenizer, f"{role}_token_id", None)
        if isinstance(number, int) and number >= 0 and has is not None and has != number:
            return f"its config.json gives {role}_token_id {number}, its tokenizer {has}"
    return ""


_GENERAL = ("", "PreTrainedTokenizer", "TokenizersBackend", "PreTrainedTokenizerBase")  # of any model


def _slow(name: str) -> str:
    """A tokenizer's class without the suffix of its quick form."""
    return name.removesuffix("Fast")


def _tokenizer_class(tokenizer: PreTrainedTokenizerBase) -> str:
    """The class that its files name, else its own; empty for one that any model may have."""
    name = _slow(str(tokenizer.init_kwargs.get("tokenizer_class") or type(tokenizer).__name__))
    return "" if name in _GENERAL else name


def check_reading(tokenizer: PreTrainedTokenizerBase, folder: Path, source: str) -> None:
    """Raise `ModelError` if text is read otherwise than tokenizer.json says, where no tokenizer_config.json says how:
    transformers then takes the defaults of the model's type, which lower-case the text of a cased BERT."""
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    if not file.is_file() or (folder / "tokenizer_config.json").is_file():
        return
    sample, tokens = "The naïve Café's 42 dogs, RUNNING (in Zürich) — 漢字.", []
    for backend in (tokenizer.backend_tokenizer, Tokenizer.from_file(str(file))):
        backend.no_truncation()
        backend.no_padding()
        tokens.append(backend.encode(sample, add_special_tokens=False).tokens)
    if tokens[0] != tokens[1]:
        raise ModelError(
            f"{source}: without a tokenizer_config.json it is read as {type(tokenizer).__name__}, which splits text "
            "otherwise than its own tokenizer.json does; put the checkpoint's tokenizer_config.json beside it"
        )
