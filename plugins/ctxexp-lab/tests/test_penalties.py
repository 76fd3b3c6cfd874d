"""The penalty on contextual vectors: against a double loop and finite differences, and in a training."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from ctxexp_lab.training.data import MASK, SPECIAL
from ctxexp_lab.training.train import TrainingRun
from ctxexp_lab.training.transformer import APART, Transformer, context_penalty, unrelated_cosine

from .tiny_recipes import config

ROWS = ("model.rows=16", "precision=float32")


def states(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors (7, 3, 4) with a common direction, and a mask of two thirds of them."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(7, 3, 4)) * [3.0, 1, 1, 0.5] + [1.0, 0, 0, 0], rng.random((7, 3)) < 0.67


def naive_cosine(x: np.ndarray, is_text: np.ndarray) -> float:
    rows = [(i, x[i, j] / np.linalg.norm(x[i, j])) for i, j in np.argwhere(is_text)]
    pairs = [float(a @ b) for (i, a), (j, b) in itertools.product(rows, rows) if abs(i - j) >= APART]
    return float(np.mean(pairs))


def test_the_penalty_and_its_gradient_are_the_definition_s() -> None:
    x, is_text = states(0)
    tensor = torch.from_numpy(x).requires_grad_()
    value = unrelated_cosine(tensor, torch.from_numpy(is_text))
    value.backward()
    assert value.item() == pytest.approx(naive_cosine(x, is_text), abs=1e-6)
    for at in [(0, 0, 0), (3, 1, 2), (6, 2, 3)]:
        step = np.zeros_like(x)
        step[at] = 1e-5
        slope = (naive_cosine(x + step, is_text) - naive_cosine(x - step, is_text)) / 2e-5
        assert tensor.grad[at].item() == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize("model", ["bert", "gpt2"])
def test_the_loss_has_the_mean_over_layers(model: str, text: Path, tmp_path: Path) -> None:
    plain = TrainingRun(config(model, text, tmp_path / "a", "steps=9", *ROWS)).learner
    fined = TrainingRun(config(model, text, tmp_path / "b", "steps=9", *ROWS, "context_penalty=2.0")).learner
    assert isinstance(plain, Transformer)
    read: list[torch.Tensor] = []
    plain.base.register_forward_pre_hook(lambda _, args: read.append(args[0]))
    loss = plain.loss(2, 9)
    hidden = plain.base(read[0], output_hidden_states=True).hidden_states[1:]
    extra = context_penalty(hidden, read[0] >= len(SPECIAL))
    assert (MASK in read[0]) == (model == "bert")
    assert fined.loss(2, 9).item() == pytest.approx((loss + 2 * extra).item(), rel=1e-5)
