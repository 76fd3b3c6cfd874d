"""What becomes of a checkpoint's parts: whether everything that it holds is used, weights and own code, and what is
done about what isn't (its files are looked at without loading anything).
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxexp.errors import ModelError, short
from ctxexp.models.transformer import ADAPTER, Checkpoint, weight_files

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from ctxexp.models.choices import Unused

log = logging.getLogger("ctxexp")


class Leftovers(NamedTuple):
    """What nothing of the network uses, as sentences: what would change vectors, and what can't be told."""

    losses: list[str]
    doubts: list[str]


def account(unused: Iterable[Leftovers], policy: Unused, source: str) -> list[str]:
    """Log what of the checkpoint isn't used. Raises `ModelError` under `refuse` for what would change vectors."""
    losses, doubts = [s for one in unused for s in one.losses], [s for one in unused for s in one.doubts]
    if losses and policy == "refuse":
        raise ModelError(
            f"{source} holds what isn't used, so that its vectors would be another model's: {'; '.join(losses)}. "
            "model.unused=warn measures what is left"
        )
    warnings = [f"{source}: not used: {sentence}" for sentence in losses + doubts]
    for warning in warnings:
        log.warning("%s", warning)
    return warnings


SENTENCE_SETTINGS = (  # of sentence-transformers, which change what its transformer is given, or how it is loaded
    "do_lower_case", "model_args", "model_kwargs", "config_args", "config_kwargs", "tokenizer_args",
    "processor_kwargs", "tokenizer_name_or_path",
)  # fmt: skip


