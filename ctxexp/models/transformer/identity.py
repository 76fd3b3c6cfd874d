"""The identity of a model in memory is what computes: its weights and buffers, its config, and its hidden states of a
few fixed pieces, by which another activation, scale or norm is another model. What no library has written may do
anything elsewhere, so it is named.
"""

from __future__ import annotations

import hashlib
import json
import operator
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as torch_modules

from ctxexp.errors import ModelError
from ctxexp.models.transformer.forward import attributes, evaluation, ordinary_pieces

LIBRARIES = sys.stdlib_module_names | {
    "ctxexp",
    "torch",
    "transformers",
    "sentence_transformers",
    "peft",
    "accelerate",
    "bitsandbytes",
    "torchao",
}
SAVED = ("architectures", "dtype", "transformers_version", "_name_or_path")  # of a config, written when it is saved
LENGTHS = [31, 17, 11, 5]  # pieces of the probe's rows: 64 in all
TOLERANCE, MIXED_TOLERANCE = 1e-3, 0.05  # of a layer's mean size; where a library wraps `forward` in half precision
States = list[torch.Tensor | None]  # hidden states of each row, by layer, and the last one where it is given


def state_hash(tensors: Mapping[str, Any]) -> str:
    """sha256 (16 hex digits) of every tensor; a quantised layer of torch's holds several in one, with bias and type."""
    digest = hashlib.sha256()
    for name, entry in sorted(tensors.items()):
        digest.update(name.encode())
        for value in entry if isinstance(entry, tuple) else (entry,):
            if isinstance(value, torch.Tensor):
                tensor = value.dequantize() if value.is_quantized else value.detach()
                digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
            else:
                digest.update(repr(value).encode())
    return digest.hexdigest()[:16]


def probe(model: Any, rows: Sequence[torch.Tensor]) -> States:
    """The model's hidden states of rows of pieces (1, n) each; of an encoder-decoder, those of its encoder."""
    states: States = []
    takes_two = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    with torch.inference_mode(), evaluation(model):
        for ids in rows:
            more = {"decoder_input_ids": ids} if takes_two else {}
            out = model(input_ids=ids, output_hidden_states=True, **more)
            kind = "encoder_" if out.get("encoder_last_hidden_state") is not None else ""
            layers = out.get(f"{kind}hidden_states") or ()
            states += [*layers, out.get(f"{kind}last_hidden_state")]
    return states


@torch.inference_mode()
def check_wrapper(wrapper: nn.Module, rows: Sequence[torch.Tensor], states: States) -> None:
    """Raise ModelError where the model as its caller calls it has other hidden states than what is read of it; one that
    takes no rows of pieces, or gives no hidden states, can't be compared."""
    try:
        given = probe(wrapper, rows)
    except Exception:  # it is the caller's: it may take anything
        return
    tolerance = MIXED_TOLERANCE if "forward" in vars(wrapper) else TOLERANCE
    for read, one in zip(states, given, strict=False):
        if read is None or one is None:
            continue
        one = one.to(read)
        if one.shape != read.shape or not ((one - read).abs().mean() <= tolerance * read.abs().mean()):
            raise ModelError(
                f"the hidden states of {type(wrapper).__name__} aren't those of the network inside it, which "
                "alone would be read: what stands around it (an adapter that is switched on by the text, a changed "
                "forward, a hook) changes them; give what computes the same by itself, such as "
                "model.merge_and_unload(), or the network that you mean"
            )


def own_code(model: nn.Module) -> str:
    """The first part of the model, if any, that no library has written: a class, a hook, a function in a library's
    place."""
    if torch_modules._has_any_global_hook():  # type: ignore[no-untyped-call]
        return "a hook of all modules"
    owners = [(name or type(module).__name__, vars(module)) for name, module in model.named_modules()]
    kinds = dict.fromkeys(kind for module in model.modules() for kind in type(module).__mro__)
    for owner, own in [*owners, *((kind.__name__, {"(class)": kind, **vars(kind)}) for kind in kinds)]:
        for key, value in own.items():
            parts = value.values() if key in ("_forward_hooks", "_forward_pre_hooks") else [value]
            if any(callable(part) and not is_of_library(part) for part in parts):
                return f"{owner}.{key}"
    return ""


def is_of_library(code: Any) -> bool:
    """Whether a class, function or callable object is of Python, torch or another library of models, and so is whatever
    it wraps: a decorator keeps the name of what it decorates, so the namespace counts in which the code was written."""
    code = code.func if isinstance(code, partial) else getattr(code, "__func__", code)
    names = getattr(code, "__globals__", None) or {"__name__": getattr(code, "__module__", "") or type(code).__module__}
    inner = getattr(code, "__wrapped__", None)
    return str(names.get("__name__")).partition(".")[0] in LIBRARIES and (inner is None or is_of_library(inner))


class Identity:
    """What a model in memory computes, as a digest (16 hex digits), and whether that has changed since.

    Args:
        model: The network that is read.
        window: Pieces that it takes at once; None: any number.
        wrappers: The models around it, as its caller calls them.

    Raises:
        ModelError: A wrapper computes something else.
    """

    def __init__(self, model: Any, window: int | None, wrappers: Sequence[nn.Module]) -> None:
        self.model, self.own_code = model, own_code(model)
        rows = torch.split(ordinary_pieces(model, sum(LENGTHS)), LENGTHS)
        self.rows = [row[None, :window] for row in rows]
        self._seen: tuple[list[object], list[Any]] | None = self._attributes()
        self.digest, states = self._compute()
        for wrapper in wrappers:
            check_wrapper(wrapper, self.rows, states)

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process is nobody's to change."""
        return vars(self) | {"_seen": None}

    def has_changed(self) -> bool:
        """Whether the model computes something else by now, which is tried only where an attribute or a weight was
        written to."""
        now = self._attributes()
        if self._seen is None or (now[1] == self._seen[1] and len(now[0]) == len(self._seen[0])
                                  and all(map(operator.is_, now[0], self._seen[0]))):  # fmt: skip
            return False
        if own_code(self.model) != self.own_code or self._compute()[0] != self.digest:
            return True
        self._seen = now
        return False

    def _attributes(self) -> tuple[list[object], list[Any]]:
        """Every attribute of the model, and of its tensors how often they were written to, as torch counts, and one
        value: torch counts neither what inference mode made nor what is written to `.data`."""
        values = [value for _, copied in attributes(self.model) for value in copied.values()]
        tensors = (*self.model.parameters(), *self.model.buffers())
        counts = [(0 if x.is_inference() else x._version, x.is_meta or x.reshape(-1)[-1:].tolist()) for x in tensors]
        return [*values, *(type(module).forward for module in self.model.modules())], counts

    def _compute(self) -> tuple[str, States]:
        with evaluation(self.model):
            config = json.loads(self.model.config.to_json_string())
        config = {key: value for key, value in config.items() if key not in SAVED}
        states = probe(self.model, self.rows)
        parts = [state_hash(self.model.state_dict()), state_hash(dict(self.model.named_buffers())), config,
                 self.model.config._attn_implementation,
                 state_hash({f"{i:04d}": state for i, state in enumerate(states)})]  # fmt: skip
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16], states
