"""Loading a transformers checkpoint safely, and finding out what kind of model it is."""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import torch

from ctxexp.errors import ConfigError, EncodingError, ModelError, error_text, line, plugin_call, short
from ctxexp.models.options import TransformerOptions, resolve_device
from ctxexp.models.transformer.checkpoint import Checkpoint, weight_files
from ctxexp.models.transformer.forward import model_kind, table_rows
from ctxexp.models.transformer.gguf import GgufHeader, isolated_file, language_model_classes
from ctxexp.models.transformer.pieces import apply_tokenizer_files
from ctxexp.models.transformer.pipeline import Pipeline
from ctxexp.models.transformer.unused import (
    Leftovers,
    check_adapter,
    report_unused,
    unused_code,
    unused_settings,
    unused_weights,
)

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    from ctxexp.models.transformer.identity import Identity

log = logging.getLogger("ctxexp")
FLOATS = ("F64", "F32", "F16", "BF16")
WeightSizes = Mapping[str, tuple[str, int]]  # type and number of values of each weight, by its name


@dataclass(frozen=True)
class LoadedModel:
    """A model that is ready to read, from files or its caller's."""

    checkpoint: Checkpoint  # its files; of a caller's what stands for them
    pipeline: Pipeline  # what sentence-transformers makes of its last layer
    model: PreTrainedModel  # the encoder half of an encoder-decoder
    tokenizer: PreTrainedTokenizerBase
    has_pooler: bool = True  # with weights of its own
    untrained: bool = False
    dequantized: str = ""  # the types that a GGUF file stores its weights in, that of most values first
    warnings: tuple[str, ...] = ()  # of what isn't used
    title: str = ""  # the label that its caller gave it
    identity: Identity | None = None  # of the caller's, who may change it

    @property
    def not_stored(self) -> str:
        """Why its vectors are kept for no other run, if they aren't."""
        return self.identity.own_code or ", ".join(self.pipeline.unknown_keys) if self.identity else ""


def load(
    checkpoint: Checkpoint,
    pipeline: Pipeline,
    options: TransformerOptions,
    *,
    trust_remote_code: bool = False,
    untrained: int | None = None,
    expect: str | None = None,
) -> LoadedModel:
    """The model, moved to its device, from the checkpoint's folder alone.

    `untrained` is None, or the seed of weights drawn anew; `expect` the type that the checkpoint must be of.
    """
    from transformers import AutoConfig

    device, dtype = resolve_device(options.device), getattr(torch, options.dtype)
    folder, source, more = checkpoint.folder, checkpoint.source, dict(options.kwargs or {})
    if untrained is not None and more:
        raise ConfigError(f"weights=untrained draws weights of {source}'s shape in memory: leave model.kwargs out")

    def failure(error: BaseException) -> str:
        hint = "; it brings its own code: trust_remote_code=true runs it" if "trust_remote_code" in str(error) else ""
        hint = "; take the folder that it was made from, with its safetensors" if checkpoint.is_gguf else hint
        reason = damaged_file(folder) or f"{error_text(error)}{hint}"
        return f"cannot load {source}{f' ({folder})' * (source != str(folder))}: {reason}"

    with (
        library_warnings() as said,
        plugin_call("model", failure=failure),
        _files(checkpoint) as (files, sizes, header),
    ):
        where = files | {"trust_remote_code": trust_remote_code, "local_files_only": True}
        config = AutoConfig.from_pretrained(**where)
        if expect is not None and config.model_type != expect:
            raise ModelError(
                f"model={expect} expects a checkpoint of type {expect!r}, but {source} is a "
                f"{config.model_type!r}; use model=huggingface model.checkpoint={source}"
            )
        if header is not None:
            config.architectures = config.architectures or language_model_classes(config.model_type)
            header.apply_keys_to(config)
        config._attn_implementation = None  # how, not what: the one that runs here, in its parts too
        config.transformers_weights = None  # no key may choose other files than those that were hashed
        network = network_class(config, source, trust_remote_code=trust_remote_code)
        tokenizer = load_tokenizer(folder, where)
        if header is not None:
            header.apply_keys_to_tokenizer(tokenizer.backend_tokenizer)

        draw = partial(_unweighted, network, config, trust_remote_code=trust_remote_code)
        if "quantization_config" in more and device.type != "cpu":
            more.setdefault("device_map", {"": device})  # weights are quantised on the device where they stay
        has_pooler, unused = True, list[Leftovers]()
        if untrained is not None:
            model = _draw_weights(checkpoint, config, draw, seed=untrained).to(dtype)
        else:
            if not more and getattr(config, "quantization_config", None) is None:
                check_room(lambda: text_encoder(draw()), sizes, source)
            with torch.random.fork_rng(devices=[]):  # weights that no file has are drawn
                choices = where | more | {"config": config, "dtype": dtype}
                model, has_pooler, leftovers = _load_weights(network, checkpoint, sizes, **choices)
                unused.append(leftovers)
        settings, types = config.to_dict(), ""
        if header is not None:
            header.apply_tensors_to(model)
            unused.append(Leftovers(header.losses, []))
            types = ",".join(name for name, _ in header.values_by_type.most_common())
        else:
            settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        loaded = LoadedModel(
            checkpoint, pipeline, model.requires_grad_(False).eval(), tokenizer, has_pooler,
            untrained is not None, types,
        )  # fmt: skip
        loaded = as_reader(loaded, options, settings, folder, unused)
    texts = tuple(f"{source}: a library that loaded it says: {text}" for text in said)
    for text in texts:
        log.warning("%s", text)
    if not more.keys() & {"device_map", "quantization_config"}:
        loaded.model.to(device)
    return replace(loaded, warnings=loaded.warnings + texts)