def unused_files(checkpoint: Checkpoint, *, used: str = "") -> Leftovers:
    """Files of weights, adapters and settings in the checkpoint's folder that nothing reads, but for the setting of
    sentence-transformers that is `used`; copies of the same weights in other formats are no loss."""
    folder, settings = checkpoint.folder, checkpoint.sentence_settings
    weights = weight_files(folder)
    losses = [
        f"{key}={settings[key]!r} of its settings for sentence-transformers (sentence_..._config.json)"
        for key in SENTENCE_SETTINGS
        if settings.get(key) and key != used
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
    newest = max(path.stat().st_mtime for path in weights)
    for path in sorted(folder.glob("pytorch_model*.bin")):
        if path.stat().st_mtime > newest and (name := _other_weight(path, weights)):
            losses.append(f"{path.name}, which is newer than the safetensors and has another {name}: convert it anew")
    return Leftovers(losses, [])


def _other_weight(pickled: Path, weights: Sequence[Path]) -> str:
    """The first weight of a pickle, read without running any code, that differs from the one in safetensors."""
    try:
        import torch

        tensors = torch.load(pickled, map_location="cpu", weights_only=True, mmap=True)
    except Exception:  # whatever it is, it isn't what transformers would read
        return "content, which can't be read"
    from safetensors import safe_open

    for path in weights:
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118  # the file is no mapping
                if name in tensors and not torch.equal(tensors[name].float(), file.get_tensor(name).float()):
                    return str(name)
    return ""


# A head stands behind the last layer, so it changes no layer's vectors; known by the first part of its weights' names.
HEADS = re.compile(
    r"\w*(head|pred|classif|pooler|loss|logit|output|summary)\w*|vocab_\w+|cls|nsp|score|embed_out|mtp|decoder"
)
TUNING = re.compile(r"lora|adapter|prompt|prefix|ia3|vera_", re.IGNORECASE)  # stands before layers or inside them
OLD_NAMES = re.compile(r"^(TF|Flax)|(?<=T5)WithLMHeadModel")  # of classes, in architectures


class LoadReport(NamedTuple):
    """What transformers says of a load."""

    unexpected: frozenset[str]  # weights of the files that nothing takes, those among them that it ignores too
    ignored: frozenset[str]  # by lists of its own
    mismatched: Collection[tuple[str, Any, Any]]
    missing: Collection[str]


@contextmanager
def loading_reports() -> Iterator[list[LoadReport]]:
    """The report of each load inside. What `from_pretrained` returns leaves weights out that it ignores, and with an
    adapter beside the model it is the adapter's."""
    from unittest.mock import patch

    from transformers import PreTrainedModel

    reports: list[LoadReport] = []
    adjust = PreTrainedModel._adjust_missing_and_unexpected_keys

    def record(model: PreTrainedModel, info: Any) -> None:
        every = frozenset(info.unexpected_keys)
        adjust(model, info)
        ignored = every - set(info.unexpected_keys)
        reports.append(LoadReport(every, ignored, list(info.mismatched_keys), sorted(info.missing_keys)))

    with patch.object(PreTrainedModel, "_adjust_missing_and_unexpected_keys", record):
        yield reports


def unused_weights(model: PreTrainedModel, report: LoadReport, files: Sequence[Path]) -> Leftovers:
    """Weights of the files that the network has no place for. Those inside its modules, or of layers beyond its last,
    are lost; those of a head are not missed; of any others nobody can tell."""
    modules, buffers = {name for name, _ in model.named_modules()}, dict(model.named_buffers())
    lost, unknown, tied = [], [], []
    for name in sorted(report.unexpected):
        own = name.removeprefix(f"{model.base_model_prefix}.")
        steps = own.split(".")
        inside = any(".".join(steps[:i]) in modules for i in range(1, len(steps)))
        last = steps[-1]
        same = [buffer for other, buffer in buffers.items() if other.rpartition(".")[2] == last]
        if model.config.is_encoder_decoder and steps[0] == "decoder":
            continue  # the half that isn't read
        if name in report.ignored and not same and last != "bias":
            continue  # transformers knows that the network is right without it
        if TUNING.search(name) or (inside and not _is_constant(read_weight(files, name), same)):
            lost.append(name)
        elif not inside and not HEADS.fullmatch(steps[0]):
            unknown.append(name)
        elif not inside and last == "weight" and _is_other_head(name, files, model):
            tied.append(name)
    losses = [
        f"{_listed(lost)} of its weights, for which the network of config.json has no place: correct config.json "
        "(model_type, or the key that turns them on), or save the model again with what was trained merged into it"
    ] * bool(lost)
    losses += [
        f"{name}, as config.json ties the head to the input embeddings and the two differ: say "
        "tie_word_embeddings=false there if the head was trained"
        for name in tied
    ]
    doubts = [f"{_listed(unknown)} of its weights, which belong to no part of {type(model).__name__}"] * bool(unknown)
    return Leftovers(losses, doubts)


def read_weight(files: Sequence[Path], name: str) -> torch.Tensor | None:
    """A tensor of safetensors files by its name, or by one that ends in it; None where no file has it."""
    from safetensors import safe_open

    for path in files:
        with safe_open(path, "pt") as file:
            for key in file.keys():  # noqa: SIM118  # the file is no mapping
                if key == name or key.endswith(f".{name}"):
                    tensor: torch.Tensor = file.get_tensor(key)
                    return tensor
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


def check_adapter(model: PreTrainedModel, info: Mapping[str, set[Any]], source: str) -> None:
    """Raise `ModelError` where an adapter's weights, by what transformers says of their load, didn't find their place
    in the network."""
    beyond = {name for name in info["unexpected_keys"] if HEADS.fullmatch(name.split(".")[0])}
    wrong = {*info["unexpected_keys"] - beyond, *info["missing_keys"], *(key[0] for key in info["mismatched_keys"])}
    if wrong:
        raise ModelError(
            f"{source}: the adapter beside the model (adapter_config.json) doesn't fit it, by {_listed(sorted(wrong))} "
            "of its weights; merge it into the model with peft (merge_and_unload) and save that"
        )


def _listed(names: Sequence[str]) -> str:
    """`12 (a, b, c ...)`."""
    return f"{len(names)} ({', '.join(names[:3])}{' ...' if len(names) > 3 else ''})"
