"""A model keeps the hidden states of the layers that are asked for, and no others: less memory, the same vectors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel

from ctxexp import Sentence
from ctxexp.models.transformer.facts import ForwardPass, model_facts
from tests.tiny_models import encoder

ROOT = Path(__file__).parents[2]
TEXT = [Sentence.of(["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"])] * 3


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from live_bytes import PeakBytes

    return PeakBytes


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_only_the_layers_that_are_asked_for_are_kept(kind: str, folder: Callable[[str], Path]) -> None:
    full, last = (encoder(folder(kind), layers=layers) for layers in (None, (2,)))
    assert np.array_equal(next(last.encode(TEXT)).layers[0], next(full.encode(TEXT)).layers[2])
    assert kept(last._forward(torch.arange(3, 9)[None])) == [2]


HEADS = {"vocab_size": 50, "num_attention_heads": 2, "hidden_size": 16}
WITHOUT_A_LIST = {  # what transformers 5.23 keeps all the hidden states of, whatever list it is given
    "mpnet": {**HEADS, "intermediate_size": 32, "num_hidden_layers": 24},
    "gptj": {"vocab_size": 50, "n_head": 2, "n_embd": 16, "n_layer": 24, "rotary_dim": 4},
}


@pytest.mark.parametrize("kind", WITHOUT_A_LIST)
def test_hooks_keep_layers_where_a_model_takes_no_list(kind: str, traced: Any) -> None:
    """Two of 24 layers: the same to the bit, twenty states less at the peak."""
    model = AutoModel.from_config(AutoConfig.for_model(kind, **WITHOUT_A_LIST[kind])).eval()
    ids, peaks, outs = torch.arange(3, 11).repeat(64, 1), [], []
    for layers in (None, (0, 7, 24)):
        forward = ForwardPass(model, model_facts(model), layers)
        with traced() as own, torch.inference_mode():
            outs.append(forward(ids))
        peaks.append(own.peak)
    assert kept(outs[1]) == [0, 7, 24]
    for layer in (0, 7, 24):
        assert torch.equal(outs[1].hidden_states[layer], outs[0].hidden_states[layer])
    assert peaks[0] - peaks[1] >= 20 * outs[0].last_hidden_state.numel() * 4
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_all_layers_are_kept_where_hooks_can_t_tell_them() -> None:
    """A block that is called several times gives several layers."""
    model = AutoModel.from_config(AutoConfig.for_model("albert", **HEADS, embedding_size=8, num_hidden_layers=3)).eval()
    facts = model_facts(model)
    assert (facts.n_layers, facts.sources, facts.is_hooked) == (4, {}, False)
    assert kept(ForwardPass(model, facts, (2,))(torch.arange(3, 9)[None])) == [0, 1, 2, 3]


def kept(out: Any) -> list[int]:
    return [i for i, one in enumerate(out.hidden_states) if one is not None]


@pytest.mark.nightly
def test_the_benchmark_of_gpus_runs_on_a_processor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import gpu

    gpu.main(["--tiny", "--minutes", "0.01", "--sentences", "30", "--device", "cpu"])
    said = capsys.readouterr().out
    for line in ("bare forward pass, pieces a second", "overlap", "the last layer alone", "one pass", "default sweep"):
        assert said.count(line) >= 2, line
    shape = gpu.SHAPES["12 x 768"]
    assert shape.products(128) == pytest.approx(12 * (12 * 768**2 + 2 * 128 * 768))
    if not torch.cuda.is_available():
        with pytest.raises(SystemExit):
            gpu.main(["--device", "cuda"])
        assert "sees no GPU here" in capsys.readouterr().err
    assert "gpu" in sys.modules
