"""The recurrence of ELMo's LSTM as autograd can follow it, for training; without gradient it is the network's own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ctxexp.models import ElmoNetwork

Weights = tuple[Tensor, Tensor, Tensor]  # of the four gates, their bias, the projection
CellState = tuple[Tensor, Tensor]  # cells and outputs, to start from


def make_trainable(network: ElmoNetwork) -> ElmoNetwork:
    """The same network, whose recurrence has a gradient now."""
    for layer in network.layers:
        layer.scan = scan_with_gradient  # type: ignore[assignment]  # a ModuleList doesn't know its items' type
    return network


def scan_with_gradient(
    x: Tensor, weights: Weights, start: CellState, sizes: Sequence[int], clips: tuple[float, float]
) -> tuple[Tensor, Tensor, Tensor]:
    """`ElmoNetwork.scan`, under autocast too, where cells stay float32; states to start from get no gradient. A clipped
    output or cell passes no gradient, as in TensorFlow's clip_by_value."""
    kind = x.device.type
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        x, *learned = (a.to(dtype) for a in (x, *weights))
        weights = learned[0], learned[1], learned[2]
    if not torch.is_grad_enabled():
        return ElmoNetwork.scan(x, weights, (start[0].to(x.dtype), start[1]), sizes, clips)
    weight, bias, project = weights
    width, n = x.shape[-1], x.shape[2]
    c, m = start[0].detach(), start[1].detach().to(x.dtype)
    c = c.float() if x.dtype in (torch.bfloat16, torch.float16) else c
    outputs = []
    with torch.autocast(kind, enabled=False):
        inputs = torch.einsum("dtnw,dwg->dtng", x, weight[:, :width]) + bias[:, None, None]
        from_output = weight[:, width:]
        for t, k in enumerate(sizes):
            i, j, f, o = torch.baddbmm(inputs[:, t, :k], m[:, :k], from_output).chunk(4, dim=-1)
            cells = (torch.sigmoid(f) * c[:, :k] + torch.sigmoid(i) * torch.tanh(j)).clamp(-clips[0], clips[0])
            hidden = torch.sigmoid(o) * torch.tanh(cells).to(x.dtype)
            output = torch.bmm(hidden, project).clamp(-clips[1], clips[1])
            outputs.append(torch.nn.functional.pad(output, (0, 0, 0, n - k)))
            c, m = torch.cat([cells, c[:, k:]], dim=1), torch.cat([output, m[:, k:]], dim=1)
    return torch.stack(outputs, dim=1), c.detach(), m.detach()
