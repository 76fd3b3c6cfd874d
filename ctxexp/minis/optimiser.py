"""Muon for the matrices of the blocks, AdamW for everything else, and a warm-up, constant, linear-decay schedule.

Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/) replaces a matrix's momentum by the nearest
semi-orthogonal matrix. On a CPU it learns more per minute than AdamW alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

# Newton-Schulz coefficients of the quintic iteration: they raise small singular values fastest.
_A, _B, _C = 3.4445, -4.7750, 2.0315


def orthogonalise(x: Tensor, steps: int = 5) -> Tensor:
    """Nearly semi-orthogonal matrices of a stack (n, rows, columns): singular values to about 0.7-1.2."""
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = _A * x + (_B * gram + _C * gram @ gram) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum orthogonalised, for matrices.

    Group keys: `transposed` for weights stored (in, out), `fused` for the number of matrices side by side in one.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float, momentum: float, weight_decay: float) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "transposed": False, "fused": 1}
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]  # never called with one
        for group in self.param_groups:
            by_shape: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = {}
            for p in group["params"]:
                if p.grad is None:
                    continue
                momentum = self.state[p].setdefault("momentum", torch.zeros_like(p))
                momentum.lerp_(p.grad, 1 - group["momentum"])
                ahead = p.grad.lerp(momentum, group["momentum"])
                p.mul_(1 - group["lr"] * group["weight_decay"])
                for matrix, change in zip(_split(p, group), _split(ahead, group), strict=True):
                    by_shape.setdefault(tuple(matrix.shape), []).append((matrix, change))
            for (rows, columns), pairs in by_shape.items():
                # Matrices of one shape go through the iteration together: one batched product instead of many small.
                change = orthogonalise(torch.stack([change for _, change in pairs]).bfloat16())
                rate = group["lr"] * max(1.0, rows / columns) ** 0.5
                for (matrix, _), direction in zip(pairs, change, strict=True):
                    matrix.add_(direction, alpha=-rate)


def _split(p: Tensor, group: dict[str, Any]) -> tuple[Tensor, ...]:
    """Views of `p` as (out, in) matrices."""
    matrix = p.mT if group["transposed"] else p
    return tuple(matrix.chunk(group["fused"], dim=0))


class Optimiser:
    """Muon and AdamW stepped together under one schedule."""

    def __init__(
        self,
        network: torch.nn.Module,
        in_block: Callable[[str], bool],
        *,
        muon_rate: float,
        adamw_rate: float,
        weight_decay: float,
        clip: float,
    ) -> None:
        self.clip, self.parameters = clip, [p for p in network.parameters() if p.requires_grad]
        muon: dict[tuple[bool, int], list[Tensor]] = {}
        decayed: list[Tensor] = []
        plain: list[Tensor] = []
        transposed = {f"{m}.weight" for m, module in network.named_modules() if type(module).__name__ == "Conv1D"}
        for name, p in network.named_parameters():
            if not p.requires_grad:
                continue
            if muon_rate and p.ndim == 2 and in_block(name):
                muon.setdefault((name in transposed, 3 if name.endswith("c_attn.weight") else 1), []).append(p)
            else:
                (decayed if p.ndim >= 2 else plain).append(p)
        adamw = [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]
        self.parts: list[torch.optim.Optimizer] = [
            torch.optim.AdamW([g for g in adamw if g["params"]], lr=adamw_rate, betas=(0.9, 0.98), fused=True)
        ]
        if muon:
            groups = [{"params": ps, "transposed": t, "fused": f} for (t, f), ps in muon.items()]
            self.parts.append(Muon(groups, lr=muon_rate, momentum=0.95, weight_decay=weight_decay))
        self.peaks = [[group["lr"] for group in part.param_groups] for part in self.parts]

    def step(self, scale: float) -> None:
        """One step at `scale` times the peak rates, from gradients that are cleared afterwards."""
        torch.nn.utils.clip_grad_norm_(self.parameters, self.clip)
        for part, peaks in zip(self.parts, self.peaks, strict=True):
            for group, peak in zip(part.param_groups, peaks, strict=True):
                group["lr"] = peak * scale
            part.step()
            part.zero_grad(set_to_none=True)

    def state(self) -> list[dict[str, Any]]:
        return [part.state_dict() for part in self.parts]

    def load(self, states: list[dict[str, Any]]) -> None:
        for part, state in zip(self.parts, states, strict=True):
            part.load_state_dict(state)


def rate_scale(step: int, steps: int | None, *, warmup: int, decay: float) -> float:
    """Share of the peak rate at `step` of `steps`, in (0, 1]: up over `warmup`, constant, down to 0 over the last
    `decay` of the run. `steps` may be None while a run timed by the clock is before its decay."""
    up = min(1.0, (step + 1) / warmup) if warmup else 1.0
    if steps is None:
        return up
    return min(up, (steps - step) / max(1.0, decay * steps))
