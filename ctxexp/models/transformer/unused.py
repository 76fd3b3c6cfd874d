"""Everything in a checkpoint that the network doesn't use, and what is done about it: files, weights, own code, keys of
its settings. `ledger.toml` lists what is harmless, with the reason, and what changes vectors; the rest is named."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxexp.errors import ModelError, short
from ctxexp.files.job_folder import read_json
from ctxexp.models.transformer.checkpoint import ADAPTER, Checkpoint, weight_files
from ctxexp.models.transformer.ledger import is_listed, ledger, unknown_keys
from ctxexp.models.transformer.pipeline import Pipeline

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
    from transformers.modeling_utils import LoadStateDictInfo

    from ctxexp.models.options import Unused

log = logging.getLogger("ctxexp")


class Leftovers(NamedTuple):
    """Unused contents of a checkpoint, a sentence each: losses would change vectors, of doubts nobody can tell."""

    losses: list[str]
    doubts: list[str]


def report_unused(unused: Iterable[Leftovers], policy: Unused, source: str) -> list[str]:
    """Log what of the checkpoint isn't used. Raises `ModelError` under `refuse` for what would change vectors."""
    losses, doubts = [s for one in unused for s in one.losses], [s for one in unused for s in one.doubts]
    if losses and policy == "refuse":
        raise ModelError(
            f"{source} holds what isn't used, so that its vectors would be another model's: {'; '.join(losses)}. "
            "model.unused=warn measures what is left (of a model in memory from_transformers(..., unused='warn'))"
        )
    warnings = [f"{source}: not used: {sentence}" for sentence in losses + doubts]
    for warning in warnings:
        log.warning("%s", warning)
    return warnings


def unused_files(checkpoint: Checkpoint, pipeline: Pipeline, *, used: str = "") -> Leftovers:
    """Files of weights, adapters and settings in the checkpoint's folder that nothing reads, but for the setting of
    sentence-transformers that is `used`; copies of the same weights in other formats are no loss."""
    folder, weights = checkpoint.folder, weight_files(checkpoint.folder)
    settings = list(unknown_keys(checkpoint.sentence_settings, "sentence_config"))
    losses = [
        f"{one} of its settings for sentence-transformers (sentence_..._config.json)"
        for one in settings
        if one.partition("=")[0] != used
    ]
    if (folder / "adapter_config.json").is_file():
        if not (folder / ADAPTER).is_file():
            raise ModelError(
                f"{folder} has an adapter beside its model (adapter_config.json) without {ADAPTER}, and ctxexp "
                "unpickles nothing: save the adapter there in safetensors, or remove adapter_config.json"
            )
        if find_spec("peft") is None:
            losses.append("its adapter (adapter_config.json), which needs the package peft: pip install peft")
    taken = {path.name for path in weights} | {ADAPTER}
    for path in sorted(folder.glob("*.safetensors")):
        # consolidated: Meta's and Mistral's own format; model.fp16: a variant that is asked for by name
        if path.name not in taken and not re.fullmatch(r"consolidated.*|[\w-]+\.(fp16|bf16|fp32)\..*", path.name):
            losses.append(
                f"the weights in {path.name}, beside {short([p.name for p in weights])}: remove the file, or the one "
                "that stands in its way"
            )
    unknown = [path.name for path in sorted(folder.iterdir()) if path.is_file() and not is_listed(path.name, "files")]
    doubts = [f"{_names(unknown)} of its files, which no model of transformers has"] * bool(unknown)
    keys = list(unknown_keys(read_json(folder / "tokenizer_config.json"), "tokenizer_config"))
    doubts += [f"{_names(keys)} of the keys of tokenizer_config.json, which no tokenizer is known to read"] * bool(keys)
    if keys := [one for one in pipeline.unknown_keys if one not in settings]:
        doubts.append(f"{_names(keys)} of the keys of modules.json, config_sentence_transformers.json and its modules")
    beyond = [f"its default prompt {pipeline.prompt!r}"] * bool(pipeline.prompt)
    beyond += [f"its modules {', '.join(pipeline.modules[1:])}"] * pipeline.needs_library
    doubts += [f"{' and '.join(beyond)}, for words: sentences' vectors go through them"] * bool(beyond)
    return Leftovers(losses, doubts)


# A head stands behind the last layer, so it changes no layer's vectors; known by the first part of its weights' names.
HEADS = re.compile(
    r"\w*(head|pred|classif|pooler|loss|logit|output|summary)\w*|vocab_\w+|cls|nsp|score|embed_out|mtp|decoder"
)
TUNING = re.compile(r"lora|adapter|prompt|prefix|ia3|vera_", re.IGNORECASE)  # stands before layers or inside them
OLD_NAMES = re.compile(r"^(TF|Flax)|(?<=T5)WithLMHeadModel")  # of classes, in architectures


