"""GGUF files as models: the dequantised weights, loaded by hand, give the same vectors; what is wrong is named."""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models
import torch

from ctxexp.dataset import Sentence
from ctxexp.errors import ModelError
from ctxexp.models.gpt2 import gpt2
from ctxexp.models.huggingface import huggingface

gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
HIDDEN, INNER, HEADS, BLOCKS = 32, 64, 4, 2
SENTENCES = [Sentence.of(text.split()) for text in ("the naïve fox , jumps", "unbelievable money in the bank")]


def write(path: Path, architecture: str = "llama", *, tied: bool = True) -> dict[str, np.ndarray]:
    """A tiny Llama in a GGUF file of several types, and its tensors as they are once dequantised."""
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
    out.add_tokenizer_pre("smollm")
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
    if not tied:
        add("output.weight", (len(vocabulary), HIDDEN), Types.Q8_0)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return held


def by_hand(held: dict[str, np.ndarray]) -> Any:
    """A LlamaModel of these tensors, put where each belongs; llama.cpp keeps the halves of a head's rotation
    interleaved, transformers beside each other."""
    from transformers import LlamaConfig, LlamaModel

    model = LlamaModel(
        LlamaConfig(vocab_size=len(held["token_embd.weight"]), hidden_size=HIDDEN, intermediate_size=INNER,
                    num_hidden_layers=BLOCKS, num_attention_heads=HEADS, rms_norm_eps=1e-5)
    )  # fmt: skip

    def halves(x: np.ndarray) -> np.ndarray:
        return x.reshape(HEADS, HIDDEN // HEADS // 2, 2, HIDDEN).swapaxes(1, 2).reshape(x.shape)

    parts = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
             "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
             "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
             "ffn_norm": "post_attention_layernorm"}  # fmt: skip
    state = {"embed_tokens.weight": held["token_embd.weight"], "norm.weight": held["output_norm.weight"]}
    for block in range(BLOCKS):
        for theirs, ours in parts.items():
            x = held[f"blk.{block}.{theirs}.weight"]
            state[f"layers.{block}.{ours}.weight"] = halves(x) if theirs in ("attn_q", "attn_k") else x
    model.load_state_dict({name: torch.from_numpy(np.array(x)) for name, x in state.items()})
    return model.eval()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    path = tmp_path_factory.mktemp("gguf") / "tiny-llama.gguf"
    return path, write(path)


