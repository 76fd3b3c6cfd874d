"""A normalising flow: Glow's multi-scale form (Kingma and Dhariwal 2018) with additive couplings (Dinh et al. 2015).

The network of BERT-flow (Li et al. 2020, section 3.2 and appendix): per step an actnorm, a fixed random permutation of
the columns, and a coupling that keeps the volume; half of the columns leave after each level; base N(0, I) for all.
Torch is imported here: import this module where a flow is fitted, not before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

LOG_2PI = math.log(2 * math.pi)


class Step(nn.Module):
    """One step of flow (n, c) -> (n, c), invertible.

    Actnorm `y = x exp(s) + b`; permutation of columns; coupling: the first half of the columns, rounded up, is kept
    and shifts the others by a network of it. That network has 3 layers with ReLU between, c/2 -> width -> width -> c/2,
    the last one starting at zero. In the paper it is a convolution over an image of 1x1 "pixels": the same function.
    """

    order: Tensor

    def __init__(self, columns: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.same = same = columns - columns // 2
        shifted = columns // 2
        self.log_scale = _zeros(columns)
        self.offset = _zeros(columns)
        self.w1, self.b1 = _normal(same, width, generator), _zeros(width)
        self.w2, self.b2 = _normal(width, width, generator), _zeros(width)
        self.w3, self.b3 = _zeros(width, shifted), _zeros(shifted)
        self.register_buffer("order", torch.randperm(columns, generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.addcmul(self.offset, x, self.log_scale.exp()).index_select(1, self.order)
        same, shifted = x[:, : self.same], x[:, self.same :]
        return torch.cat([same, shifted + self._shift(same)], dim=1)

    def _shift(self, same: Tensor) -> Tensor:
        first = torch.addmm(self.b1, same, self.w1).relu_()
        second = torch.addmm(self.b2, first, self.w2).relu_()
        return torch.addmm(self.b3, second, self.w3)


class AdditiveFlow(nn.Module):
    """Rows x (n, d) to rows z (n, d) that are to be N(0, I), exactly invertible.

    A level has `depth` steps; after each but the last the first half of its columns, rounded up, goes on to the next
    level and the others are done, so that z holds the last level's columns first. Glow learns a prior for the columns
    that leave; here, as in BERT-flow, theirs is N(0, I) too. Raises ValueError if `dim` has too few columns.
    """

    center: Tensor

    def __init__(self, dim: int, *, levels: int, depth: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.depth = depth
        self.columns = [dim]  # that each level works on
        for _ in range(levels - 1):
            self.columns.append(self.columns[-1] - self.columns[-1] // 2)
        if self.columns[-1] < 2:
            raise ValueError(f"{levels} levels leave {self.columns[-1]} of {dim} columns to the last; it needs 2")
        self.steps = nn.ModuleList(Step(c, width, generator) for c in self.columns for _ in range(depth))
        # The rows' mean, subtracted before the first actnorm: part of its offset, kept apart for the digits.
        self.register_buffer("center", torch.zeros(dim, dtype=torch.float32))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """z (n, d), and the log of |det dz/dx|, in nats: one number for all rows, since couplings keep the volume."""
        z = self._through(x - self.center, lambda step, rows: step(rows))
        return z, torch.cat([step.log_scale for step in self._steps()]).sum()

    def loss(self, x: Tensor) -> Tensor:
        """Mean negative log-likelihood of rows, in nats a dimension: (|z|^2 / 2 + d log(2 pi) / 2 - log det) / d."""
        z, log_det = self(x)
        return 0.5 * (z.square().mean() + LOG_2PI) - log_det / z.shape[1]

    @torch.no_grad()
    def initialise(self, x: Tensor) -> None:
        """Set every actnorm so that its output on these rows (n, d) has mean 0 and variance 1, column by column.

        A column that holds one value becomes 0. Statistics in float64.
        """

        def initialised(step: Step, rows: Tensor) -> Tensor:
            mean, spread = _mean_and_spread(rows)
            scale = torch.where(spread > 0, 1 / spread, 1.0)
            step.log_scale.copy_(scale.log())
            step.offset.copy_(-mean * scale)
            return step(rows)

        self.center.copy_(_mean_and_spread(x)[0])
        self._through(x - self.center, initialised)

    def _through(self, x: Tensor, call: Callable[[Step, Tensor], Tensor]) -> Tensor:
        done: list[Tensor] = []  # columns that have left, the latest first
        for i, step in enumerate(self._steps()):
            if i and i % self.depth == 0:
                c = step.log_scale.numel()
                done.insert(0, x[:, c:])
                x = x[:, :c]
            x = call(step, x)
        return torch.cat([x, *done], dim=1) if done else x

    def _steps(self) -> Iterator[Step]:
        yield from self.steps  # type: ignore[misc]


def likelihood_steps(flow: AdditiveFlow, batches: Iterable[Tensor], *, rate: float) -> Iterator[float]:
    """Train by maximum likelihood with Adam, a step a batch: yields each batch's loss before its step.

    Losses are in nats a dimension. A batch whose loss isn't finite is not learnt from.
    """
    adam = torch.optim.Adam(flow.parameters(), lr=rate, fused=True)
    for x in batches:
        loss = flow.loss(x)
        if loss.isfinite():
            loss.backward()  # type: ignore[no-untyped-call]  # torch's is untyped
            adam.step()
            adam.zero_grad()
        yield float(loss.detach())


def _mean_and_spread(x: Tensor) -> tuple[Tensor, Tensor]:
    """Column means and standard deviations, float64, exact for columns that hold one value."""
    first = x[:1].double()
    offset = x.double() - first
    mean = offset.mean(dim=0)
    return first[0] + mean, (offset - mean).square().mean(dim=0).sqrt()


def _zeros(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape, dtype=torch.float32))


def _normal(fan_in: int, fan_out: int, generator: torch.Generator) -> nn.Parameter:
    """N(0, 2 / fan_in): keeps the spread through a ReLU (He et al. 2015); drawn without torch's global generator."""
    sample = torch.randn(fan_in, fan_out, dtype=torch.float32, generator=generator)
    return nn.Parameter(sample * math.sqrt(2 / fan_in))