def unused_weights(
    model: PreTrainedModel, unexpected: Iterable[str], names: Iterable[str], files: Sequence[Path]
) -> Leftovers:
    """Weights of the files (`names`) that the network has no place for: `unexpected`, as transformers says, and those
    that it ignores by lists of its own. Those inside its modules, or of layers beyond its last, are lost; those of a
    head are not missed; of any others nobody can tell."""
    ignore = re.compile("|".join([r"rotary_emb\.inv_freq$", *(model._keys_to_ignore_on_load_unexpected or ())]))
    places = model.state_dict().keys()
    ignored = {name for name in names if ignore.search(name)} - places
    ignored -= {f"{model.base_model_prefix}.{name}" for name in places}
    modules, buffers = {name for name, _ in model.named_modules()}, dict(model.named_buffers())
    lost, unknown, tied = [], [], []
    for name in sorted({*unexpected} | ignored):
        own = name.removeprefix(f"{model.base_model_prefix}.")
        steps = own.split(".")
        inside = any(".".join(steps[:i]) in modules for i in range(1, len(steps)))
        last = steps[-1]
        same = [buffer for other, buffer in buffers.items() if other.rpartition(".")[2] == last]
        if model.config.is_encoder_decoder and steps[0] == "decoder":
            continue  # the half that isn't read
        if name in ignored and name not in unexpected and not same and last != "bias":
            continue  # transformers knows that the network is right without it
        if TUNING.search(name) or (inside and not _is_constant(read_weight(files, name), same)):
            lost.append(name)
        elif not inside and not HEADS.fullmatch(steps[0]):
            unknown.append(name)
        elif not inside and last == "weight" and _is_other_head(name, files, model):
            tied.append(name)
    losses = [
        f"{_names(lost)} of its weights, for which the network of config.json has no place: correct config.json "
        "(model_type, or the key that turns them on), or save the model again with what was trained merged into it"
    ] * bool(lost)
    losses += [
        f"{name}, as config.json ties the head to the input embeddings and the two differ: say "
        "tie_word_embeddings=false there if the head was trained"
        for name in tied
    ]
    doubts = [f"{_names(unknown)} of its weights, which belong to no part of {type(model).__name__}"] * bool(unknown)
    return Leftovers(losses, doubts)


def read_weight(files: Sequence[Path], name: str) -> torch.Tensor | None:
    """A tensor of safetensors files by its name, or by one that ends in it; None where no file has it."""
    from safetensors import safe_open

    for path in files:
        with safe_open(path, "pt") as file:
            for key in file.keys():  # noqa: SIM118  # the file is no mapping
                if key == name or key.endswith(f".{name}"):
                    return file.get_tensor(key)
    return None


