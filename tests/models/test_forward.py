"""Facts about a model are found by what moves its vectors: what its layers are, what sees what, what it can't tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as tr

import ctxexp
from ctxexp import Sentence
from ctxexp.errors import ConfigError, ModelError
from tests import tiny_models

WORDS = [
    "the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog",
    "and", "the", "money", "in", "the", "bank", "by", "the", "river",
]  # fmt: skip
SHAPE = {**tiny_models.SHAPE, "max_position_embeddings": 32}
ENDS = {"pad_token_id": 1, "bos_token_id": 3, "eos_token_id": 3}
OPT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 32, "word_embed_proj_dim": 8}
OPT |= {"do_layer_norm_before": False}
GPT2 = {"n_positions": 64, "n_embd": 16, "n_layer": 2, "n_head": 2}
T5 = {"d_model": 16, "num_layers": 2, "num_heads": 2, "d_kv": 8, "d_ff": 32}


def network(kind: str, tokenizer: Callable[[], Any] = tiny_models.byte_level, **settings: Any) -> Any:
    """A small model of that type with a row for each of the tokenizer's pieces."""
    config = tr.AutoConfig.for_model(kind, vocab_size=tokenizer()[0].get_vocab_size(), **(ENDS | settings))
    return tr.AutoModel.from_config(config)


def save(network: Any, folder: Path, tokenizer: Callable[[], Any] = tiny_models.byte_level) -> Path:
    """The network with large weights, all of which differ, beside the tokenizer."""
    tiny_models.fast(*tokenizer()).save_pretrained(folder)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=generator)) if weight.ndim == 1 else None
            weight.mul_(3) if weight.ndim > 1 and "norm" not in name else None
    network.eval().save_pretrained(folder)
    return folder


def read(encoder: Any, words: list[str] = WORDS) -> np.ndarray:
    """Layers of each piece."""
    (one,) = encoder.encode([Sentence.of(words)])
    return np.asarray(one.layers)


def hidden(model: Any, encoder: Any, words: list[str] = WORDS) -> np.ndarray:
    """transformers' own hidden states of all pieces, the last one's in the place of the last layer."""
    ids = torch.tensor([encoder.tokenizer.encode(" ".join(words)).ids])
    with torch.no_grad():
        out = model.eval()(input_ids=ids, output_hidden_states=True, return_dict=True)
    states = list(out.get("hidden_states")[:-1]) + ([out[0]] if "last_hidden_state" in out else [out.hidden_states[-1]])
    if states[-1].shape != states[0].shape:
        return states[-1].numpy()
    return torch.cat(states).numpy()


def pieces(folder: Path, **choices: Any) -> Any:
    return tiny_models.encoder(folder, pooling="pieces", **choices)


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


def test_layers_are_what_enters_the_blocks_and_leaves_the_last(tmp_path: Path) -> None:
    """Not what a projection makes of that; other kinds are in tests/test_architectures.py."""
    model, seen = network("opt", **OPT), list[torch.Tensor]()
    encoder = pieces(save(model, tmp_path))
    for block in (blocks := model.get_submodule("decoder.layers")):
        block.register_forward_pre_hook(lambda _, args: seen.append(args[0][0]))
    blocks[-1].register_forward_hook(lambda _, __, out: seen.append(out[0]))
    assert hidden(model, encoder)[-1].shape != seen[-1].shape
    assert relative(read(encoder), torch.stack(seen).numpy()) < 1e-5


def test_an_encoder_alone_is_read_by_the_name_of_the_whole(tmp_path: Path) -> None:
    """No decoder is asked for."""
    folder = save(tr.T5EncoderModel(network("t5", tiny_models.unigram, **T5).config), tmp_path, tiny_models.unigram)
    alone = read(pieces(folder))
    tiny_models.edit(folder, architectures=["T5ForConditionalGeneration"], is_encoder_decoder=True)
    assert np.array_equal(read(pieces(folder)), alone)


def test_a_model_is_afterwards_what_it_was(tmp_path: Path) -> None:
    """BigBird reads short texts with full attention, and would so read each long one behind the first."""
    sparse = {"block_size": 4, "num_random_blocks": 1, "max_position_embeddings": 128}
    encoder = pieces(save(model := network("big_bird", **(SHAPE | sparse)), tmp_path))
    long, short = WORDS * 3, WORDS[:4]
    first = read(encoder, long)
    read(encoder, short)
    assert np.array_equal(read(encoder, long), first)
    assert encoder.model.attention_type == "block_sparse"
    assert relative(first, hidden(model, encoder, long)) < 1e-5


def test_the_caller_s_model_and_tokenizer_stay_as_they_are() -> None:
    model, tokenizer = network("gpt2", **GPT2).train(), tiny_models.fast(*tiny_models.byte_level())
    tokenizer.backend_tokenizer.enable_truncation(8)
    tokenizer.backend_tokenizer.enable_padding(length=16)
    before = tokenizer.backend_tokenizer.to_str()
    encoder = ctxexp.from_transformers(model, tokenizer, final_norm=False)
    first = read(encoder)
    assert not model.ln_f._forward_pre_hooks
    assert np.array_equal(read(encoder), first)  # no dropout
    with pytest.raises(ConfigError, match="no layer 9"):
        ctxexp.from_transformers(model, tokenizer, layers=[9])
    assert tokenizer.backend_tokenizer.to_str() == before
    assert model.config.use_cache
    assert all(module.training for module in model.modules())


class Faulty(tr.GPT2Model):
    """A model that reads as GPT-2 does, but for one fault."""

    fault = ""

    def forward(self, input_ids: torch.Tensor, **choices: Any) -> Any:
        x = self.wte(input_ids)
        if self.fault == "beside":
            x = x + x.mean(0, keepdim=True)
        if self.fault == "alone":
            return tr.modeling_outputs.BaseModelOutput(x, (x, x, x))
        return super().forward(inputs_embeds=x, **choices)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("alone", "no piece's vector depends on the pieces before it"),
        ("beside", "depend on the sentences beside it, or on chance"),
    ],
)
def test_vectors_that_depend_on_the_wrong_things_are_refused(fault: str, words: str) -> None:
    model, tokenizer = Faulty(network("gpt2", **GPT2).config), tiny_models.fast(*tiny_models.byte_level())
    assert ctxexp.from_transformers(model, tokenizer).causal  # type: ignore[attr-defined]
    model.fault = fault
    with pytest.raises(ModelError, match=rf"\(Faulty, a text model\) can't be read: .*{words}"):
        ctxexp.from_transformers(model, tokenizer)


def test_a_layer_0_that_depends_on_neighbours_is_left_out(tmp_path: Path) -> None:
    """MobileBERT joins the embeddings of three pieces."""
    folder = save(network("mobilebert", **SHAPE, embedding_size=16, intra_bottleneck_size=16), tmp_path)
    assert np.array_equal(read(pieces(folder, layers=[1, 2]))[1:], read(pieces(folder, layers=[2])))