def test_vectors_are_those_of_the_dequantised_weights(tiny: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, held = tiny
    made = huggingface(checkpoint=str(path), pooling="pieces", device="cpu")
    model = by_hand(held)
    tokenizer, _ = tiny_models.byte_level()
    for sentence, encoded in zip(SENTENCES, made.encode(SENTENCES), strict=True):
        ids = tokenizer.encode(sentence.text).ids
        with torch.no_grad():
            hidden = model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
        np.testing.assert_allclose(encoded.layers, torch.cat(hidden).numpy(), atol=1e-5)
    assert (made.n_layers, made.dim, made.window) == (BLOCKS + 1, HIDDEN, 40)


def test_it_says_what_was_dequantised_and_knows_its_file(
    tiny: tuple[Path, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    path, _ = tiny
    made = huggingface(checkpoint=str(path), device="cpu")
    assert made.details["dequantized"] == "Q4_1,Q8_0,Q5_0,F16,F32"  # most values first
    assert " dequantized=Q4_1,Q8_0,Q5_0,F16,F32 pooling=" in made.name
    moved = shutil.copy(path, tmp_path / "moved.gguf")
    (tmp_path / "tokenizer.json").write_text("{}")  # another model's, which transformers would read
    assert huggingface(checkpoint=str(moved), device="cpu").name == made.name
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    moved.write_bytes(raw)
    assert huggingface(checkpoint=str(moved), device="cpu").name != made.name


def test_its_tables_are_its_embedding_and_its_own_output_matrix(
    tiny: tuple[Path, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    path, held = tiny
    (table,) = huggingface(checkpoint=str(path), device="cpu").tables(SENTENCES)
    np.testing.assert_array_equal(table.vectors, held["token_embd.weight"])
    assert table.tied
    held = write(tmp_path / "untied.gguf", tied=False)
    _, output = huggingface(checkpoint=str(tmp_path / "untied.gguf"), device="cpu").tables(SENTENCES)
    np.testing.assert_array_equal(output.vectors, held["output.weight"])


def test_mistakes_are_named(
    tiny: tuple[Path, dict[str, np.ndarray]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = tiny
    with pytest.raises(ModelError, match=r"none\.gguf can't be read \(FileNotFoundError.*expected a model's GGUF file"):
        huggingface(checkpoint=str(tmp_path / "none.gguf"))
    (tmp_path / "model.bin").write_bytes(b"PK\3\4")
    with pytest.raises(ModelError, match=r"model\.bin begins with b'PK.*no GGUF file; expected one, or the model's"):
        huggingface(checkpoint=str(tmp_path / "model.bin"))
    with pytest.raises(ModelError, match=r"revision=main names a commit of the hub, and .*gguf is a file: leave it"):
        huggingface(checkpoint=str(path), revision="main")
    with pytest.raises(ModelError, match=r"model=gpt2 expects a checkpoint of type 'gpt2', but .* is a 'llama'"):
        gpt2(checkpoint=str(path))
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(path.read_bytes()[:999])
    with pytest.raises(ModelError, match=r"cut\.gguf can't be read as GGUF \(.*\); copy or download it again"):
        huggingface(checkpoint=str(cut))
    writer = gguf.GGUFWriter(tmp_path / "empty.gguf", "llama")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ModelError, match=r"empty\.gguf is a GGUF file without tensors, perhaps of a vocabulary alone"):
        huggingface(checkpoint=str(tmp_path / "empty.gguf"))
    write(tmp_path / "odd.gguf", "nonesuch")
    with pytest.raises(ModelError, match=r"cannot load .*odd\.gguf: .*architecture nonesuch is not supported.*take"):
        huggingface(checkpoint=str(tmp_path / "odd.gguf"))
    for name in ("gguf", "accelerate"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModelError, match=r"tiny-llama\.gguf needs gguf and accelerate: pip install 'ctxexp\[gguf\]'"):
        huggingface(checkpoint=str(path))


def _key(path: Path, name: str) -> int:
    """Where the value of a key begins in the file."""
    return path.read_bytes().index(name.encode()) + len(name)


@pytest.mark.parametrize(
    ("absurd", "message"),
    [
        ("tensors", "1,152,921,504,606,846,976 tensors"),
        ("keys", "1,152,921,504,606,846,976 keys"),
        ("layers", "1,000,000,000 layers in"),
        ("items", "1,152,921,504,606,846,976 values under 'tokenizer.ggml.tokens'"),
        ("width", "llama.embedding_length=4,000,000,000"),
    ],
)
def test_absurd_sizes_are_refused_at_once(
    tiny: tuple[Path, dict[str, np.ndarray]], tmp_path: Path, absurd: str, message: str
) -> None:
    """A reader goes through 2^60 items for ever, and a model of 10^9 layers is built for as long."""
    raw = bytearray(tiny[0].read_bytes())
    at, kind, value = {
        "tensors": (8, "<Q", 2**60),
        "keys": (16, "<Q", 2**60),
        "layers": (_key(tiny[0], "llama.block_count") + 4, "<I", 10**9),
        "items": (_key(tiny[0], "tokenizer.ggml.tokens") + 8, "<Q", 2**60),
        "width": (_key(tiny[0], "llama.embedding_length") + 4, "<I", 4 * 10**9),
    }[absurd]
    struct.pack_into(kind, raw, at, value)
    path = tmp_path / "absurd.gguf"
    path.write_bytes(raw)
    with pytest.raises(ModelError, match=rf"absurd\.gguf can't be read as GGUF \(it names {message}.* bytes\); copy"):
        huggingface(checkpoint=str(path), device="cpu")


def test_a_fifo_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.gguf")
    with pytest.raises(ModelError, match=r"a\.gguf can't be read \(OSError: it is no file\)"):
        huggingface(checkpoint=str(tmp_path / "a.gguf"))
