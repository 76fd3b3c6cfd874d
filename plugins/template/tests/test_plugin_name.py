"""The model and the metric keep their contracts, and a run finds them."""

from __future__ import annotations

from typing import Any

import ctxexp_plugin_name as plugin
import numpy as np
import pytest

from ctxexp import Corpus, Group
from ctxexp.testing import check


def test_the_model_keeps_the_laws_of_an_encoder() -> None:
    """Shapes, units, determinism, independence of batch and order, long and odd sentences ..."""
    check("model", plugin.PluginNameModel)


def test_the_metric_keeps_the_laws_of_a_metric() -> None:
    """Merging, order, blocks, lent memory, the invariances that it declares, degenerate groups ..."""
    check("metric", plugin.PluginNameSpread)


def test_a_layer_mixes_each_word_with_the_one_before() -> None:
    (encoded,) = plugin.PluginNameModel(layers=1, dim=8).encode(Corpus.of("test", [["river", "bank"]]).sentences)
    assert encoded.layers.shape == (2, 2, 8)
    river, bank = encoded.layers[0]
    assert encoded.layers[1, 1] == pytest.approx((2 * bank + river) / 3, abs=1e-6)


def test_the_name_changes_when_the_vectors_do() -> None:
    names = {plugin.PluginNameModel(layers=n, dim=d).name for n in (1, 2) for d in (8, 16)}
    assert len(names) == 4


def test_the_metric_on_lengths_with_a_known_answer() -> None:
    x = np.array([[3, 4], [0, 15], [0, 10]], np.float32)  # lengths 5, 15, 10
    metric = plugin.PluginNameSpread()
    metric.update(Group("bank", x))
    assert metric.compute()["raw"] == pytest.approx(np.std([5, 15, 10]) / 10)
    assert np.isnan(metric.score(np.zeros((3, 2), np.float32)))


def test_the_names_are_registered() -> None:
    offered: dict[str, Any] = {}
    plugin.register_models(offered.__setitem__)
    plugin.register_metrics(offered.__setitem__)
    assert offered["plugin_name"](dim=4).dim == 4
    assert isinstance(offered["plugin_name_spread"](sample=3), plugin.PluginNameSpread)
