"""The recurrence of ELMo's LSTM with its exact gradient, for training.

Written out by hand because autograd over single steps would add up the weights' gradient once a step: here it is one
product over all steps. Training in a half type keeps the cells in float32; without gradient they are of that type,
which is a third quicker and adds a twentieth to its error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ctxexp.models import ElmoNetwork

Weights = tuple[Tensor, Tensor, Tensor]  # of the four gates, their bias, the projection
CellState = tuple[Tensor, Tensor]  # cells and outputs, to start from
_HALF = (torch.bfloat16, torch.float16)


def make_trainable(network: ElmoNetwork) -> ElmoNetwork:
    """The same network, whose recurrence has a gradient now."""
    for layer in network.layers:
        layer.scan = scan_with_gradient  # type: ignore[assignment]  # a ModuleList doesn't know its items' type
    return network


def scan_with_gradient(
    x: Tensor, weights: Weights, start: CellState, sizes: Sequence[int], clips: tuple[float, float]
) -> tuple[Tensor, Tensor, Tensor]:
    """`ElmoNetwork.scan`, under autocast too; states to start from get no gradient."""
    kind = x.device.type
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        x, *learned = (a.to(dtype) for a in (x, *weights))
        weights = learned[0], learned[1], learned[2]
    if torch.is_grad_enabled():
        outputs_and_states = _Scan.apply(  # type: ignore[no-untyped-call]  # torch leaves Function.apply untyped
            x, *weights, start, sizes, clips
        )
        return cast(tuple[Tensor, Tensor, Tensor], outputs_and_states)
    return ElmoNetwork.scan(x, weights, (start[0].to(x.dtype), start[1]), sizes, clips)


def empty_steps(x: Tensor, sizes: Sequence[int], width: int, dtype: torch.dtype | None = None) -> Tensor:
    """An array (2, n_steps, n, width), zero where some sentence ends early."""
    make = x.new_empty if min(sizes, default=0) == x.shape[2] else x.new_zeros
    return make((*x.shape[:3], width), dtype=dtype)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        project: Tensor,
        start: CellState,
        sizes: Sequence[int],
        clips: tuple[float, float],
    ) -> tuple[Tensor, Tensor, Tensor]:
        n_cells = project.shape[1]
        gates = empty_steps(x, sizes, 4 * n_cells)
        c, m = start[0].to(torch.float32 if x.dtype in _HALF else x.dtype), start[1]
        cells = empty_steps(x, sizes, n_cells, c.dtype)
        outputs, last_c, last_m = ElmoNetwork.scan(x, (weight, bias, project), (c, m), sizes, clips, gates, cells)
        ctx.save_for_backward(x, weight, project, c, m, gates, cells, outputs)
        ctx.sizes, ctx.clips = sizes, clips
        ctx.mark_non_differentiable(last_c, last_m)
        return outputs, last_c, last_m

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, project, c0, m0, gates, cells, outputs = ctx.saved_tensors
        cell_clip, projection_clip = ctx.clips
        _, n_steps, _, width = x.shape
        n_cells = project.shape[1]
        into_m = weight[:, width:].transpose(1, 2).contiguous()
        into_h = project.transpose(1, 2).contiguous()
        hidden, d_out = empty_steps(x, ctx.sizes, n_cells), empty_steps(x, ctx.sizes, outputs.shape[-1])
        dc, dm = torch.zeros_like(cells[:, 0]), torch.zeros_like(outputs[:, 0])
        aten = torch.ops.aten
        for t in reversed(range(n_steps)):
            k = ctx.sizes[t]
            i, j, f, o = gates[:, t, :k].split(n_cells, dim=-1)
            ct = cells[:, t, :k]
            before = cells[:, t - 1, :k] if t else c0[:, :k]
            # a clipped output or cell passes no gradient, as TensorFlow's clip_by_value
            dmk = torch.mul(dm[:, :k] + grad[:, t, :k], outputs[:, t, :k].abs() < projection_clip)
            d_out[:, t, :k] = dmk
            dh = torch.bmm(dmk, into_h)
            tanh_c = torch.tanh(ct).to(x.dtype)
            torch.mul(tanh_c, o, out=hidden[:, t, :k])
            do = dh * tanh_c
            dck = dc[:, :k].add_(aten.tanh_backward(dh.mul_(o), tanh_c)).mul_(ct.abs() < cell_clip)
            dcx = dck.to(x.dtype)
            di, dj, df = dcx * j, dcx * i, dcx * before
            dck.mul_(f)
            # the gates' own memory takes their gradients: it is by far the largest of the step
            aten.sigmoid_backward(di, i, grad_input=i)
            aten.tanh_backward(dj, j, grad_input=j)
            aten.sigmoid_backward(df.to(x.dtype), f, grad_input=f)
            aten.sigmoid_backward(do, o, grad_input=o)
            dm[:, :k] = torch.bmm(gates[:, t, :k], into_m)
        flat = gates.flatten(1, 2)
        earlier = torch.cat([m0.to(x.dtype).unsqueeze(1), outputs[:, :-1]], dim=1).flatten(1, 2)
        d_weight = torch.cat([x.flatten(1, 2).mT @ flat, earlier.mT @ flat], dim=1)
        d_x = (flat @ weight[:, :width].mT).view_as(x) if ctx.needs_input_grad[0] else None
        return d_x, d_weight, flat.sum(1), hidden.flatten(1, 2).mT @ d_out.flatten(1, 2), *[None] * 3
