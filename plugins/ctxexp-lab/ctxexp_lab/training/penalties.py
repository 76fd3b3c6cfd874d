"""Penalties on a loss: on output rows that point one way, and on contextual vectors that do."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

APART = 4  # windows: so far from each other that they hardly share a paragraph


def mean_cosine(w: Tensor) -> Tensor:
    """Mean cosine over ordered pairs i != j of rows, in [-1, 1]: the regulariser of Gao et al. 2019 (equation 4 with
    its 1/N^2), in O(N) because the sum over pairs is the squared norm of the sum of unit rows, less N."""
    u = functional.normalize(w.float(), dim=1)
    return (u.sum(0).square().sum() - len(u)) / len(u) ** 2


def context_penalty(states: Sequence[Tensor], is_text: Tensor) -> Tensor:
    """Mean over layers of the mean cosine of unrelated contextual vectors, in [-1, 1]: Ethayarajh 2019's future work.

    Args:
        states: vectors of each layer, (windows, width, d).
        is_text: which of them are of a piece of text, (windows, width); the rest (special and masked pieces) don't
            count.
    """
    return torch.stack([unrelated_cosine(x, is_text) for x in states]).mean()


def unrelated_cosine(x: Tensor, is_text: Tensor) -> Tensor:
    """Mean cosine of the pairs of vectors that stand APART or more windows from each other, in [-1, 1]; NaN for fewer
    than APART + 1 windows. x (windows, width, d), is_text (windows, width).

    The sum over all pairs is the squared norm of the sum of unit vectors; that over nearer windows is taken off.
    """
    sums = (functional.normalize(x.float(), dim=-1) * is_text[..., None]).sum(1)  # (windows, d)
    counts = is_text.sum(1, dtype=torch.float32)[:, None]  # (windows, 1)
    return _over_apart(sums) / _over_apart(counts)


def _over_apart(sums: Tensor) -> Tensor:
    """Sum of the inner products of rows that are APART or more from each other; rows (windows, d)."""
    near = [(sums[: len(sums) - k] * sums[k:]).sum() for k in range(1, APART)]
    return sums.sum(0).square().sum() - sums.square().sum() - 2 * torch.stack(near).sum()
