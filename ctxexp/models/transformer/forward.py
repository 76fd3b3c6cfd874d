"""A model's forward pass, and the facts that are found by trying it: its layers, whether it is causal, how many pieces
it reads at once. GPT-2's activation takes one pass over memory, not eight.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from ctxexp.errors import ModelError, error_text, plugin_call

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from transformers.utils import ModelOutput

READING = {"training": False, "_compiled_call_impl": None, "use_cache": False, "return_dict": True}
Source = tuple[nn.Module, bool]  # where a layer is caught: what enters a module (True), or what comes out of it
Call = tuple[nn.Module, bool, torch.Tensor]  # a source and its tensor
KINDS = {"image": "vision", "time": "time-series"}  # what a network reads: the kind of model
INPUTS = {"pixel_values": "image", "input_values": "audio", "input_features": "audio", "past_values": "time"}
LIMITS = re.compile(  # config's keys of how many pieces an encoder or decoder takes
    r"max_(encoder_|source_)?position(s|_embeddings)|n_positions|n_ctx|max_seq(uence)?_len(gth)?|(max_)?context_len(gth)?"
)


class ModelFacts(NamedTuple):
    """`norm` is the final norm's name, None without one; `sources` of the layers but the last, none where they aren't
    known; `is_hooked`: transformers' hidden states aren't the layers, what the sources give is."""

    n_layers: int
    dim: int
    causal: bool
    norm: str | None
    is_static: bool  # no piece's layer 0 depends on the pieces around it
    sources: Mapping[int, Source]
    is_hooked: bool


def hooked_pass(
    model: PreTrainedModel, sources: Mapping[int, Source], n_layers: int, input_ids: torch.Tensor, **more: object
) -> ModelOutput:
    """The model's output for `input_ids` (sentences, length), with the hidden states of these sources and the last, and
    None in place of the others."""
    with catch_tensors(sources.values()) as calls:
        out = model(input_ids=input_ids, output_hidden_states=False, **more)
    tensors = {(module, is_input): x for module, is_input, x in calls}
    states = {layer: tensors[source] for layer, source in sources.items()}
    last = states.setdefault(n_layers - 1, out.last_hidden_state)
    return replace(out, hidden_states=tuple(map(states.get, range(n_layers))), last_hidden_state=last)


@contextmanager
def catch_tensors(sources: Iterable[Source]) -> Iterator[list[Call]]:
    """The first tensor that enters or leaves these modules, at each of their calls, in order."""
    calls: list[Call] = []

    def before(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        x = args[0] if args else kwargs.get("hidden_states")
        if isinstance(x, torch.Tensor):
            calls.append((module, True, x))

    def behind(module: nn.Module, args: tuple[Any, ...], out: Any) -> None:
        x = out[0] if isinstance(out, tuple) else out
        if isinstance(x, torch.Tensor):
            calls.append((module, False, x))

    with ExitStack() as hooks:
        for module, is_input in sources:
            if is_input:
                hooks.callback(module.register_forward_pre_hook(before, with_kwargs=True).remove)
            else:
                hooks.callback(module.register_forward_hook(behind).remove)
        yield calls


def attributes(model: nn.Module) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The attributes of each of the model's modules and configs, and what lies in those that are dicts (hooks, buffers,
    submodules): each dict itself, with a copy of it."""
    owners = [vars(module) for module in model.modules()]
    configs = {id(own.get("config")): own.get("config") for own in owners}
    owners += [vars(config) for config in configs.values() if hasattr(config, "__dict__")]
    return [(own, dict(own)) for one in owners for own in (one, *(x for x in one.values() if isinstance(x, dict)))]


@contextmanager
def evaluation(model: nn.Module) -> Iterator[None]:
    """Sets the model to evaluation without a cache, uncompiled and in its own type, and takes away whatever reading
    adds: transformers leaves hooks behind that can't be pickled, BigBird its sparse attention for good at the first
    short text."""
    before = attributes(model)
    kinds = {"cpu", *(weight.device.type for weight in model.parameters())} - {"meta"}
    try:
        for own, _ in before:
            own.update({key: READING[key] for key in READING if key in own})
        with ExitStack() as exact:
            for kind in kinds:
                exact.enter_context(torch.autocast(kind, enabled=False))
            yield
    finally:
        for own, copied in before:
            own.update(copied)
            if len(own) > len(copied):
                own.clear()
                own.update(copied)


def model_call(model: nn.Module, source: str) -> AbstractContextManager[None]:
    """The guard of a model's own code: whatever it raises says of which model."""

    def failure(error: BaseException) -> str:
        reason = str(error) if isinstance(error, ModelError) else error_text(error)
        return f"{source} ({type(model).__name__}, {model_kind(type(model))}) can't be read: {reason}"

    return plugin_call("model", failure=failure, within=failure)


