"""Hidden states of some layers by hooks, of models that keep all of them whatever list they are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from ctxexp.models.transformer.reading import probe_pieces, reading

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.utils import ModelOutput

Watch = Callable[[nn.Module, bool, torch.Tensor], None]  # a module, whether the tensor is its input, the tensor


class LayerSource(NamedTuple):
    """A module that is called once a pass and takes in, or gives out, a hidden state."""

    module: nn.Module
    is_input: bool


class LayerHooks:
    """Calls a model and keeps the hidden states of some layers, by their sources, and the last."""

    def __init__(self, model: PreTrainedModel, sources: Mapping[int, LayerSource], n_layers: int) -> None:
        self.model, self.sources, self.n_layers = model, sources, n_layers

    def __call__(self, ids: torch.Tensor) -> ModelOutput:
        """The model's output for `ids` (sentences, length), with None in place of the hidden states not kept."""
        states: list[torch.Tensor | None] = [None] * self.n_layers
        with ExitStack() as hooks:
            for layer, source in self.sources.items():

                def keep(module: nn.Module, is_input: bool, x: torch.Tensor, layer: int = layer) -> None:
                    if is_input == self.sources[layer].is_input:
                        states[layer] = x

                watch(source.module, keep, hooks)
            out = self.model(input_ids=ids, output_hidden_states=False)
        last = states[-1] = out.last_hidden_state if states[-1] is None else states[-1]
        return replace(out, hidden_states=tuple(states), last_hidden_state=last)


def layer_hooks(model: PreTrainedModel, layers: Sequence[int]) -> LayerHooks | None:
    """Hooks that keep these layers; None for a model that takes a list of them itself, and for one whose layers they
    wouldn't give, such as one that calls a block several times. Found by trying, on eight pieces."""
    ids = probe_pieces(model)[:1]
    with torch.inference_mode(), reading(model):
        states = model(input_ids=ids, output_hidden_states=list(layers)).hidden_states
        if any(x is None for x in states):
            return None
        n_layers = len(states)
        seen: list[tuple[nn.Module, bool, torch.Tensor]] = []
        with ExitStack() as hooks:
            for module in model.modules():
                watch(module, lambda *call: seen.append(call), hooks)
            states = model(input_ids=ids, output_hidden_states=True).hidden_states
        calls = Counter((module, is_input) for module, is_input, _ in seen)
        wanted = [layer for layer in layers if layer < n_layers - 1]
        sources = {
            layer: LayerSource(module, is_input)
            for layer in wanted
            for module, is_input, x in seen
            if x is states[layer] and calls[module, is_input] == 1
        }
        hooked = LayerHooks(model, sources, n_layers)
        own = hooked(ids).hidden_states if len(sources) == len(wanted) else ()
        if not own or any(not torch.equal(own[layer], states[layer]) for layer in wanted):
            return None
    return hooked


def watch(module: nn.Module, seen: Watch, hooks: ExitStack) -> None:
    """Let `seen` see the module's first input and first output, each time, until `hooks` close."""

    def before(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        x = args[0] if args else kwargs.get("hidden_states")
        if isinstance(x, torch.Tensor):
            seen(module, True, x)

    def behind(module: nn.Module, args: tuple[Any, ...], out: Any) -> None:
        x = out[0] if isinstance(out, tuple) else out
        if isinstance(x, torch.Tensor):
            seen(module, False, x)

    hooks.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
    hooks.callback(module.register_forward_hook(behind).remove)
