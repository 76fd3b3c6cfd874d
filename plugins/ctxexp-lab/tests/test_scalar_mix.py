"""Laws of ELMo's layer mix."""

from __future__ import annotations

import pytest
import torch
from ctxexp_lab.probe.scalar_mix import ScalarMix

from ctxexp.errors import ModelError


def layers(seed: int = 0) -> torch.Tensor:
    return torch.randn(3, 2, 5, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def mixed(weights: list[float], gamma: float = 1.0, **choices: bool) -> ScalarMix:
    mix = ScalarMix(3, **choices).double()
    with torch.no_grad():
        mix.w.copy_(torch.tensor(weights))
        mix.gamma.fill_(gamma)
    return mix


def test_it_starts_as_the_plain_mean_of_all_layers() -> None:
    torch.testing.assert_close(ScalarMix(3).double()(layers()), layers().mean(0))


def test_the_weights_are_positive_and_sum_to_one() -> None:
    s = mixed([3.0, -50.0, 0.5]).s
    assert (s > 0).all()
    assert float(s.sum().detach()) == pytest.approx(1)


def test_one_hot_weights_recover_a_layer_and_gamma_scales_it() -> None:
    for j in range(3):
        mix = mixed([1000.0 * (k == j) for k in range(3)], gamma=2.5)
        torch.testing.assert_close(mix(layers()), 2.5 * layers()[j])


def test_a_constant_added_to_all_weights_changes_nothing() -> None:
    torch.testing.assert_close(mixed([1.0, 2.0, 3.0])(layers()), mixed([8.0, 9.0, 10.0])(layers()))


def test_each_task_mixes_a_word_by_its_own_scalars() -> None:
    mix, x = mixed([0.1, 1.0, -1.0]), layers()
    torch.testing.assert_close(mix(x)[1, 3], mix(x[:, 1, 3]))


def test_layer_norm_undoes_shift_and_scale_of_a_layer() -> None:
    mix, x = mixed([0.3, 0.2, 0.1], layer_norm=True), layers()
    moved = x * torch.tensor([3.0, 0.1, 7.0])[:, None, None, None] + torch.tensor([1.0, -4.0, 0.0])[:, None, None, None]
    torch.testing.assert_close(mix(moved), mix(x))
    only = mixed([1000.0, 0.0, 0.0], layer_norm=True)(x)
    assert float(only.mean().detach()) == pytest.approx(0, abs=1e-12)
    assert float(only.var(correction=0).detach()) == pytest.approx(1)


def test_layer_norm_takes_only_masked_words_into_account() -> None:
    mix, x = mixed([0.3, 0.2, 0.1], layer_norm=True), layers()
    mask = torch.ones(2, 5, dtype=torch.bool)
    mask[1, 3:] = False
    noise = x.clone()
    noise[:, 1, 3:] = 1e3
    torch.testing.assert_close(mix(noise, mask)[mask], mix(x, mask)[mask])
    torch.testing.assert_close(mix(x, mask)[mask], mix(x[:, mask]))


def test_trainable_or_frozen() -> None:
    mix = ScalarMix(3)
    mix(layers().float()).square().sum().backward()
    assert mix.w.grad is not None
    assert float(mix.w.grad.sum()) == pytest.approx(0, abs=1e-4)  # softmax: only differences count
    assert mix.gamma.grad is not None
    assert not any(p.requires_grad for p in ScalarMix(3, trainable=False).parameters())


def test_messages() -> None:
    with pytest.raises(ModelError, match="weights for 3 layers, but got 2"):
        ScalarMix(3)(layers()[:2].float())
    with pytest.raises(ModelError, match="a scalar mix of 0 layers: expected at least 1"):
        ScalarMix(0)
