"""The penalties on cosines: against double loops and finite differences, and in a training."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ctxexp_lab.training.data import MASK, SPECIAL
from ctxexp_lab.training.train import TrainingRun
from ctxexp_lab.training.transformer import APART, context_penalty, mean_cosine, unrelated_cosine

from .tiny_recipes import config

ROWS = ("model.rows=16", "precision=float32")


TEXT = np.random.default_rng(0).random((7, 3)) < 0.67  # of the vectors (7, 3, 4), those of pieces of text


def cosine_of_unrelated(x: np.ndarray) -> float:
    rows = [(i, x[i, j] / np.linalg.norm(x[i, j])) for i, j in np.argwhere(TEXT)]
    pairs = [float(a @ b) for (i, a), (j, b) in itertools.product(rows, rows) if abs(i - j) >= APART]
    return float(np.mean(pairs))


def cosine_of_rows(w: np.ndarray) -> float:
    u = w / np.linalg.norm(w, axis=1, keepdims=True)
    return sum(float(a @ b) for i, a in enumerate(u) for j, b in enumerate(u) if i != j) / len(w) ** 2


@pytest.mark.parametrize(
    ("penalty", "naive", "shape"),
    [
        (lambda x: unrelated_cosine(x, torch.from_numpy(TEXT)), cosine_of_unrelated, (7, 3, 4)),
        (mean_cosine, cosine_of_rows, (6, 4)),
    ],
    ids=["of unrelated pieces in context", "of the rows of a table"],
)
def test_a_penalty_and_its_gradient_are_the_definition_s(penalty: Any, naive: Any, shape: tuple[int, ...]) -> None:
    """In O(N), against a double loop and its finite differences."""
    x = np.random.default_rng(1).normal(size=shape) * [3.0, 1, 1, 0.5] + [1.0, 0, 0, 0]
    tensor = torch.from_numpy(x).requires_grad_()
    value = penalty(tensor)
    value.backward()
    assert value.item() == pytest.approx(naive(x), abs=1e-6)
    for at in itertools.product((0, 3, 5), *(range(n) for n in shape[1:])):
        step = np.zeros(shape)
        step[at] = 1e-5
        slope = (naive(x + step) - naive(x - step)) / 2e-5
        assert tensor.grad[at].item() == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize("model", ["bert", "gpt2"])
def test_the_loss_has_the_mean_over_layers(model: str, text: Path, tmp_path: Path) -> None:
    plain = TrainingRun(config(model, text, tmp_path / "a", "steps=9", *ROWS)).learner
    fined = TrainingRun(config(model, text, tmp_path / "b", "steps=9", *ROWS, "context_penalty=2.0")).learner
    read = []
    plain.base.register_forward_pre_hook(lambda _, args: read.append(args[0]))
    loss = plain.loss(2, 9)
    hidden = plain.base(read[0], output_hidden_states=True).hidden_states[1:]
    extra = context_penalty(hidden, read[0] >= len(SPECIAL))
    assert (MASK in read[0]) == (model == "bert")
    assert fined.loss(2, 9).item() == pytest.approx((loss + 2 * extra).item(), rel=1e-5)
