"""Mixes of layers: which layers, how weighted, and every mistake named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ctxexp.errors import ConfigError
from ctxexp.vectors.stores import layer_mixes, mix_layers
from tests.engine import Space


@pytest.mark.parametrize(
    ("chosen", "layers", "named"),
    [
        ("last2", (11, 12), "last2: layers 11, 12"),
        ("first_last", (1, 12), "first_last: layers 1, 12"),
        ("flow_paper_last2", (1, 12), "flow_paper_last2: layers 1, 12"),
        ([1, 12], (1, 12), "layers_1_12: layers 1, 12"),
        ([0], (0,), "layers_0: layer 0"),
        ([4, 0, 2], (4, 0, 2), "layers_4_0_2: layers 4, 0, 2"),
    ],
    ids=str,
)
def test_a_mix_is_the_mean_of_its_layers(chosen: Any, layers: tuple[int, ...], named: str) -> None:
    stack = np.random.default_rng(0).standard_normal((13, 5, 4))
    stack[:, 2] = np.nan  # a sentence without a vector has none in a mix
    (mix,) = layer_mixes([chosen], 13)
    assert (mix.layers, str(mix)) == (layers, named)
    found = mix_layers(Space(stack.astype(np.float32)), mix)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.mean([stack[i] for i in layers], axis=0), rtol=1e-6, atol=1e-6)


def test_the_scalar_mix_is_elmos() -> None:
    """gamma sum_j softmax(w)_j h_j with gamma 1 (Peters et al. 2018, equation 1)."""
    stack = np.random.default_rng(1).standard_normal((3, 6, 4))
    for weights in (None, [0.3, -1.0, 2.0]):
        (mix,) = layer_mixes(["scalar_mix" if weights is None else {"scalar_mix": weights}], 3)
        s = np.exp(weights or [0.0, 0.0, 0.0])
        expected = np.tensordot(s / s.sum(), stack.astype(np.float32), axes=1)
        np.testing.assert_allclose(mix_layers(Space(stack.astype(np.float32)), mix), expected, rtol=1e-6, atol=1e-6)
    assert str(mix) == "scalar_mix: layers 0, 1, 2 weighted 0.148, 0.0404, 0.811"


def test_a_shallow_model_has_what_its_layers_allow() -> None:
    assert [m.layers for m in layer_mixes(["last2", "first_last"], 2)] == [(0, 1), (1,)]
    with pytest.raises(ConfigError, match="last2 needs layers above the input layer; the model has layer 0 only"):
        layer_mixes(["last2"], 1)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([[1, -1]], r"no layer -1 \(in \[1, -1\]\): the model has layers 0 to 4; its last is 4"),
        ([[5]], r"no layer 5 \(in \[5\]\): the model has layers 0 to 4$"),
        (["last2", "last2"], "last2 is there twice"),
        ([{"scalar_mix": [1, 2]}], "scalar_mix has 2 weights; the model has 5 layers"),
    ],
    ids=str,
)
def test_mistakes_are_named(chosen: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        layer_mixes(chosen, 5)
