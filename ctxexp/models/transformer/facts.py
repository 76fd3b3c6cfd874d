"""Facts about a model that are found by trying: its layers, whether it is causal, how many pieces it reads at once."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn

from ctxexp.errors import ModelError, error_text, plugin_call
from ctxexp.models.transformer.kept_layers import LayerHooks, LayerSource, watch
from ctxexp.models.transformer.reading import probe_pieces, reading

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from transformers.utils import ModelOutput

Call = tuple[nn.Module, bool, torch.Tensor]  # a module, whether the tensor is its input, the tensor
KINDS = {"image": "vision", "video": "video", "audio": "audio", "time": "time-series", "text": "text"}
INPUTS = {"pixel_values": "image", "pixel_values_videos": "video", "past_values": "time"} | dict.fromkeys(
    ("input_values", "input_features", "audio_mel"), "audio"
)
LIMITS = re.compile(  # config's keys of how many pieces an encoder or decoder takes
    r"max_(encoder_|source_)?position(s|_embeddings)|n_positions|n_ctx|max_seq(uence)?_len(gth)?|(max_)?context_len(gth)?"
)


class ModelFacts(NamedTuple):
    """What was found. `norm` is the final norm's name, None without one; `sources` the modules that take in or give out
    the layers, None where transformers' hidden states are these."""

    n_layers: int
    dim: int
    causal: bool
    norm: str | None
    sources: Mapping[int, LayerSource] | None


def model_kind(network: type[PreTrainedModel]) -> str:
    """`a vision model`, `a model of image and text`, ...: what transformers says that the network reads."""
    kinds = getattr(network, "input_modalities", None) or "text"
    main = str(getattr(network, "main_input_name", "input_ids"))
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    if main in INPUTS and "text" in kinds:
        kinds = [INPUTS[main]] if len(kinds) == 1 else [*dict.fromkeys((INPUTS[main], *kinds))]
    name = KINDS.get(kinds[0], kinds[0])
    return f"a{'n' * (name == 'audio')} {name} model" if len(kinds) == 1 else f"a model of {' and '.join(kinds)}"


def model_facts(model: PreTrainedModel, source: str) -> ModelFacts:
    """The facts by two passes over eight pieces: alone, and in a batch beside copies with another first and another
    last piece. A final norm is the norm whose output is the last layer and which isn't part of a block.

    Raises ModelError for a model whose layers can't be told, whose vectors depend on chance or on other sentences of
    their batch, and one in which no piece sees another.
    """
    named, calls = f"{source} ({type(model).__name__}, {model_kind(type(model))})", list[Call]()
    within = tuple(n + "." for n, m in model.named_modules() if isinstance(m, nn.ModuleList))
    norms = {m: n for n, m in model.named_modules() if "norm" in type(m).__name__.lower() and not n.startswith(within)}
    stacks = [list(m) for m in model.modules() if isinstance(m, nn.ModuleList) and len(m)]

    def failure(error: BaseException) -> str:
        return f"{named} can't be read: {error_text(error)}"

    with torch.inference_mode(), plugin_call("model", failure=failure, within=lambda e: f"{named} can't be read: {e}"):
        ids = probe_pieces(model)
        with reading(model), ExitStack() as hooks:
            for module in {*norms, *(block for stack in stacks for block in stack)}:
                watch(module, lambda *call: calls.append(call), hooks)
            alone = model(input_ids=ids[:1], output_hidden_states=True)
        states, sources = _layers(alone, stacks, [call for call in calls if call[2].shape[:2] == ids[:1].shape], norms)
        shapes = sorted({tuple(layer.shape) for layer in states})
        if len(shapes) != 1 or shapes[0][:2] != ids[:1].shape:
            raise ModelError(f"its layers are of different shapes {shapes}; expected (sentences, pieces, width) of all")
        hooked = LayerHooks(model, sources, len(states)) if sources else None
        with reading(model):
            many = hooked(ids) if hooked else model(input_ids=ids, output_hidden_states=True)
        causal = _is_causal(states[-1][0], many.hidden_states[0], many.last_hidden_state)
    final = [
        norms[m] for m, is_input, x in calls if m in norms and not is_input and x.data_ptr() == states[-1].data_ptr()
    ]
    return ModelFacts(len(states), int(states[-1].shape[-1]), causal, final[-1] if final else None, sources)


