"""The probe's occurrences as layers of ELMo's network, with gradient where it is wanted."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ctxexp.models.elmo.network import BEGIN, END, ElmoNetwork, character_ids
from ctxexp_train.probe.task import Task

AT_ONCE = 128  # sentences of one pass without gradient

LayersOf = Callable[[Tensor], Tensor]
"""Rows (b,) -> their layers (n_layers, b, dim)."""


class OccurrenceLayers:
    """The task's rows as ELMo's layers: called with row numbers (b,), gives (n_layers, b, dim)."""

    def __init__(self, network: ElmoNetwork, task: Task) -> None:
        self.network, self._task = network, task
        vocabulary = [BEGIN, END, *sorted({word for s in task.sentences for word in s.words})]
        self._row_of = {word: row for row, word in enumerate(vocabulary)}
        self._characters = torch.from_numpy(character_ids(vocabulary, network.options.word_width))

    def of(self, network: ElmoNetwork) -> OccurrenceLayers:
        """The same rows through another network of the same shape."""
        other = copy.copy(self)
        other.network = network
        return other

    def __call__(self, rows: Tensor) -> Tensor:
        device = self.network.tokens.characters.device
        sentences = [self._task.sentences[i] for i in rows.tolist()]
        order = sorted(range(len(rows)), key=lambda k: -len(sentences[k]))  # the network wants the longest first
        lengths = [len(sentences[k]) + 2 for k in order]
        index = np.full((lengths[0], len(order)), self._row_of[END])
        index[0] = self._row_of[BEGIN]
        for column, k in enumerate(order):
            index[1 : lengths[column] - 1, column] = [self._row_of[word] for word in sentences[k].words]
        unique, inverse = np.unique(index, return_inverse=True)
        x = functional.embedding(
            torch.from_numpy(inverse.reshape(index.shape)).to(device),
            self.network.tokens(self._characters[torch.from_numpy(unique)].to(device)),
        )
        outputs, _ = self.network.contextual(x, lengths)
        at = torch.from_numpy(self._task.positions[rows.numpy()][order] + 1).to(device)  # behind the marker
        each = torch.arange(len(order), device=device)
        token = x[at, each]
        layers = [
            torch.cat([token, token], -1),
            *(torch.cat([y[0, at, each], y[1, at, each]], -1) for y in outputs),
        ]
        back = torch.tensor(sorted(range(len(order)), key=order.__getitem__), device=device)
        return torch.stack(layers)[:, back]

    @torch.no_grad()
    def all(self) -> Tensor:
        """Every row's layers (n_layers, n, dim), without gradient."""
        return torch.cat([self(part) for part in torch.split(torch.arange(len(self._task)), AT_ONCE)], dim=1)