def _is_constant(tensor: torch.Tensor | None, buffers: Sequence[torch.Tensor]) -> bool:
    """Whether a tensor is what code makes for itself: a buffer of the network, positions in order, a causal mask or
    the number that masks."""
    import torch

    if tensor is None:
        return False
    if any(b.shape == tensor.shape and torch.allclose(b.cpu().float(), tensor.float(), rtol=1e-2) for b in buffers):
        return True  # frequencies may have been stored in half precision
    if tensor.numel() == 1:
        return float(tensor) <= -1e4
    order = torch.arange(tensor.shape[-1])
    rows = tensor.reshape(-1, tensor.shape[-1]).float()
    if tensor.ndim < 2 or tensor.shape[-1] != tensor.shape[-2]:
        return bool((rows == order).all())
    mask = (order[:, None] >= order).float().repeat(len(rows) // len(order), 1)
    return bool((rows == mask).all())


def _is_other_head(name: str, files: Sequence[Path], model: PreTrainedModel) -> bool:
    """Whether an output matrix of the file differs from the input matrix that config.json ties it to."""
    import torch
    import transformers

    table = getattr(model.get_input_embeddings(), "weight", None)
    classes = [getattr(transformers, named, None) for named in model.config.architectures or ()]
    tied = [key for cls in classes for key in getattr(cls, "_tied_weights_keys", None) or ()]
    if table is None or table.is_meta or not model.config.get_text_config().tie_word_embeddings:
        return False
    head = None if tied and name not in tied else read_weight(files, name)
    return (
        head is not None and head.shape == table.shape and not torch.equal(head.to(table.dtype), table.detach().cpu())
    )


def is_own_code(part: object) -> bool:
    """Whether a model's or tokenizer's class is code that a checkpoint brought along."""
    return type(part).__module__.startswith("transformers_modules")


def unused_code(settings: Mapping[str, Any], model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Leftovers:
    """Own code of the checkpoint, and classes that config.json (`settings`) names, where another class is run."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES as ENCODERS

    losses: list[str] = []
    doubts: list[str] = []
    module, used = type(model).__module__, type(model).__name__
    parts = {"AutoTokenizer": tokenizer, "AutoConfig": model.config}
    for key, own in (settings.get("auto_map") or {}).items():
        runs = parts.get(key, model)
        if key != "AutoProcessor" and not is_own_code(runs):
            losses.append(
                f"its own code ({key}: {own}), in place of which transformers' {type(runs).__name__} is run: "
                "trust_remote_code=true runs it, once you have read it"
            )
    classes = {name.casefold() for name in vars(sys.modules[module])}
    for name in settings.get("architectures") or () if not losses else ():
        if name == used or OLD_NAMES.sub("", name).casefold() in classes | {"t5"}:
            continue
        sentence = f"the class {name} that config.json names (architectures), in place of which {used} is run"
        is_head = model.config.is_encoder_decoder or model.config.model_type in ENCODERS
        (doubts if is_head and name not in dir(sys.modules["transformers"]) else losses).append(sentence)
    return Leftovers(losses, doubts)


def check_adapter(info: LoadStateDictInfo, source: str) -> None:
    """Raise `ModelError` where an adapter's weights, by what transformers says of their load, didn't find their place
    in the network."""
    beyond = {name for name in info.unexpected_keys if HEADS.fullmatch(name.split(".")[0])}
    wrong = {*info.unexpected_keys - beyond, *info.missing_keys, *(key[0] for key in info.mismatched_keys)}
    if wrong:
        raise ModelError(
            f"{source}: the adapter beside the model (adapter_config.json) doesn't fit it, by {_names(sorted(wrong))} "
            "of its weights; merge it into the model with peft (merge_and_unload) and save that"
        )


def _names(names: Sequence[str]) -> str:
    """`12 (a, b, c ...)`."""
    return f"{len(names)} ({', '.join(names[:3])}{' ...' if len(names) > 3 else ''})"


def unused_settings(settings: Mapping[str, Any], config: PretrainedConfig, model: PreTrainedModel) -> Leftovers:
    """Keys of config.json (`settings`), at any depth, that the class of its config doesn't know, or knows and no
    network reads, with a value that asks for something, which null, false and nought don't, but of causality."""
    network, lost, unknown = type(model), list[str](), list[str]()
    if network.__module__.startswith("transformers.models."):  # any other code reads what it likes
        code = vars(sys.modules[network.__module__])
        for name, value, is_loss in _unread(settings, config):
            # masks of an encoder are causal by another key
            is_settled = not value if "create_bidirectional_mask" in code else "create_causal_mask" in code
            if name != "is_causal" or not is_settled:
                (lost if is_loss else unknown).append(f"{name}={short(value)}")
    losses = [
        f"{', '.join(lost)} of its config.json, which {network.__name__} doesn't read, though other models do: "
        "call it as this model's config does, or remove it if it is left over"
    ] * bool(lost)
    doubts = [f"{', '.join(unknown)} of its config.json, which {network.__name__} doesn't know"] * bool(unknown)
    return Leftovers(losses, doubts)


def _unread(settings: Mapping[str, Any], config: PretrainedConfig, where: str = "") -> Iterator[tuple[str, Any, bool]]:
    """The keys that nothing reads and that aren't known to be harmless, each behind the parts it stands in, with its
    value, and whether it changes vectors wherever it is read."""
    defaults = {field.name: field.default for field in fields(config)}
    known = {*defaults, *config.attribute_map, *config.attribute_map.values()}
    with suppress(Exception):  # some have no defaults
        known |= vars(type(config)()).keys()  # what the class itself sets
    read, ignored = (ledger()[one].get(type(config).__name__, "").split() for one in ("read", "unread"))
    own = vars(config)  # reading an attribute of each layer's own is an error
    for key, value in settings.items():
        part = own.get(key)
        if isinstance(value, Mapping) and hasattr(part, "attribute_map"):
            yield from () if is_listed(key, "config") else _unread(value, part, f"{where}{key}.")
        elif key in known or key in read:
            if key in ignored and value != defaults.get(key):
                yield f"{where}{key}", value, True
        # the class took the others away and read them, but for rotary positions, which all classes take
        elif key in own or (key in ("rope_scaling", "rope_theta") and "rope_parameters" not in known):
            asks = bool(value) or (value is False and "causal" in key)
            if not asks or value == ledger()["usual"].get(key, MISSING) or _repeats(key, value, config):
                continue
            is_loss = is_listed(key, "telling")
            if is_loss or not is_listed(key, "config"):
                yield f"{where}{key}", value, is_loss


def _repeats(key: str, value: object, config: PretrainedConfig) -> bool:
    """Whether a key says again what another one says: the same value, under a name with a word in common."""
    common = {"num", "n", "size", "use", "type", "is", "max", "attention", "hidden"}

    def words(name: str) -> set[str]:
        return {word.removesuffix("s").removesuffix("ivation") for word in name.split("_")} - common

    own = [] if isinstance(value, bool) else [field.name for field in fields(config)]
    return any(words(key) & words(name) and vars(config).get(name) == value for name in own)
