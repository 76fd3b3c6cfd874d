"""The recurrence of ELMo's projected LSTM over time, both directions at once.

One step (TensorFlow's LSTMCell, with the forget bias already in `bias`):
    i, j, f, o = [x, m] weight + bias
    c = clip(sigmoid(f) c + sigmoid(i) tanh(j))
    m = clip((sigmoid(o) tanh(c)) project)
It has no gradient: ctxexp-train has that (`ctxexp_train.recurrence`).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

Weights = tuple[Tensor, Tensor, Tensor]  # of the four gates, their bias, the projection
State = tuple[Tensor, Tensor]  # cells and outputs


def scan(
    x: Tensor,
    weights: Weights,
    start: State,
    sizes: Sequence[int],
    clips: tuple[float, float],
    gates: Tensor | None = None,
    cells: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs (2, n_steps, n, projection), last cells (2, n, cells) and last outputs (2, n, projection).

    x (2, n_steps, n, width); weight (2, width + projection, 4 cells), bias (2, 4 cells) and project (2, cells,
    projection); cells and outputs to start from. Step t touches the first `sizes[t]` sentences; outputs of the others
    are 0 and their states stay. `clips` bound cells and outputs. Activated gates and clipped cells of each step go to
    `gates` and `cells` if given.
    """
    weight, bias, project = weights
    _, _, n, width = x.shape
    n_cells, n_out = project.shape[1:]
    c, m = start[0].clone(), start[1]
    inputs = torch.cat([x.new_zeros(2, n, width), m.to(x.dtype)], dim=2)  # [x, m] of the current step
    outputs = empty_steps(x, sizes, n_out)
    room = x.new_empty(2, n, 4 * n_cells) if gates is None else None
    hidden = x.new_empty(2, n, n_cells)
    bias = bias.unsqueeze(1)
    for t, k in enumerate(sizes):
        now, ck, hk = inputs[:, :k], c[:, :k], hidden[:, :k]
        now[..., :width] = x[:, t, :k]
        g = room[:, :k] if room is not None else gates[:, t, :k]  # type: ignore[index]  # one of the two is given
        torch.baddbmm(bias, now, weight, out=g)
        i, j, f_o = g[..., :n_cells].sigmoid_(), g[..., n_cells : 2 * n_cells].tanh_(), g[..., 2 * n_cells :].sigmoid_()
        ck.mul_(f_o[..., :n_cells]).addcmul_(i, j).clamp_(-clips[0], clips[0])
        if cells is not None:
            cells[:, t, :k] = ck
        torch.tanh(ck, out=hk).mul_(f_o[..., n_cells:])
        mk = torch.bmm(hk, project).clamp_(-clips[1], clips[1])
        now[..., width:] = mk
        outputs[:, t, :k] = mk
    return outputs, c, inputs[..., width:]


def empty_steps(x: Tensor, sizes: Sequence[int], width: int, dtype: torch.dtype | None = None) -> Tensor:
    """An array (2, n_steps, n, width), zero where some sentence ends early."""
    shape = (*x.shape[:3], width)
    whole = min(sizes, default=0) == x.shape[2]
    return x.new_empty(shape, dtype=dtype) if whole else x.new_zeros(shape, dtype=dtype)
