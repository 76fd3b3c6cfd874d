"""ELMo's layers at the occurrences of a probe's task, differentiable by the network's weights."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ctxexp.models import ElmoNetwork
from ctxexp_lab.probe.task import SenseTask

AT_ONCE = 128  # sentences of one pass without gradient

LayerSource = Callable[[Tensor], Tensor]
"""A function of row numbers (b,) that gives their vectors in all layers (n_layers, b, dim)."""


class OccurrenceLayers:
    """ELMo's vectors of the task's rows: called with row numbers (b,), gives (n_layers, b, dim).

    dim is twice the width of a direction: both directions side by side, and in layer 0 the token's vector twice.
    """

    def __init__(self, network: ElmoNetwork, task: SenseTask) -> None:
        self.network, self._task = network, task
        vocabulary = [network.BEGIN, network.END, *sorted({word for s in task.sentences for word in s.words})]
        self._vocabulary_index = {word: i for i, word in enumerate(vocabulary)}
        self._characters = torch.from_numpy(network.character_ids(vocabulary, network.options.word_width))

    def with_network(self, network: ElmoNetwork) -> OccurrenceLayers:
        """A copy that passes the same rows through another network of the same shape."""
        other = copy.copy(self)
        other.network = network
        return other

    def __call__(self, rows: Tensor) -> Tensor:
        device = self.network.tokens.characters.device
        sentences = [self._task.sentences[i] for i in rows.tolist()]
        order = sorted(range(len(rows)), key=lambda k: -len(sentences[k]))  # the network wants the longest first
        lengths = [len(sentences[k]) + 2 for k in order]
        index = np.full((lengths[0], len(order)), self._vocabulary_index[self.network.END])
        index[0] = self._vocabulary_index[self.network.BEGIN]
        for i, k in enumerate(order):
            index[1 : lengths[i] - 1, i] = [self._vocabulary_index[word] for word in sentences[k].words]
        unique, inverse = np.unique(index, return_inverse=True)
        x = functional.embedding(
            torch.from_numpy(inverse.reshape(index.shape)).to(device),
            self.network.tokens(self._characters[torch.from_numpy(unique)].to(device)),
        )
        outputs, _ = self.network.contextual(x, lengths)
        at = torch.from_numpy(self._task.positions[rows.numpy()][order] + 1).to(device)  # + 1: begin of sentence
        column = torch.arange(len(order), device=device)
        token = x[at, column]
        layers = [
            torch.cat([token, token], -1),
            *(torch.cat([y[0, at, column], y[1, at, column]], -1) for y in outputs),
        ]
        inverse_order = torch.tensor(sorted(range(len(order)), key=order.__getitem__), device=device)
        return torch.stack(layers)[:, inverse_order]

    @torch.no_grad()
    def all_rows(self) -> Tensor:
        """Every row's layers (n_layers, n, dim), without gradient."""
        return torch.cat([self(part) for part in torch.split(torch.arange(len(self._task)), AT_ONCE)], dim=1)