def _unweighted(network: Any, config: PretrainedConfig, *, trust_remote_code: bool) -> PreTrainedModel:
    """A model of the config's shape, in float32, whose weights are drawn."""
    if not hasattr(network, "from_config"):
        return network(config)
    return network.from_config(config, trust_remote_code=trust_remote_code, dtype=torch.float32)


def as_reader(
    loaded: LoadedModel,
    options: TransformerOptions,
    settings: Mapping[str, Any],
    tokenizer_folder: Path | None,
    unused: Iterable[Leftovers] = (),
) -> LoadedModel:
    """The part of a model, from files or in memory, that reads text, once it is checked; its tokenizer reads as the
    files in its folder say. What nothing reads of these, of the model's `settings`, and of what is `unused` already, is
    reported."""
    model, tokenizer, source = loaded.model, loaded.tokenizer, loaded.checkpoint.source
    of_tokenizer = apply_tokenizer_files(tokenizer, tokenizer_folder, options.lower)
    check_finite(model, source)
    check_vocabulary(tokenizer, model, source)
    of_settings = [unused_code(settings, model, tokenizer), unused_settings(settings, model.config, model)]
    warnings = report_unused([*unused, of_tokenizer, *of_settings], options.unused, source)
    model = text_encoder(model)
    has_pooler = loaded.has_pooler and "pooler" in dict(model.named_children())
    return replace(loaded, model=model, has_pooler=has_pooler, warnings=tuple(warnings))


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
        with safe_open(path, "pt") as file:
            for name in file.keys():  # noqa: SIM118  # the file is no mapping
                if name in size_by_name:  # the last shard's would count, whichever the index names
                    raise ModelError(f"{path} holds the weight {name}, as another file beside it does; keep one")
                part = file.get_slice(name)
                size_by_name[name] = str(part.get_dtype()), math.prod(part.get_shape())
    return size_by_name


