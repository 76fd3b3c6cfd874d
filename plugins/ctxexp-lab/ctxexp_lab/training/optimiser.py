"""Muon for the matrices of the blocks, AdamW for everything else, and a warm-up, constant, linear-decay schedule.

Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/) replaces a matrix's momentum by the nearest
semi-orthogonal matrix. On a CPU it learns more per minute than AdamW alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor


class Optimiser:
    """Muon and AdamW stepped together under one schedule."""

    def __init__(
        self,
        network: torch.nn.Module,
        *,
        muon_rate: float,
        adamw_rate: float,
        weight_decay: float,
        clip: float,
    ) -> None:
        self.clip, self.parameters = clip, [p for p in network.parameters() if p.requires_grad]
        self.matrices: list[tuple[Tensor, Callable[[Tensor], tuple[Tensor, ...]], tuple[Tensor, ...]]] = []
        decayed: list[Tensor] = []
        plain: list[Tensor] = []
        transposed = {f"{m}.weight" for m, module in network.named_modules() if type(module).__name__ == "Conv1D"}
        for name, p in network.named_parameters():
            if not p.requires_grad:
                continue
            if muon_rate and p.ndim == 2 and (".layer." in name or ".h." in name):
                split = partial(_matrices, transposed=name in transposed, n=3 if name.endswith("c_attn.weight") else 1)
                self.matrices.append((p, split, split(p.detach())))
            else:
                (decayed if p.ndim >= 2 else plain).append(p)
        adamw = [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]
        self.parts: list[torch.optim.Optimizer] = [
            torch.optim.AdamW([g for g in adamw if g["params"]], lr=adamw_rate, betas=(0.9, 0.98), fused=True)
        ]
        if self.matrices:
            views = [view for _, _, each in self.matrices for view in each]
            self.parts.append(torch.optim.Muon(views, lr=muon_rate, momentum=0.95, weight_decay=weight_decay))
        self.peaks = [[group["lr"] for group in part.param_groups] for part in self.parts]

    def step(self, scale: float) -> None:
        """One step at `scale` times the peak rates, from gradients that are cleared afterwards."""
        torch.nn.utils.clip_grad_norm_(self.parameters, self.clip)
        for weight, split, views in self.matrices:
            if weight.grad is not None:
                for view, gradient in zip(views, split(weight.grad), strict=True):
                    view.grad = gradient
        for part, peaks in zip(self.parts, self.peaks, strict=True):
            for group, peak in zip(part.param_groups, peaks, strict=True):
                group["lr"] = peak * scale
            part.step()
            part.zero_grad(set_to_none=True)
        for weight, _, _ in self.matrices:
            weight.grad = None

    def state(self) -> list[dict[str, Any]]:
        return [part.state_dict() for part in self.parts]

    def load(self, states: list[dict[str, Any]]) -> None:
        for part, state in zip(self.parts, states, strict=True):
            part.load_state_dict(state)


def _matrices(weight: Tensor, *, transposed: bool, n: int) -> tuple[Tensor, ...]:
    """Views of a weight as the n (out, in) matrices that lie in it side by side; `transposed` if stored (in, out)."""
    return (weight.mT if transposed else weight).chunk(n, dim=0)


def rate_scale(step: int, steps: int | None, *, warmup: int, decay: float) -> float:
    """Share of the peak rate at `step` of `steps`, in (0, 1]: up over `warmup` steps, constant, down to 0 over the last
    `decay` of the run. `steps` may be None while a run timed by the clock is before its decay."""
    up = min(1.0, (step + 1) / warmup) if warmup else 1.0
    if steps is None:
        return up
    return min(up, (steps - step) / max(1.0, decay * steps))
