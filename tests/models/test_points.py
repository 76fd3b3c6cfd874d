"""Points inside a block: what attention and the feed-forward network add, as transformers' own modules give it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from ctxexp import Sentence
from ctxexp.errors import ConfigError, ModelError
from ctxexp.models.transformer.block_points import FAMILIES, BlockMap
from tests import tiny_models
from tests.tiny_models import Folder, encoder

PRE_NORM = ("gpt2", "llama", "qwen2", "gpt_neox")  # whose last residual is before a final norm
SENTENCES = [Sentence.of(text.split()) for text in ("the quick brown fox", "money in the bank", "unbelievable")]


def read(folder: Path, point: str, *, final_norm: bool = True) -> list[torch.Tensor]:
    """Layers of each sentence, (layers, pieces, dim)."""
    encoded = encoder(folder, point=point, pooling="pieces", final_norm=final_norm)
    return [torch.from_numpy(one.layers.copy()) for one in encoded.encode(SENTENCES)]


# Of a block's modules: what mlp makes of the residual x before the block and what attention added; the next residual.
BY_HAND = {
    "gpt2": ("h", lambda b, x, a: b.mlp(b.ln_2(x + a)), lambda b, x, a, m: x + a + m),
    "llama": ("layers", lambda b, x, a: b.mlp(b.post_attention_layernorm(x + a)), lambda b, x, a, m: x + a + m),
    "qwen2": ("layers", lambda b, x, a: b.mlp(b.post_attention_layernorm(x + a)), lambda b, x, a, m: x + a + m),
    "gpt_neox": ("layers", lambda b, x, a: b.mlp(b.post_attention_layernorm(x)), lambda b, x, a, m: x + a + m),
    "bert": (
        "encoder.layer",
        lambda b, x, a: b.output.dense(b.intermediate(b.attention.output.LayerNorm(x + a))),
        lambda b, x, a, m: b.output.LayerNorm(b.attention.output.LayerNorm(x + a) + m),
    ),
    "distilbert": (
        "transformer.layer",
        lambda b, x, a: b.ffn(b.sa_layer_norm(x + a)),
        lambda b, x, a, m: b.output_layer_norm(b.sa_layer_norm(x + a) + m),
    ),
}  # fmt: skip
BY_HAND["roberta"] = BY_HAND["bert"]


@pytest.mark.parametrize("kind", BY_HAND)
def test_the_parts_are_the_modules_own_and_add_up(tiny_model: Folder, kind: str) -> None:
    blocks, feed_forward, following = BY_HAND[kind]
    _, model = tiny_models.plain(tiny_model(kind))
    modules = [*model.get_submodule(blocks)]
    residual = read(tiny_model(kind), "residual", final_norm=kind not in PRE_NORM)
    for x, a, m in zip(residual, read(tiny_model(kind), "attention"), read(tiny_model(kind), "mlp"), strict=True):
        assert len(a) == len(m) == len(x) - 1 == len(modules)
        with torch.inference_mode():
            for i, block in enumerate(modules):
                torch.testing.assert_close(m[i], feed_forward(block, x[i], a[i]), atol=1e-4, rtol=1e-4)
                torch.testing.assert_close(x[i + 1], following(block, x[i], a[i], m[i]), atol=1e-4, rtol=1e-4)


def test_the_name_changes_only_inside_a_block(tiny_model: Folder) -> None:
    points = ("residual", "attention", "mlp")
    plain, (residual, attention, mlp) = (
        encoder(tiny_model("gpt2")), [encoder(tiny_model("gpt2"), point=point) for point in points]
    )  # fmt: skip
    assert plain.name == residual.name
    assert len({plain.name, attention.name, mlp.name}) == 3
    assert attention.layer_numbers == (1, 2)
    assert encoder(tiny_model("gpt2"), point="mlp", layers=[2]).layer_numbers == (2,)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("t5", {"point": "mlp"}, "is of the family 't5', whose blocks have no map of their parts; known: bert"),
        ("gpt2", {"point": "heads"}, "model.point='heads': no such choice"),
        ("gpt2", {"point": "mlp", "layers": [0, 1]}, "has layers 1 to 2 of model.point=mlp"),
    ],
)  # fmt: skip
def test_what_has_no_such_point_is_refused(
    tiny_model: Folder, kind: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        encoder(tiny_model(kind), **options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (BlockMap("h", "attn", "ln_2"), "in block 1 residual + attention + mlp isn't the next residual"),
        (BlockMap("h", "attention", "mlp"), "isn't built as its family is: GPT2Block has no attribute `attention`"),
    ],
)
def test_a_map_that_does_not_fit_is_refused(
    tiny_model: Folder, monkeypatch: pytest.MonkeyPatch, wrong: BlockMap, message: str
) -> None:
    from transformers import AutoModel

    from ctxexp.models.transformer.block_points import block_points

    model = AutoModel.from_pretrained(tiny_model("gpt2")).eval()
    monkeypatch.setitem(FAMILIES, "gpt2", wrong)
    with pytest.raises(ModelError, match=re.escape(message)):
        block_points(model, "mlp", "mine")