def damaged_file(folder: Path) -> str:
    """A message about the first file of a checkpoint folder that can't be read as its suffix says; empty if all can."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            if path.suffix == ".json":
                json.loads(path.read_text(encoding="utf-8"))
            elif path.suffix == ".safetensors":
                weight_sizes([path])
        except Exception as error:  # safetensors has an exception of its own for each mishap
            return f"{path.name} can't be read ({error_text(error)}); copy or download it again"
    return ""


class NotFiniteWeights(ModelError, EncodingError):  # noqa: N818  # they are what it is about
    """Weights that hold NaN or infinity: a damaged file, or a training that went wrong."""


def check_finite(model: torch.nn.Module, source: str) -> None:
    """Raise `NotFiniteWeights` naming a weight of NaN or infinity: attention and clips can hide it from vectors."""
    for name, weight in model.state_dict().items():
        if type(weight) is not torch.Tensor or not weight.is_floating_point() or not weight.numel():
            continue  # of another type are quantised weights, and those that lie elsewhere until they are used
        if not all(map(math.isfinite, torch.stack(torch.aminmax(weight)).tolist())):  # 10 times quicker than isfinite
            hint = "" if weight.dtype == torch.float32 else f", or it overflows in {weight.dtype}: try dtype=float32"
            raise NotFiniteWeights(
                f"{source}: the weight {name} holds NaN or infinite values; the file is damaged or the training "
                f"went wrong{hint}"
            )


def check_vocabulary(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel, source: str) -> None:
    """Raise `ModelError` if the tokenizer's pieces are few for the model's embedding table: its files are missing."""
    n, rows = len(tokenizer) - len(set(tokenizer.all_special_ids)), table_rows(model)
    if n <= 0 or 2 * n < rows:
        raise ModelError(
            f"{source}: its tokenizer ({type(tokenizer).__name__}) knows {n:,} pieces besides its special ones, but "
            f"the model's embedding table has {rows:,} rows; the tokenizer's files (tokenizer.json, vocab.txt ...) are "
            "missing or another model's: save them there with AutoTokenizer.from_pretrained(original).save_pretrained"
        )


def _draw_weights(
    checkpoint: Checkpoint, config: PretrainedConfig, draw: Callable[[], PreTrainedModel], *, seed: int
) -> PreTrainedModel:
    """A model of the checkpoint's shape with weights drawn from the seed, in the file's dtype."""
    if checkpoint.initializer_range is not None:
        config.initializer_range = checkpoint.initializer_range
    file_dtype = getattr(config, "dtype", None) or torch.float32  # read before the draw, which sets it
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        # Half precision is drawn in float32 and rounded: what torch draws in it differs between versions.
        return draw().to(file_dtype)


def load_tokenizer(folder: Path, where: dict[str, object]) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder, which `where` names to transformers."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    try:
        return AutoTokenizer.from_pretrained(**where)  # its class knows the special pieces that no file names
    except Exception as error:  # a class that can't be built anew of what tokenizer.json holds
        if not (folder / "tokenizer.json").is_file() or "trust_remote_code" in str(error):
            raise
        return PreTrainedTokenizerFast.from_pretrained(**where)


@contextmanager
def _files(checkpoint: Checkpoint) -> Iterator[tuple[dict[str, object], WeightSizes, GgufHeader | None]]:
    """While they are read: the arguments that name the files to transformers, the weights' sizes, a GGUF's header."""
    argument = "pretrained_model_name_or_path"
    if not checkpoint.is_gguf:
        yield {argument: checkpoint.folder}, weight_sizes(weight_files(checkpoint.folder)), None
        return
    with isolated_file(checkpoint.folder) as (folder, reader, keys):
        header = GgufHeader(keys, reader)
        size = {"all": ("F32", header.values_by_type.total())}
        yield {argument: folder, "gguf_file": checkpoint.folder.name}, size, header


def text_encoder(model: PreTrainedModel) -> PreTrainedModel:
    """The model without its heads; of an encoder-decoder, the encoder."""
    while model.base_model is not model:
        model = model.base_model
    return model.get_encoder() if model.config.is_encoder_decoder else model


def network_class(config: PretrainedConfig, source: str, *, trust_remote_code: bool = False) -> Any:
    """AutoModel; for own code without an AutoModel the auto class that it is given for (AutoModelForCausalLM); or the
    class of an encoder alone that the config names (T5EncoderModel, DPRContextEncoder): its weights are others than
    those of AutoModel's choice. Raises ModelError for a kind of model that reads no text."""
    import transformers
    from transformers import MODEL_MAPPING

    own = [key for key in getattr(config, "auto_map", None) or () if key.startswith("AutoModel")]
    if own and trust_remote_code:
        return getattr(transformers, "AutoModel" if "AutoModel" in own else own[0])
    networks = MODEL_MAPPING.get(type(config), ())
    if not networks and type(config).__module__.startswith("transformers."):
        raise ModelError(f"{source}: transformers has no model of hidden states of its type {config.model_type}")
    for network in networks if isinstance(networks, tuple) else (networks,):
        if network.main_input_name != "input_ids":
            raise ModelError(
                f"{source} is {model_kind(network)} ({network.__name__} reads {network.main_input_name}); expected a "
                "model that reads text"
            )
    (name, *_) = config.architectures or ("",)
    is_encoder = name.endswith(("EncoderModel", "Encoder")) and hasattr(transformers, name)
    return getattr(transformers, name) if is_encoder else transformers.AutoModel


# before the names of all weights, by who wrapped the model: torch.compile, DDP, FSDP, DeepSpeed, sentence-transformers
WRAPPERS = re.compile(r"^((_orig_mod|module|_fsdp_wrapped_module|_forward_module|0\.auto_model|auto_model)\.)+")