def _layers(
    out: ModelOutput, stacks: Sequence[Sequence[nn.Module]], calls: Sequence[Call], norms: Container[nn.Module]
) -> tuple[list[torch.Tensor], dict[int, LayerSource] | None]:
    """The layers of a pass, and their sources where transformers' hidden states aren't what enters each block: some
    begin with the first block's output (Mamba), some end in another width (OPT's projection)."""
    states, last = list(out.get("hidden_states") or ()), out.last_hidden_state
    found = None
    for blocks in stacks:
        order = [(n, module) for n, (module, is_input, _) in enumerate(calls) if is_input and module in blocks]
        if len(states) not in (0, len(blocks) + 1) or [module for _, module in order] != blocks:
            continue  # not the list of blocks, each of which is called once
        xs = [calls[n][2] for n, _ in order]
        given = [x for module, is_input, x in calls if module in blocks and not is_input]
        if (
            states
            and states[0].shape == last.shape
            and all(
                _equal(state, x) or (i > 0 and len(given) == len(xs) and _equal(state, given[i - 1]))
                for i, (state, x) in enumerate(zip(states, xs, strict=False))
            )
        ):
            return [*states[:-1], last], None
        if found is None and len({x.shape for x in xs}) == 1:
            found = blocks, xs, order[-1][0]
    if found is None:
        return [*states[:-1], last], None
    blocks, xs, start = found
    sources = {i: LayerSource(block, True) for i, block in enumerate(blocks)}
    if last.shape != xs[0].shape:  # projected
        ends = [
            (module, x) for module, is_input, x in calls[start:]
            if not is_input and x.shape == xs[0].shape and (module is blocks[-1] or module in norms)
        ]  # fmt: skip
        if ends:
            sources[len(blocks)], last = LayerSource(ends[-1][0], False), ends[-1][1]
    return [*xs, last], sources


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a is b or (a.shape == b.shape and torch.equal(a, b.to(a.device)))


def _is_causal(alone: torch.Tensor, first: torch.Tensor, last: torch.Tensor) -> bool:
    """Whether no piece sees those behind it, by the first and the last layer (3, pieces, dim) of a batch of
    `probe_pieces`; `alone` is the last layer (pieces, dim) of its first row. What moves is compared with what another
    first piece moves behind it: mixtures of experts move all pieces a little.

    Raises ModelError for layers that depend on what they mustn't, or on nothing.
    """
    is_exact = last.dtype == torch.float32

    def moved(a: torch.Tensor, b: torch.Tensor) -> list[float]:  # of each piece
        distances: list[float] = (a.float() - b.float()).abs().mean(-1).tolist()
        return distances

    before, behind = moved(first[0], first[1]), moved(last[0], last[1])
    context = max(behind[1:])
    if max(before[1:]) > 1e-3 * before[0]:
        raise ModelError(
            "what enters its first block depends on the pieces around each piece already, so layer 0 isn't a word by "
            "itself; no measure of context is meaningful there"
        )
    if context <= 1e-6 * behind[0]:
        raise ModelError("no piece's vector depends on the pieces before it: its attention isn't computed here")
    if max(moved(alone, last[0])) > (1e-2 if is_exact else 0.25) * context:
        raise ModelError("a sentence's vectors depend on the sentences beside it, or on chance; expected equal ones")
    return max(moved(last[0], last[2])[:-1]) <= (1e-3 if is_exact else 0.06) * context


def window_size(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, source: str) -> int | None:
    """Pieces that the model takes at once, special ones included; None without a limit."""
    limits = [tokenizer.model_max_length]  # without a limit some 1e30, a float
    whole = isinstance(limits[0], int) or (isinstance(limits[0], float) and limits[0].is_integer())
    if not whole or not limits[0] > tokenizer.num_special_tokens_to_add():
        raise ModelError(
            f"{source}: its tokenizer says model_max_length={limits[0]!r}; expected a number of pieces, such as 512"
        )
    settings = model.config.get_text_config().to_dict()
    limits += [n for key, n in settings.items() if LIMITS.fullmatch(key) and type(n) is int and n > 0]
    for name, module in model.named_modules():
        rows = getattr(module, "weight", None)
        if re.search(r"(^|[._])positions?(_embeddings?)?$", name) and isinstance(rows, torch.Tensor) and rows.ndim == 2:
            # RoBERTa and its kin count positions from padding_idx + 1, OPT from an offset
            padding = getattr(module, "padding_idx", None)
            limits.append(len(rows) - (getattr(module, "offset", 0) if padding is None else padding + 1))
    limit = min(limits)
    return int(limit) if limit < 10**9 else None
