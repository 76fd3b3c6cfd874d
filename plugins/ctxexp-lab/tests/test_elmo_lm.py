"""The biLM loss and the recurrence's gradient against word-by-word references."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from ctxexp_lab.training.elmo_lm import BiLanguageModel, scan_with_gradient
from torch import Tensor

from ctxexp.models import ElmoNetwork
from ctxexp.models.elmo.encoder import character_ids
from tests.tiny_models import elmo_options

OPTIONS = elmo_options()
WORDS = ["<S>", "</S>", "the", "cat", "sat", "on", "a", "mat"]


def model() -> BiLanguageModel:
    generator = torch.Generator().manual_seed(0)
    lm = BiLanguageModel(ElmoNetwork(OPTIONS, generator=generator), len(WORDS), generator=generator)
    with torch.no_grad():
        lm.bias.copy_(torch.randn(len(WORDS), generator=generator))
    return lm.eval()


def batch() -> tuple[Tensor, Tensor, Tensor]:
    """Unique words' characters, their places, and the word ids."""
    ids = torch.tensor([[0, 2, 3, 4, 5, 1], [0, 6, 7, 4, 2, 1], [0, 3, 3, 2, 6, 1]])
    return torch.from_numpy(character_ids(WORDS)), ids, ids


def steps(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    project: Tensor,
    c: Tensor,
    m: Tensor,
    length: int,
    clips: tuple[float, float],
) -> list[Tensor]:
    """One direction, one sentence, one step at a time; autograd does the rest."""
    outputs = []
    for t in range(length):
        i, j, f, o = (torch.cat([x[t], m]) @ weight + bias).chunk(4)
        c = (torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(j)).clamp(-clips[0], clips[0])
        m = ((torch.sigmoid(o) * torch.tanh(c)) @ project).clamp(-clips[1], clips[1])
        outputs.append(m)
    return outputs


@pytest.mark.parametrize("sizes", [[4, 4, 4, 4, 4], [4, 3, 3, 1, 1]], ids=["equal", "mixed"])
@pytest.mark.parametrize("clips", [(3.0, 3.0), (0.4, 0.3), (math.inf, math.inf)], ids=str)
def test_the_recurrence_and_its_gradient_equal_single_steps(sizes: Sequence[int], clips: tuple[float, float]) -> None:
    random = partial_randn(1)
    x, c, m = random(2, 5, 4, 3), random(2, 4, 6), random(2, 4, 2)
    learned = [random(2, 5, 24), random(2, 24), random(2, 6, 2)]
    inputs = [x, *learned]
    for tensor in inputs:
        tensor.requires_grad_()
    outputs, last_c, last_m = scan_with_gradient(x, (learned[0], learned[1], learned[2]), (c, m), sizes, clips)
    lengths = [sum(size > k for size in sizes) for k in range(4)]
    expected = torch.zeros_like(outputs)
    for d in range(2):
        for k, length in enumerate(lengths):
            own = [tensor[d] for tensor in learned]
            for t, value in enumerate(steps(x[d, :, k], *own, c[d, k], m[d, k], length, clips)):
                expected[d, t, k] = value
    torch.testing.assert_close(outputs, expected)
    torch.testing.assert_close(last_m, torch.stack([outputs[:, n - 1, k] for k, n in enumerate(lengths)], dim=1))
    with torch.no_grad():
        quick, quick_c, _ = scan_with_gradient(x, (learned[0], learned[1], learned[2]), (c, m), sizes, clips)
    torch.testing.assert_close(quick, outputs)
    torch.testing.assert_close(quick_c, last_c)
    direction = random(2, 5, 4, 2)
    found = torch.autograd.grad((outputs * direction).sum(), inputs)
    wanted = torch.autograd.grad((expected * direction).sum(), inputs)
    for got, want in zip(found, wanted, strict=True):
        torch.testing.assert_close(got, want)
    clipped = (outputs.abs() == clips[1]).double().mean()
    assert (clipped > 0.1) == (clips[1] < 1)  # the tight clips do act


def partial_randn(seed: int) -> Callable[..., Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_the_loss_equals_a_loop_over_words() -> None:
    lm = model().double()
    characters, index, targets = batch()
    layers = lm.network(characters, index)[-1]  # (n_sentences, n_steps, 2 * projection)
    forward, backward = [], []
    for sentence, ids in zip(layers, targets.tolist(), strict=True):
        for k, word in enumerate(ids):
            if k > 0:  # log p(t_k | t_<k)
                forward.append(-torch.log_softmax(lm.weight @ sentence[k - 1, :5] + lm.bias, dim=0)[word])
            if k < len(ids) - 1:  # log p(t_k | t_>k)
                backward.append(-torch.log_softmax(lm.weight @ sentence[k + 1, 5:] + lm.bias, dim=0)[word])
    expected = torch.stack([torch.stack(forward).mean(), torch.stack(backward).mean()])
    torch.testing.assert_close(lm(characters, index, targets), expected)


def test_sampled_softmax_converges_to_the_full_one() -> None:
    lm = model().double()
    full = lm(*batch())
    generator = torch.Generator().manual_seed(0)
    torch.testing.assert_close(lm(*batch(), samples=400_000, generator=generator), full, atol=5e-3, rtol=0)
    few = [lm(*batch(), samples=4, generator=torch.Generator().manual_seed(s)) for s in (1, 1, 2)]
    assert torch.equal(few[0], few[1])
    assert not torch.equal(few[0], few[2])
    few[0].mean().backward()
    assert all(torch.isfinite(p.grad).all() for p in lm.parameters() if p.grad is not None)
