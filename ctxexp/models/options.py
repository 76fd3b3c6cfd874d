"""Options of models, checked once for all kinds: weights, layers, device, dtype, and what every transformer takes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from importlib.metadata import version
from inspect import Parameter, Signature, cleandoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

from ctxexp.errors import ConfigError, ModelError, UnknownName
from ctxexp.files import user_path
from ctxexp.model import Encoder
from ctxexp.models.transformer.checkpoint import local_path
from ctxexp.plugins.arguments import convert_value

if TYPE_CHECKING:
    import torch

Weights = Literal["mini", "published", "untrained"]
Pooling = Literal["mean", "first", "last", "pieces"]
LongTexts = Literal["window", "refuse"]
ElmoState = Literal["reset", "carry"]
Dtype = Literal["float32", "bfloat16", "float16"]
Point = Literal["residual", "attention", "mlp"]
Unused = Literal["refuse", "warn"]
AS_TOKENIZER = "as_tokenizer"  # the default of `model.prefix`
DEVICES = ("auto", "cpu", "cuda", "mps")
DEV = Path("/dev")
NODES = ("nvidia*", "nvhost*", "nvgpu*", "dxg", "kfd")  # NVIDIA, its Jetsons, WSL, AMD


@dataclass(frozen=True, kw_only=True)
class TransformerOptions:
    """Options of every transformer: how it reads text, which vectors it gives, and on which device it computes.

    pooling: mean, first or last of a word's pieces; pieces: none, each piece is a unit of its own.
    prefix: what stands before each text, never measured: as_tokenizer (what the tokenizer adds by itself), none, bos
      (the tokenizer's start token), or a text.
    lower: whether text is read in lower case (the words keep their capitals); null: as the checkpoint's files say.
    layers: the numbers of the layers to encode and measure, as in [0,6,12], -1 being the last; null: all.
    point: where in each block: residual (the stream behind it), or what its attention or its mlp adds to that stream.
    final_norm: whether the last layer is taken after the model's final norm, as transformers' last hidden state is.
    long: window (windows that overlap by half, each piece from where it has most context) or refuse.
    device: auto, cpu, cuda or mps.
    dtype: float32, bfloat16 or float16, for computing; half types are stored as float16.
    kwargs: further arguments of transformers' from_pretrained, as in {device_map: auto}, {quantization_config: {...}}.
    unused: refuse, or warn and go on, where a checkpoint holds what the network doesn't use and could change vectors.

    Example:
        >>> TransformerOptions(pooling="first").pooling
        'first'
    """

    pooling: Pooling = "mean"
    prefix: str = AS_TOKENIZER
    lower: bool | None = None
    layers: Sequence[int] | None = None
    point: Point = "residual"
    final_norm: bool = True
    long: LongTexts = "window"
    device: str = "auto"
    dtype: Dtype = "float32"
    kwargs: Mapping[str, Any] | None = None
    unused: Unused = "warn"
    window: int | None = None  # pieces that are read at once, at most the model's own; set by factories, not by users

    def __post_init__(self) -> None:
        """Raise `ConfigError` for options that no model allows."""
        for name, expected in get_type_hints(TransformerOptions, include_extras=True).items():
            value = getattr(self, name)
            convert_value(f"model.{name}", list(value) if isinstance(value, range) else value, expected)
        if not self.prefix:
            raise ConfigError("model.prefix is empty: expected as_tokenizer, none, bos, or a text")
        check_layers(self.layers)


def with_transformer_options(factory: Callable[..., Encoder]) -> Callable[..., Encoder]:
    """Decorate a factory: `TransformerOptions`' fields become keyword arguments in place of `options`.

    The field descriptions are added to the factory's docstring, which the command line shows.

    Example:
        >>> def mine(*, options: TransformerOptions) -> Encoder: ...
        >>> "pooling" in signature(with_transformer_options(mine)).parameters
        True
    """
    shared = [one for one in fields(TransformerOptions) if one.name != "window"]
    hints = get_type_hints(TransformerOptions, include_extras=True) | get_type_hints(factory, include_extras=True)
    own = [p.replace(annotation=hints[p.name]) for p in signature(factory).parameters.values() if p.name != "options"]

    @wraps(factory)
    def build(**arguments: Any) -> Encoder:
        options = TransformerOptions(**{one.name: arguments.pop(one.name) for one in shared if one.name in arguments})
        return factory(options=options, **arguments)

    added = [Parameter(f.name, Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name]) for f in shared]
    every = own + added
    documentation = cleandoc(TransformerOptions.__doc__ or "").partition("\n\n")[2]
    vars(build).update(__signature__=Signature(every, return_annotation=Encoder))
    build.__annotations__ = {p.name: p.annotation for p in every} | {"return": Encoder}
    own_documentation = cleandoc(factory.__doc__ or "")
    gap = "\n" if "\n\n" in own_documentation else "\n\n"  # the options are a paragraph of their own, or end one
    build.__doc__ = f"{own_documentation}{gap}{documentation}"
    return build


def check_arguments(given: Mapping[str, Any]) -> None:
    """Raise ConfigError or ModelError for arguments that no built-in model accepts, before anything is loaded."""
    shared = {one.name for one in fields(TransformerOptions)}
    TransformerOptions(**{name: value for name, value in given.items() if name in shared})
    taken = signature(check_choices).parameters
    check_choices(**{name: value for name, value in given.items() if name in taken})


def check_layers(layers: Sequence[int] | None) -> None:
    """Raise `ConfigError` for a selection that no model allows: an empty one, or a layer twice."""
    if layers is not None and len(set(layers)) < max(len(layers), 1):
        raise ConfigError(
            f"model.layers={list(layers)}: expected different layers, counted from 0, the input layer, as in [0,6,12] "
            "(-1: the last one); null is all of them"
        )


def layer_selection(
    layers: Sequence[int] | None, n_layers: int, source: str, point: Point = "residual"
) -> tuple[int, ...] | None:
    """The requested layers, ascending; None for all, which inside a block begin with 1. Raises `ConfigError` for one
    that the model doesn't have."""
    known = range(0 if point == "residual" else 1, n_layers)
    last = dict.fromkeys(range(-n_layers, 0), n_layers)  # -1: the last
    layers = known if layers is None else [i + last.get(i, 0) for i in layers]
    check_layers(layers)
    if beyond := [i for i in layers if i not in known]:
        where = f"{source} has layers {known[0]} to {known[-1]}" + f" of model.point={point}" * known[0]
        raise ConfigError(f"model.layers={list(layers)}: no layer {beyond[0]}: {where}")
    return None if len(layers) == n_layers else tuple(sorted(layers))


def check_choices(
    *,
    weights: str = "mini",
    checkpoint: str | None = None,
    revision: str | None = None,
    options_file: str | None = None,
    weight_file: str | None = None,
    path: str | None = None,
) -> None:
    """Raise ConfigError for choices of weights and files that don't go together, ModelError for a folder that
    holds no checkpoint and a file that isn't there."""
    if checkpoint is not None:
        local_path(checkpoint, revision)
    elif revision is not None and weights != "published":
        raise ConfigError(
            f"revision={revision} names a commit of the hub, but weights={weights} ships with ctxexp; "
            "use weights=published, or leave revision out"
        )
    if weight_file is not None and (options_file is None or weights == "untrained"):
        raise ConfigError(
            f"weight_file={weight_file} needs its options_file, and weights other than untrained; "
            f"got options_file={options_file} weights={weights}"
        )
    if options_file is not None and weight_file is None and weights != "untrained":
        raise ConfigError(f"options_file={options_file} needs its weight_file (or weights=untrained)")
    for key, location in (("options_file", options_file), ("weight_file", weight_file)):
        if location is None or location.startswith(("http://", "https://")) or user_path(location).is_file():
            continue
        raise ModelError(
            f"{key}={location}: no file at {user_path(location).absolute()}; expected a path or an http(s) URL"
        )
    if path is not None and not user_path(path).is_file():
        raise ModelError(f"no file of word vectors at {path} (model.path); expected GloVe or word2vec text, or .vec")


def resolve_device(device: str = "auto") -> torch.device:
    """The torch device of that name; `auto` is the first of cuda, mps and cpu that this machine has.

    `cuda:1` picks one of several. A device that is asked for by name and isn't there is a `ConfigError`, never cpu.

    Example:
        >>> str(resolve_device("cpu"))
        'cpu'
    """
    import torch

    kind, colon, index = device.partition(":")
    if kind not in DEVICES or (colon and (kind != "cuda" or not index.isdecimal())):
        raise UnknownName("device", device, DEVICES)
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if kind == "auto":
        kind = next(name for name in ("cuda", "mps", "cpu") if there[name])
    elif not there[kind]:
        raise ConfigError(
            f"device={device}: torch {torch.__version__} sees no {kind} device on this machine; "
            "use device=auto or device=cpu"
        )
    elif colon and int(index) >= torch.cuda.device_count():
        raise ConfigError(f"device={device}: this machine has {torch.cuda.device_count()} CUDA devices, counted from 0")
    return torch.device(f"{kind}:{index}" if colon else kind)


def check_device(device: str) -> None:
    """Raise ConfigError for a device that this machine can't have, without loading torch; what it says of the others,
    `resolve_device` finds out."""
    kind = device.partition(":")[0]
    why = ""
    if kind == "cuda":
        why = _no_cuda()
    elif kind == "mps" and sys.platform != "darwin":
        why = "it is no Mac"
    if why:
        raise ConfigError(f"device={device}: this machine has none ({why}); use device=auto or device=cpu")


def is_cpu(device: str) -> bool:
    """Whether that device is surely the processor, so far as can be said without loading torch."""
    return device == "cpu" or (device == "auto" and sys.platform != "darwin" and bool(_no_cuda()))


def _no_cuda() -> str:
    """Why torch can't find a CUDA device here; empty if it may."""
    if version("torch").endswith("+cpu"):
        return f"torch {version('torch')} is built without CUDA"
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides them all"
    if sys.platform == "linux" and not any(any(DEV.glob(name)) for name in NODES):
        return "there is no /dev/nvidia0 or its like"
    return ""
