"""The bench of architectures: a sample of kinds through it, a planted fault that it must see, and its page."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import architectures
from docs.numbers.marked import marked

PAGE = Path(__file__).resolve().parent.parent / "docs" / "architectures.md"
READ = {  # kind: network, whether it reads to the left only, its window
    "bert": ("BertModel", False, 40),
    "mamba": ("MambaModel", True, 0),
    "rwkv": ("RwkvModel", True, 40),
    "mpt": ("MptModel", True, 40),
    "xlm": ("XLMModel", False, 40),
    "t5": ("T5EncoderModel", False, 0),
    "dpr": ("DPRContextEncoder", False, 40),
    "mixtral": ("MixtralModel", True, 40),  # experts move the last bits of all pieces
    "qwen3_moe": ("Qwen3MoeModel", True, 40),
    "big_bird": ("BigBirdModel", False, 40),
    "opt": ("OPTModel", True, 40),
    "ibert": ("IBertModel", False, 38),
    "led": ("LEDModel", False, 40),
    "embedding_gemma2_text": ("EmbeddingGemma2TextModel", False, 40),  # some keys of its config are each layer's own
}
REFUSED = {
    "mra": ("MraModel", "no piece's vector depends on the pieces before it"),
    "funnel": ("FunnelModel", "expected one shape"),
    "clip": ("CLIPModel", "a model of image and text"),
    "vit": ("ViTModel", "is a vision model"),
    "wav2vec2": ("Wav2Vec2Model", "is an audio model (Wav2Vec2Model reads input_values)"),
    "canine": ("CanineModel", "has no table of pieces"),
    "mobilebert": ("MobileBertModel", "layer 0 is no word by itself; leave it out: model.layers=[1, 2]"),
}


@pytest.mark.parametrize("kind", READ)
def test_what_is_read_is_what_the_network_computes(kind: str) -> None:
    network, causal, window = READ[kind]
    row = architectures.examine(kind, network)
    assert (row["result"], row["reason"]) == ("read", "")
    assert row["by"] == ("blocks" if kind != "led" else "hidden states")  # LED's blocks read padding too
    assert (row["layers"], row["causal"], row["window"]) == (3, causal, window)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_can_t_be_read_is_refused_with_its_reason(kind: str) -> None:
    network, words = REFUSED[kind]
    row = architectures.examine(kind, network)
    assert row["result"] == "refused"
    assert words in row["reason"]


def test_layers_that_are_one_block_late_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(encoder: Any, *sentences: Any) -> list[np.ndarray]:
        return [np.array(one.layers)[[1, 1, 2]] for one in encoder.encode(sentences)]

    monkeypatch.setattr(architectures, "read", late)
    row = architectures.examine("gpt2", "GPT2Model")
    assert row["result"] == "fault"
    assert "layers" in row["reason"]


def test_the_page_has_every_kind_and_no_fault() -> None:
    with PAGE.with_suffix(".csv").open() as file:
        found = list(csv.DictReader(file))
    assert {row["type"] for row in found} >= {"bert", "mamba", "rwkv", "vit", "whisper"}
    assert not [row["type"] for row in found if row["result"] == "fault"]
    assert all(row["reason"] for row in found if row["result"] != "read")
    table = marked(PAGE, "architectures")
    assert f", {len(found)} networks." in table
    for result in ("read", "refused", "not made"):
        assert f"| {result} | {sum(row['result'] == result for row in found)} |" in table
