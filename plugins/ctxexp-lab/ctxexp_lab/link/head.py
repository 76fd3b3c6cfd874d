"""A language model's head as one product: contexts h, rows w of its output matrix, the piece that each context ends in.

Both kinds of models predict a piece x from a context c by softmax over h_c.w_x + b_x. A causal model's h is the state
that its output matrix reads at each piece; a masked model's is what its head makes of a [MASK] in the place of a piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ctxexp.errors import ModelError
from ctxexp.models import Checkpoint

ROWS = 32  # texts at a time
TOLERANCE = 1e-3  # of logits against products, relative to their spread


@dataclass(frozen=True)
class ContextStates:
    """Contexts and pieces of a text as a model's head has them.

    `hidden` (n, d + 1) float64, a row a context, its last column 1; `output` (V, d + 1), its last column the bias (0
    without one); `ends` (n,) the text's piece before the predicted one; `texts` (n,) the sentence of each context;
    `counts` (V,) pieces of the text; `following` (m, 2) its pairs of pieces in sequence; `kind` causal or masked.
    """

    kind: str
    hidden: np.ndarray
    ends: np.ndarray
    texts: np.ndarray
    output: np.ndarray
    counts: np.ndarray
    following: np.ndarray
    has_bias: bool


def context_states(
    checkpoint: Checkpoint, texts: Sequence[str], *, untrained: int | None = None, contexts: int = 2000, seed: int = 0
) -> ContextStates:
    """The states of at most `contexts` random contexts of the texts, which have a piece before the predicted one.

    `untrained` draws the weights anew with that seed. Texts are cut at the model's longest.

    Raises ModelError for a checkpoint without a language-model head, and for one whose logits are no product of a state
    with the output matrix, plus a bias (scaled or capped logits).
    """
    network, tokenizer, kind = _load(checkpoint, untrained)
    config = network.config
    positions = getattr(config, "n_positions", None) or getattr(config, "max_position_embeddings", None) or 10**9
    longest = min(int(tokenizer.model_max_length), int(positions))
    read = [tokenizer(text, return_special_tokens_mask=True, truncation=True, max_length=longest) for text in texts]
    ids = [np.array(one["input_ids"], np.int64) for one in read]
    is_special = [np.array(one["special_tokens_mask"], bool) for one in read]
    own = [each[~special] for each, special in zip(ids, is_special, strict=True)]
    places = [  # (text, place of the predicted piece): its left neighbour is a piece of the text
        (t, int(i))
        for t, special in enumerate(is_special)
        for i in np.flatnonzero(~special)
        if i > 0 and not special[i - 1]
    ]
    if not places:
        raise ModelError(f"{checkpoint.source}: the text has no two pieces in sequence")
    order = np.random.default_rng(seed).permutation(len(places))[:contexts]
    sample = [places[i] for i in np.sort(order).tolist()]
    with _head_input(network) as states:
        hidden = _states(network, kind, ids, sample, tokenizer, states)
    weight, bias = _matrix(network, checkpoint.source)
    size = len(weight) if len(tokenizer) > len(weight) else len(tokenizer)  # rows past the tokenizer's are padding
    following = [np.stack([each[:-1], each[1:]], axis=1) for each in own]
    return ContextStates(
        kind,
        np.c_[hidden, np.ones(len(hidden))],
        np.array([ids[t][i - 1] for t, i in sample]),
        np.array([t for t, _ in sample]),
        np.c_[weight, bias][:size],
        np.bincount(np.concatenate(own), minlength=size)[:size],
        np.concatenate(following),
        bool(bias.any()),
    )


def _load(checkpoint: Checkpoint, untrained: int | None) -> tuple[Any, Any, str]:
    """The network with its head, its tokenizer, and its kind."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging

    folder = checkpoint.folder
    where: dict[str, Any] = {"pretrained_model_name_or_path": folder, "local_files_only": True}
    if checkpoint.is_gguf:
        where |= {"pretrained_model_name_or_path": folder.parent, "gguf_file": folder.name}
    config = AutoConfig.from_pretrained(**where)
    named = " ".join(config.architectures or ["ForCausalLM"] * checkpoint.is_gguf)
    kind = "masked" if "MaskedLM" in named else "causal" if "CausalLM" in named or "LMHead" in named else ""
    if not kind:
        raise ModelError(
            f"{checkpoint.source} has no language-model head (architectures: {named or 'none'}), so that nothing is "
            "predicted; expected a checkpoint of a ...ForMaskedLM, ...ForCausalLM or ...LMHeadModel"
        )
    auto = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
    logging.set_verbosity_error()  # of parts that this head doesn't use
    logging.disable_progress_bar()
    if untrained is None:
        network = auto.from_pretrained(**where, dtype=torch.float32)
    else:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(untrained)
            network = auto.from_config(config).float()
    return network.eval().requires_grad_(False), AutoTokenizer.from_pretrained(**where), kind


@contextmanager
def _head_input(network: Any) -> Iterator[list[Any]]:
    """The input of the output matrix, a tensor a call, while the block runs."""
    states: list[Any] = []
    hook = network.get_output_embeddings().register_forward_pre_hook(lambda _, args: states.append(args[0]))
    try:
        yield states
    finally:
        hook.remove()


def _states(
    network: Any,
    kind: str,
    ids: Sequence[np.ndarray],
    chosen: Sequence[tuple[int, int]],
    tokenizer: Any,
    states: list[Any],
) -> np.ndarray:
    """(n, d) float64 the state that predicts the piece at each chosen place."""
    import torch

    jobs = [(t, [i]) for t, i in chosen]  # a masked model reads a text once for each place
    if kind == "causal":
        places: dict[int, list[int]] = {}
        for t, i in chosen:
            places.setdefault(t, []).append(i)
        jobs = list(places.items())
    vectors: dict[tuple[int, int], np.ndarray] = {}
    by_length: dict[int, list[tuple[int, list[int]]]] = {}
    for t, window in jobs:
        by_length.setdefault(len(ids[t]), []).append((t, window))
    is_checked = False
    for some in by_length.values():
        for start in range(0, len(some), ROWS):
            part = some[start : start + ROWS]
            x = torch.from_numpy(np.stack([ids[t] for t, _ in part]))
            if kind == "masked":
                x[torch.arange(len(part)), torch.tensor([window[0] for _, window in part])] = tokenizer.mask_token_id
            states.clear()
            with torch.inference_mode():
                logits = network(x).logits
            if not is_checked:
                _check_product(network, logits, states[0])
                is_checked = True
            for row, (t, window) in enumerate(part):
                for i in window:
                    vectors[t, i] = states[0][row, i if kind == "masked" else i - 1].double().numpy()
    return np.stack([vectors[place] for place in chosen])


def _matrix(network: Any, source: str) -> tuple[np.ndarray, np.ndarray]:
    """The output matrix (V, d) and its bias (V,), float64."""
    head = network.get_output_embeddings()
    weight = head.weight.double().numpy()
    bias = getattr(head, "bias", None)
    return weight, np.zeros(len(weight)) if bias is None else bias.double().numpy()


def _check_product(network: Any, logits: Any, state: Any) -> None:
    head = network.get_output_embeddings()
    product = state @ head.weight.T + (0 if getattr(head, "bias", None) is None else head.bias)
    if product.shape != logits.shape or (product - logits).abs().max() > TOLERANCE * logits.std():
        raise ModelError(
            f"{type(network).__name__}: its logits are no product of a state with its output matrix plus a bias "
            "(scaled or capped): the link is not of this form"
        )
