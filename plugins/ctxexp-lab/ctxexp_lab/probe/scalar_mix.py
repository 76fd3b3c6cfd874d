"""ELMo's task-level mix of layers (Peters et al. 2018, equation 1): gamma sum_j s_j h_j, with s = softmax(w)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ctxexp.errors import ModelError

EPSILON = 1e-12  # under the root of the layer norm, as in the original


class ScalarMix(nn.Module):
    """One vector per word from its layers 0..L: gamma sum_{j=0}^{L} s_j h_j, with s = softmax(w) over layers.

    `w` (n_layers,) and `gamma` belong to the task: they are the same for every word. They start at w = 0 (all layers
    alike) and gamma = 1. With `layer_norm` each layer is first normalised as the original did: mean 0 and variance 1
    over all words and dimensions of the batch that `mask` keeps, without learned scale.
    """

    def __init__(self, n_layers: int, *, layer_norm: bool = False, trainable: bool = True) -> None:
        super().__init__()
        if n_layers < 1:
            raise ModelError(f"a scalar mix of {n_layers} layers: expected at least 1")
        self.layer_norm = layer_norm
        self.w = nn.Parameter(torch.zeros(n_layers), requires_grad=trainable)
        self.gamma = nn.Parameter(torch.ones(()), requires_grad=trainable)

    @property
    def s(self) -> Tensor:
        """The layers' weights (n_layers,): positive, their sum 1."""
        return torch.softmax(self.w, dim=0)

    def forward(self, layers: Tensor, mask: Tensor | None = None) -> Tensor:
        """(..., dim) from `layers` (n_layers, ..., dim); `mask` (...) is true at words, false at padding."""
        if len(layers) != len(self.w):
            raise ModelError(f"the scalar mix has weights for {len(self.w)} layers, but got {len(layers)}")
        if self.layer_norm:
            layers = _normalise(layers, mask)
        mix: Tensor = torch.tensordot(self.s, layers, dims=1)
        return self.gamma * mix


def _normalise(layers: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        mask = layers.new_ones(layers.shape[1:-1], dtype=torch.bool)
    weight = mask.unsqueeze(-1).to(layers.dtype)  # (..., 1)
    over = tuple(range(1, layers.dim()))
    number = weight.sum() * layers.shape[-1]
    mean = (layers * weight).sum(over, keepdim=True) / number
    variance = (((layers - mean) * weight) ** 2).sum(over, keepdim=True) / number
    return (layers - mean) / torch.sqrt(variance + EPSILON)
