"""What a model is asked for: its forward pass, with GPT-2's activation in one pass over memory; and its embedding
tables, the input matrix and that of its language-model head.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ctxexp.dataset import Sentence
from ctxexp.errors import ModelError
from ctxexp.model import EmbeddingTable
from ctxexp.models.transformer import Checkpoint, weight_files
from ctxexp.models.transformer.facts import LayerHooks, ModelFacts, caught, reading
from ctxexp.models.transformer.gguf import OUTPUT, read_matrix
from ctxexp.models.transformer.leftovers import read_weight

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel
    from transformers.utils import ModelOutput

    from ctxexp.models.transformer.pieces import PieceReader

Forwards = Mapping[nn.Module, Callable[[torch.Tensor], torch.Tensor]]  # what stands in for a layer's own forward


class ForwardPass:
    """Calls a model, which is left as it is, by other forwards of some layers, `gelu`.

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
        self.model, self.gelu = model, fused_gelu(model)
        self.entering = [] if final_norm else [(model.get_submodule(facts.norm or ""), True)]
        self.read: Callable[..., ModelOutput] = partial(model, output_hidden_states=True)
        if facts.is_hooked or (facts.sources and layers is not None):
            kept = facts.sources.keys() if layers is None else {*layers, facts.n_layers - 1}
            sources = {layer: source for layer, source in facts.sources.items() if layer in kept}
            self.read = LayerHooks(model, sources, facts.n_layers)

    def __call__(self, ids: torch.Tensor) -> ModelOutput:
        """The model's output for `ids` (sentences, length), with hidden states: None in place of those not kept."""
        with reading(self.model), _replaced(self.gelu), caught(self.entering) as calls:
            out = self.read(input_ids=ids)
        return replace(out, last_hidden_state=calls[-1][2]) if calls else out


def fused_gelu(model: PreTrainedModel) -> Forwards:
    """A forward in one pass over memory for each of a float32 model's GELU layers that transformers writes in eight.

    It is the same formula, and the result within 1e-6; such a layer takes a quarter of GPT-2's time otherwise.
    """
    from transformers.activations import NewGELUActivation

    gelu = partial(nn.functional.gelu, approximate="tanh")
    return {m: gelu for m in model.modules() if type(m) is NewGELUActivation and model.dtype == torch.float32}


@contextmanager
def _replaced(forwards: Forwards) -> Iterator[None]:
    """Puts these functions in the place of the layers' own forward."""
    for layer, forward in forwards.items():
        vars(layer)["forward"] = forward
    try:
        yield
    finally:
        for layer in forwards:
            del vars(layer)["forward"]


def transformer_tables(
    model: PreTrainedModel,
    reader: PieceReader,
    checkpoint: Checkpoint,
    sentences: Sequence[Sentence],
    *,
    untrained: bool,
) -> list[EmbeddingTable]:
    """`input`, and `output` where the checkpoint holds a matrix of its own for its head.

    The base model that encodes has no head, so an untied output matrix is read from the checkpoint's files; the note of
    `input` says how the two relate. Rows past the tokenizer's vocabulary (padding of the matrix) are left out; counts
    are of the pieces of `sentences`, special pieces around them not counted.
    """
    weight = model.get_input_embeddings().weight.detach().float().cpu().numpy()
    backend = reader.backend
    spelled = {i: token for token, i in backend.get_vocab(with_added_tokens=True).items()}
    n = min(len(weight), max(spelled) + 1)
    tokens = tuple(spelled.get(i, f"[{i}]") for i in range(n))
    special = tuple(sorted(i for i, t in backend.get_added_tokens_decoder().items() if t.special and i < n))
    unspelled = tuple(i for i in range(n) if i not in spelled)  # rows that no text reaches
    left_out = tuple(sorted({*special, *unspelled}))
    counts = _counts(reader, sentences, n)
    name, note, tied = _head(model.config)
    output = None
    if name and untrained:
        note = "untied, and an untrained model's head is never drawn: no output matrix"
    elif name:
        output = _output(checkpoint, name)
        note = note if output is not None else f"the checkpoint has no {name}: its output matrix is not available"
    tables = [EmbeddingTable("input", tokens, weight[:n], counts, left_out, note, tied)]
    if output is not None:
        if len(output) < n:
            raise ModelError(
                f"{checkpoint.source}: its output matrix {name} has {len(output)} rows for {n} pieces; "
                "expected a row each"
            )
        tables.append(EmbeddingTable("output", tokens, output[:n], counts, left_out, f"read from {name}"))
    return tables


def _output(checkpoint: Checkpoint, name: str) -> np.ndarray | None:
    if checkpoint.is_gguf:
        return read_matrix(checkpoint.folder, OUTPUT)
    tensor = read_weight(weight_files(checkpoint.folder), name)
    return None if tensor is None else tensor.float().numpy()


def _counts(reader: PieceReader, sentences: Sequence[Sentence], n: int) -> np.ndarray:
    counts = np.zeros(n, np.int64)
    for i in range(0, len(sentences), 1000):
        for pieces in reader(sentences[i : i + 1000]):
            own = pieces.ids[pieces.n_before : len(pieces.ids) - pieces.n_after]
            counts += np.bincount(own[own < n], minlength=n)
    return counts


def _head(config: PretrainedConfig) -> tuple[str, str, bool]:
    """The name of the untied output matrix, empty if there is none; what is to be said of it; whether it is tied."""
    import transformers

    for architecture in config.architectures or ():
        head = getattr(transformers, architecture, None)
        if head is None or not (
            "LMHead" in architecture or "ForCausalLM" in architecture or "MaskedLM" in architecture
        ):
            continue
        with torch.device("meta"):  # the shape of the network, without its weights
            network = head(copy.deepcopy(config))
        network.tie_weights()
        output = network.get_output_embeddings()
        if output is None:
            continue
        if output.weight is network.get_input_embeddings().weight:
            return "", f"tied: {architecture} uses it as its output matrix too", True
        name = next(name for name, p in network.named_parameters(remove_duplicate=False) if p is output.weight)
        return name, f"{architecture} has an output matrix of its own", False
    named = ", ".join(config.architectures or ()) or "none"
    return "", f"the checkpoint names no language-model head (architectures: {named}): no output matrix is known", False