def ordinary_pieces(model: PreTrainedModel, n: int) -> torch.Tensor:
    """So many pieces (n,), none special where that can be had. Raises ModelError for a model without a table of
    pieces."""
    config = model.config.get_text_config()
    rows = table_rows(model) or getattr(config, "vocab_size", 0)
    if rows < 2:
        raise ModelError("it has no table of pieces (get_input_embeddings, vocab_size); expected a model that has one")
    special = {number for key, number in config.to_dict().items() if "token_i" in key and isinstance(number, int)}
    numbers = [i for i in range(3, min(rows, 200)) if i not in special] or [*range(rows)]
    return torch.tensor([numbers[i % len(numbers)] for i in range(n)], device=model.device)


def probe_pieces(model: PreTrainedModel) -> torch.Tensor:
    """Pieces (3, 7) to try a model with: a row, the row with another first piece, and with another last piece; no
    network pads to seven."""
    ids = ordinary_pieces(model, 8)
    row, other = ids[:-1], ids[-1:]
    return torch.stack([row, torch.cat([other, row[1:]]), torch.cat([row[:-1], other])])


def model_kind(network: type) -> str:
    """`a vision model`, `a model of image and text`, ...: what transformers says that the network reads."""
    kinds = getattr(network, "input_modalities", None) or "text"
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    main = getattr(network, "main_input_name", "input_ids")
    if kinds == ["text"] and main != "input_ids":  # nothing is said
        kinds = [INPUTS.get(main, main)]
    name = KINDS.get(kinds[0], kinds[0])
    return f"a{'n' * (name[0] in 'aio')} {name} model" if len(kinds) == 1 else f"a model of {' and '.join(kinds)}"


def model_facts(model: PreTrainedModel) -> ModelFacts:
    """The facts by two passes over seven pieces: alone, and in a batch beside copies with another first and another
    last piece. A final norm is the norm whose output is the last layer and which isn't part of a block.

    Raises ModelError for a model whose layers can't be told, whose vectors depend on chance or on other sentences of
    their batch, and one in which no piece sees another.
    """
    within = tuple(n + "." for n, m in model.named_modules() if isinstance(m, nn.ModuleList))
    norms = {m: n for n, m in model.named_modules() if "norm" in type(m).__name__.lower() and not n.startswith(within)}
    stacks = [list(m) for m in model.modules() if isinstance(m, nn.ModuleList) and len(m)]
    modules = {*norms, *(block for stack in stacks for block in stack)}
    ids = probe_pieces(model)
    with torch.inference_mode():
        with evaluation(model), catch_tensors([(m, is_input) for m in modules for is_input in (True, False)]) as calls:
            alone = model(input_ids=ids[:1], output_hidden_states=True)
        states, sources, is_hooked = _layers(alone, stacks, calls, norms)
        shapes = sorted({tuple(layer.shape) for layer in states})
        if len(shapes) != 1 or len(shapes[0]) != 3 or shapes[0][:2] != ids[:1].shape:
            raise ModelError(f"its layers have the shapes {shapes}; expected one shape (sentences, pieces, width)")
        read = (
            partial(hooked_pass, model, sources, len(states))
            if is_hooked
            else partial(model, output_hidden_states=True)
        )
        with evaluation(model):
            many = read(input_ids=ids)
        before = _distances(*many.hidden_states[0][:2])
        is_static = max(before[1:]) <= 1e-3 * before[0]
        by_batch = any(".quantized.dynamic." in type(module).__module__ for module in model.modules())
        causal = _is_causal(states[-1][0], many.last_hidden_state, by_batch=by_batch)
    end = states[-1].data_ptr()
    final = [norms[m] for m, is_input, x in calls if m in norms and not is_input and x.data_ptr() == end]
    norm, dim = final[-1] if final else None, states[-1].shape[-1]
    return ModelFacts(len(states), dim, causal, norm, is_static, sources, is_hooked)


def _layers(
    out: ModelOutput, stacks: Sequence[Sequence[nn.Module]], calls: Sequence[Call], norms: Container[nn.Module]
) -> tuple[list[torch.Tensor], dict[int, Source], bool]:
    """The layers of a pass, their sources, and whether transformers' hidden states aren't these: some begin with the
    first block's output (Mamba), some end in another width (OPT's projection)."""
    states, last = list(out.get("hidden_states") or ()), out.last_hidden_state
    best: tuple[Sequence[nn.Module], list[torch.Tensor], bool] | None = None
    for blocks in stacks:  # the list of blocks, each of which is called once
        entering = [(module, x) for module, is_input, x in calls if is_input and module in blocks]
        xs = [x for _, x in entering]
        is_stack = [module for module, _ in entering] == blocks and len({x.shape for x in xs}) == 1
        if is_stack and len(states) in (0, len(blocks) + 1) and xs[0].shape[:2] == last.shape[:2]:
            is_same = bool(states) and all(map(_equal, states, xs))
            if best is None or (is_same and not best[2]):
                best = blocks, xs, is_same
    if best is None:
        return [*states[:-1], last], {}, False
    blocks, xs, is_same = best
    sources = {i: (block, True) for i, block in enumerate(blocks)}
    is_projected = last.shape[-1] < xs[0].shape[-1]
    if is_projected:
        ends = [(m, x) for m, is_input, x in calls if not is_input and (m in norms or m is blocks[-1])]
        module, last = [(m, x) for m, x in ends if x.shape == xs[0].shape][-1]
        sources[len(blocks)] = (module, False)
    return [*xs, last], sources, is_projected or not is_same


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a is b or (a.shape == b.shape and torch.equal(a, b.to(a.device)))