def _load_weights(
    network: Any, checkpoint: Checkpoint, sizes: WeightSizes, **choices: object
) -> tuple[PreTrainedModel, bool, Leftovers]:
    """The model with the checkpoint's weights, all of them its own, whether its pooler has any, and what isn't used."""
    if "gguf_file" in choices:
        from transformers import GgufConfig

        choices["quantization_config"] = GgufConfig(dequantize=True)
    source = checkpoint.source
    # no argument may choose other files than those that were hashed
    how = {"use_safetensors": True, "output_loading_info": True, "ignore_mismatched_sizes": True, "subfolder": ""}
    how |= {"variant": None, "state_dict": None}
    prefixes = {name.removesuffix(WRAPPERS.sub("", name)) for name in sizes}
    prefix = prefixes.pop() if len(prefixes) == 1 else ""
    if prefix:
        how["key_mapping"] = {f"^{re.escape(prefix)}": ""}
    has_adapter = (checkpoint.folder / "adapter_config.json").is_file() and find_spec("peft") is not None
    with (
        _without_adapter(checkpoint.folder)
        if has_adapter
        else nullcontext(choices["pretrained_model_name_or_path"]) as base
    ):
        model, info = network.from_pretrained(**how, **choices | {"pretrained_model_name_or_path": base})
    for name, shape, expected_shape in sorted(info["mismatched_keys"]):
        raise ModelError(
            f"{source}: the weight {name} has shape {short(tuple(shape))} in its file, its config.json asks for "
            f"{tuple(expected_shape)}; do the two files match?"
        )
    weights, own = dict(model.named_parameters()), set(map(id, text_encoder(model).parameters()))
    pooler = [key for key in info["missing_keys"] if "pooler" in key]
    made = {  # tables of which a class of the family says that it makes them anew (Marian's positions)
        key.removeprefix(f"{model.base_model_prefix}.")
        for cls in vars(sys.modules[type(model).__module__]).values()
        for key in getattr(cls, "_keys_to_ignore_on_save", None) or ()
    }
    absent = set(info["missing_keys"]) - {*pooler} - made
    missing = sorted(key for key in absent if key not in weights or id(weights[key]) in own)
    if missing:
        raise ModelError(
            f"{source} lacks {len(missing)} weights of {type(model).__name__} "
            f"({', '.join(missing[:3])} ...), which would be random; it is incomplete or of another type"
        )
    if has_adapter:
        check_adapter(model.load_adapter(str(checkpoint.folder), dtype=choices["dtype"]), source)
    files = [] if checkpoint.is_gguf else weight_files(checkpoint.folder)
    names = [name.removeprefix(prefix) for name in sizes]
    return model, not pooler, unused_weights(model, info["unexpected_keys"], names, files)


@contextmanager
def _without_adapter(folder: Path) -> Iterator[str]:
    """The folder's files but for its adapter, which transformers would load with the model and report on alone."""
    with TemporaryDirectory(prefix="ctxexp-model-") as base:
        for path in folder.iterdir():
            if not path.name.startswith("adapter_"):
                (Path(base) / path.name).symlink_to(path.resolve())
        yield base


LIBRARIES = ("sentence_transformers", "transformers", "peft", "accelerate", "safetensors", "tokenizers", "gguf")
CHECKED = re.compile(
    r"LOAD REPORT|newly initialized|were not used when"  # `unused_weights` accounts for each weight
    r"|is deprecated|generation|Unauthenticated"  # names of arguments; what writes text; the hub's limits
    r"|fast path|kernel|flash|sdpa|gradient checkpointing",  # how it is computed, not what
    re.IGNORECASE,
)
NOT_OF_MODELS = (DeprecationWarning, FutureWarning, PendingDeprecationWarning, ResourceWarning)


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.texts[line(record.getMessage())] = None


@contextmanager
def library_warnings() -> Iterator[list[str]]:
    """Without progress bars and reports of libraries; at the end the list holds their warnings, each once."""
    from transformers.utils import logging as bars

    collector, said = _Collector(), list[str]()
    loggers = [logging.getLogger(name) for name in LIBRARIES]
    states = [(one.handlers, one.level, one.propagate) for one in loggers]
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    if clear := getattr(getattr(logging.Logger, "warning_once", None), "cache_clear", None):
        clear()  # what was said of an earlier model is said of this one
    for one in loggers:
        one.handlers, one.propagate = [collector], False
        one.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("always")
            yield said
    finally:
        for one, (handlers, level, propagate) in zip(loggers, states, strict=True):
            one.handlers, one.propagate = handlers, propagate
            one.setLevel(level)
        if shown:
            bars.enable_progress_bar()
    for record in records:
        if not issubclass(record.category, NOT_OF_MODELS):
            collector.texts[line(str(record.message))] = None
    said += [text for text in collector.texts if not CHECKED.search(text)]
