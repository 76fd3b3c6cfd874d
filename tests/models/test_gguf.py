"""GGUF files as models: the dequantised weights, loaded by hand, give the same vectors; what is wrong is named."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Regex, Tokenizer, pre_tokenizers, processors

from ctxexp import Sentence
from ctxexp.errors import ModelError
from tests import tiny_models
from tests.tiny_models import encoder

gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
HIDDEN, INNER, HEADS, BLOCKS = 32, 64, 4, 2
Written = tuple[Path, dict[str, np.ndarray]]
SENTENCES = [Sentence.of(text.split()) for text in ("the naïve fox , jumps", "unbelievable money in the bank")]


def write(
    path: Path,
    architecture: str = "llama",
    *,
    tied: bool = True,
    keys: Mapping[str, object] = MappingProxyType({}),
    tensors: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> dict[str, np.ndarray]:
    """A tiny Llama in a GGUF file of several types, with more `keys` and `tensors` (by their shapes); returned are its
    tensors as they are once dequantised."""
    from gguf import GGMLQuantizationType as Types

    tokenizer, _ = tiny_models.byte_level()
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    rng, held = np.random.default_rng(0), {}
    out = gguf.GGUFWriter(path, architecture)
    out.add_name("Tiny Llama")
    for key, value in (("block_count", BLOCKS), ("context_length", 40), ("embedding_length", HIDDEN),
                       ("feed_forward_length", INNER), ("head_count", HEADS), ("head_count_kv", HEADS),
                       ("vocab_size", len(vocabulary)), ("rope_dimension_count", HIDDEN // HEADS)):  # fmt: skip
        getattr(out, f"add_{key}")(value)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_tokenizer_model("gpt2")
    kinds = {bool: out.add_bool, int: out.add_uint32, float: out.add_float32, str: out.add_string}
    for key, value in ({"tokenizer.ggml.pre": "gpt-2"} | dict(keys)).items():
        if value is not None:
            kinds[type(value)](key, value)
    out.add_token_list([token for token, _ in vocabulary])
    out.add_token_types([3 if token.startswith("<") else 1 for token, _ in vocabulary])
    out.add_token_merges([" ".join(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]])
    out.add_bos_token_id(0)
    out.add_eos_token_id(2)

    def add(name: str, shape: tuple[int, ...], kind: Types) -> None:
        values = rng.normal(size=shape).astype(np.float32) / (4 if len(shape) > 1 else 1)
        packed = gguf.quants.quantize(values, kind)
        out.add_tensor(name, packed, raw_dtype=kind)
        held[name] = gguf.quants.dequantize(packed, kind)

    add("token_embd.weight", (len(vocabulary), HIDDEN), Types.Q8_0)
    for block in range(BLOCKS):
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{block}.{part}.weight", (HIDDEN, HIDDEN), Types.Q4_1)
        add(f"blk.{block}.ffn_gate.weight", (INNER, HIDDEN), Types.Q4_1)
        add(f"blk.{block}.ffn_up.weight", (INNER, HIDDEN), Types.Q5_0)
        add(f"blk.{block}.ffn_down.weight", (HIDDEN, INNER), Types.F16)
        add(f"blk.{block}.attn_norm.weight", (HIDDEN,), Types.F32)
        add(f"blk.{block}.ffn_norm.weight", (HIDDEN,), Types.F32)
    add("output_norm.weight", (HIDDEN,), Types.F32)
    for name, shape in tensors.items():
        add(name, shape, Types.F32)
    if not tied:
        add("output.weight", (len(vocabulary), HIDDEN), Types.Q8_0)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return held


def by_hand(held: dict[str, np.ndarray], **config: object) -> Any:
    """A LlamaModel of these tensors, put where each belongs; llama.cpp keeps the halves of a head's rotation
    interleaved, transformers beside each other."""
    from transformers import LlamaConfig, LlamaModel

    model = LlamaModel(
        LlamaConfig(vocab_size=len(held["token_embd.weight"]), hidden_size=HIDDEN, intermediate_size=INNER,
                    num_hidden_layers=BLOCKS, num_attention_heads=HEADS, rms_norm_eps=1e-5,
                    max_position_embeddings=40, **config)
    )  # fmt: skip

    def halves(x: np.ndarray) -> np.ndarray:
        return x.reshape(HEADS, HIDDEN // HEADS // 2, 2, -1).swapaxes(1, 2).reshape(x.shape)

    parts = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
             "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
             "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
             "ffn_norm": "post_attention_layernorm"}  # fmt: skip
    state = {"embed_tokens.weight": held["token_embd.weight"], "norm.weight": held["output_norm.weight"]}
    for block in range(BLOCKS):
        for theirs, ours in parts.items():
            for kind in ("weight", "bias"):
                if (x := held.get(f"blk.{block}.{theirs}.{kind}")) is not None:
                    state[f"layers.{block}.{ours}.{kind}"] = halves(x) if theirs in ("attn_q", "attn_k") else x
    model.load_state_dict({name: torch.from_numpy(np.array(x)) for name, x in state.items()})
    return model.eval()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Written:
    path = tmp_path_factory.mktemp("gguf") / "tiny-llama.gguf"
    return path, write(path)


def agrees(path: Path, model: Any, change: Callable[[Tokenizer], object] = lambda _: None) -> Any:
    """The file's encoder, once its vectors of each piece are those of the model and of the tokenizer after `change`."""
    made = encoder(path, pooling="pieces", unused="refuse")
    tokenizer, _ = tiny_models.byte_level()
    change(tokenizer)
    for sentence, encoded in zip(SENTENCES, made.encode(SENTENCES), strict=True):
        read = tokenizer.encode(sentence.text)
        with torch.no_grad():
            hidden = model(input_ids=torch.tensor([read.ids]), output_hidden_states=True).hidden_states
        text = [i for i, special in enumerate(read.special_tokens_mask) if not special]
        np.testing.assert_allclose(encoded.layers, torch.cat(hidden).numpy()[:, text], atol=1e-5)
    return made