def _distances(a: torch.Tensor, b: torch.Tensor) -> list[float]:
    """The mean absolute difference of each piece's vectors in `a` and `b` (pieces, dim)."""
    return (a.float() - b.float()).abs().mean(-1).tolist()


def _is_causal(alone: torch.Tensor, last: torch.Tensor, *, by_batch: bool) -> bool:
    """Whether no piece sees those behind it, by the last layer (3, pieces, dim) of a batch of `probe_pieces`; `alone`
    is that of its first row, read by itself. What moves is compared with what another first piece moves behind it:
    mixtures of experts move all pieces a little. `by_batch`: each number is rounded by the largest one of the batch, as
    torch's dynamic int8 does.

    Raises ModelError for vectors that depend on what they mustn't, or on nothing.
    """
    is_exact = last.dtype == torch.float32 and not by_batch
    behind = _distances(last[0], last[1])
    context = max(behind[1:])
    if context <= 1e-6 * behind[0]:
        raise ModelError("no piece's vector depends on the pieces before it: its attention isn't computed here")
    tolerance = 1e-2 if is_exact else 0.25
    if max(_distances(alone, last[0])) > (1 if by_batch else tolerance) * context:
        raise ModelError("a sentence's vectors depend on the sentences beside it, or on chance; expected equal ones")
    return max(_distances(last[0], last[2])[:-1]) <= (1e-3 if is_exact else 0.06) * context


class ForwardPass:
    """Calls a model, which is left as it is.

    `layers` are the numbers of the hidden states that are kept until the end, by hooks; None, or where the model's
    facts have no sources: all. Without `final_norm` the last hidden state is what enters that norm.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        facts: ModelFacts,
        layers: Sequence[int] | None = None,
        *,
        final_norm: bool = True,
    ) -> None:
        self.model, self.activations = model, slow_activations(model)
        self.entering = [] if final_norm else [(model.get_submodule(facts.norm or ""), True)]
        self.read: Callable[..., ModelOutput] = partial(model, output_hidden_states=True)
        if facts.is_hooked or (facts.sources and layers is not None):
            kept = facts.sources.keys() if layers is None else {*layers, facts.n_layers - 1}
            sources = {layer: source for layer, source in facts.sources.items() if layer in kept}
            self.read = partial(hooked_pass, model, sources, facts.n_layers)

    def __call__(self, ids: torch.Tensor, **more: object) -> ModelOutput:
        """The model's output for `ids` (sentences, length), with hidden states: None in place of those not kept; `more`
        are arguments of the model's own."""
        with evaluation(self.model), catch_tensors(self.entering) as calls:
            for module in self.activations:
                # until the evaluation ends; in place of the module its hooks would be passed by
                module.forward = GELU
            out = self.read(input_ids=ids, **more)
        return replace(out, last_hidden_state=calls[-1][2]) if calls else out


GELU = partial(functional.gelu, approximate="tanh")


def slow_activations(model: PreTrainedModel) -> list[nn.Module]:
    """A float32 model's GELU layers that transformers computes in eight passes over memory: a quarter of GPT-2's time.
    `GELU` is the same formula in one pass, its result within 1e-6."""
    from transformers.activations import NewGELUActivation

    return [one for one in model.modules() if type(one) is NewGELUActivation and model.dtype == torch.float32]


def table_rows(model: PreTrainedModel) -> int:
    """Rows of the model's input embedding table; 0 for a model without one."""
    try:
        return len(model.get_input_embeddings().weight)
    except (AttributeError, NotImplementedError):
        return 0


def window_size(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Pieces that the model takes at once, special ones included; None without a limit."""
    limits: list[object] = [tokenizer.model_max_length]  # without a limit some 1e30, a float
    settings = model.config.get_text_config().to_dict()
    limits += [n for key, n in settings.items() if LIMITS.fullmatch(key) and type(n) is int and n > 0]
    padded = settings.get("attention_window") or 1
    multiple = max(padded) if isinstance(padded, list) else padded  # LED pads texts to it, which take positions too
    for name, module in model.named_modules():
        rows = getattr(module, "weight", None)
        if re.search(r"(^|[._])positions?(_embeddings?)?$", name) and isinstance(rows, torch.Tensor) and rows.ndim == 2:
            # RoBERTa and its kin count positions from padding_idx + 1, OPT from an offset
            padding = getattr(module, "padding_idx", None)
            if padding is not None:
                limits.append(len(rows) - padding - 1)
            else:
                n = len(rows) - getattr(module, "offset", 0)
                limits.append(n - n % multiple)
    limit = min((n for n in limits if isinstance(n, int | float) and n > 0), default=math.inf)
    return int(limit) if limit < 10**9 else None