@pytest.mark.parametrize("kind", ["linear", "yarn"])
def test_scaled_rotations_are_read(tmp_path: Path, kind: str) -> None:
    scaling = "llama.rope.scaling."
    keys = {f"{scaling}type": kind, f"{scaling}factor": 4.0, f"{scaling}original_context_length": 16}
    held = write(tmp_path / "a.gguf", keys=keys)
    length = {"original_max_position_embeddings": 16} if kind == "yarn" else {}
    rope = {"rope_type": kind, "factor": 4.0, "rope_theta": 10000.0, **length}
    agrees(tmp_path / "a.gguf", by_hand(held, rope_parameters=rope))


def test_factors_of_rotations_and_biases_are_read(tmp_path: Path) -> None:
    size, tensors = {"ffn_gate": INNER, "ffn_up": INNER}, {}
    for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        tensors |= {f"blk.{block}.{part}.bias": (size.get(part, HIDDEN),) for block in range(BLOCKS)}
    held = write(tmp_path / "a.gguf", tensors=tensors | {"rope_freqs.weight": (HIDDEN // HEADS // 2,)})
    model = by_hand(held, attention_bias=True, mlp_bias=True)
    model.rotary_emb.inv_freq /= torch.from_numpy(held["rope_freqs.weight"])
    agrees(tmp_path / "a.gguf", model)


def digits(tokenizer: Tokenizer) -> None:
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), tokenizer.pre_tokenizer]
    )


def threes(tokenizer: Tokenizer) -> None:
    """Numbers in threes and contractions of any case, as Llama 3's and ChatGLM 4's."""
    split = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
        r"\s+(?!\S)|\s+"
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(split), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )


def start(tokenizer: Tokenizer) -> None:
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])


@pytest.mark.parametrize(
    ("key", "value", "change"),
    [("pre", "smollm", digits), ("pre", "llama-bpe", threes), ("pre", "chatglm-bpe", threes),
     ("add_bos_token", True, start)],
)  # fmt: skip
def test_text_is_split_and_marked_as_the_keys_say(
    tmp_path: Path, key: str, value: object, change: Callable[[Tokenizer], object]
) -> None:
    held = write(tmp_path / "a.gguf", keys={f"tokenizer.ggml.{key}": value})
    made = agrees(tmp_path / "a.gguf", by_hand(held), change)
    tokenizer, _ = tiny_models.byte_level()
    change(tokenizer)
    text = "WE'LL pay  1234 for 56789 words"
    assert made.tokenizer.encode(text).tokens == tokenizer.encode(text).tokens


UNUSED = {
    "llama.attention.sliding_window": 16,
    "llama.attn_logit_softcapping": 30.0,
    "llama.expert_used_count": 2,
    "llama.rope.scaling.type": "longrope",
    "llama.rope.scaling.yarn_beta_fast": 8.0,
    "llama.attention.scale": 0.5,
    "llama.attention.key_length": 16,
    "llama.attention.causal": False,
    "llama.no_such": 1,
    "adapter.type": "lora",
    "split.count": 2,
    "tokenizer.ggml.pre": "no-such",
    "tokenizer.ggml.add_space_prefix": True,
    "tokenizer.ggml.remove_extra_whitespaces": True,
    "tokenizer.huggingface.json": "{}",
}


def test_each_key_and_tensor_that_nothing_follows_is_named(tmp_path: Path) -> None:
    tensors = ("blk.0.attn_q_norm.weight", "rope_factors_long.weight")
    write(tmp_path / "a.gguf", keys=UNUSED, tensors=dict.fromkeys(tensors, (4,)))
    with pytest.raises(ModelError, match=r"holds what isn't used.*: the key llama.attention.sliding_window=16;"):
        encoder(tmp_path / "a.gguf", unused="refuse")
    warnings = str(encoder(tmp_path / "a.gguf").details["warnings"])
    named = re.findall(
        r"not used: the (?:key|tensor) (\S+?)(?:=.*?)?(?:, a way to split text)?$", warnings, re.MULTILINE
    )
    assert sorted(named) == sorted([*UNUSED, *tensors])
    write(tmp_path / "b.gguf", keys={"tokenizer.ggml.pre": None})
    with pytest.raises(ModelError, match=r"the key tokenizer.ggml.pre=None"):
        encoder(tmp_path / "b.gguf", unused="refuse")


def test_it_says_what_was_dequantised_and_knows_its_file(tiny: Written, tmp_path: Path) -> None:
    path, _ = tiny
    made = encoder(path)
    assert made.details["dequantized"] == "Q4_1,Q8_0,Q5_0,F16,F32"  # most values first
    assert " dequantized=Q4_1,Q8_0,Q5_0,F16,F32 pooling=" in made.name
    moved = shutil.copy(path, tmp_path / "moved.gguf")
    (tmp_path / "tokenizer.json").write_text("{}")  # another model's, which transformers would read
    assert encoder(moved).name == made.name
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    moved.write_bytes(raw)
    assert encoder(moved).name != made.name


def test_its_tables_are_its_embedding_and_its_own_output_matrix(tiny: Written, tmp_path: Path) -> None:
    path, held = tiny
    (table,) = encoder(path).tables(SENTENCES)
    np.testing.assert_array_equal(table.vectors, held["token_embd.weight"])
    assert table.tied
    held = write(tmp_path / "untied.gguf", tied=False)
    _, output = encoder(tmp_path / "untied.gguf").tables(SENTENCES)
    np.testing.assert_array_equal(output.vectors, held["output.weight"])
