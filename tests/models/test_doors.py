"""A checkpoint is read alike by its folder and by the objects that transformers loads from it; its form changes
nothing, and each of its settings is read, harmless or named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, normalizers
from transformers import AutoModel, AutoTokenizer, GPT2Config

from ctxexp import Sentence, from_transformers
from ctxexp.errors import ModelError
from tests import tiny_models
from tests.tiny_models import edit, encoder

SENTENCE = Sentence.of(["The", "Dog", "deposited", "Money", "in", "the", "bank"])
SETTINGS = "tokenizer_config.json"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXEXP_CACHE", str(tmp_path / "cache"))  # what a load says is said once


def vectors(model: Any) -> np.ndarray:
    return next(iter(model.encode([SENTENCE]))).layers


def damage(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    # fused attention turns NaN scores into finite vectors, so the vectors' own check doesn't see them
    weights["encoder.layer.0.attention.self.query.weight"].fill_(torch.nan)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def vocabulary_alone(folder: Path, *, lower: bool = False) -> None:
    pieces = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab()
    names = sorted(pieces, key=lambda piece: pieces[piece])
    if lower:
        names = [name if name.startswith("[") else name.lower() + "~" * (name != name.lower()) for name in names]
    (folder / "vocab.txt").write_text("".join(f"{name}\n" for name in names))
    (folder / "tokenizer.json").unlink()
    edit(folder, SETTINGS, tokenizer_class="BertTokenizer", do_lower_case=not lower)


def other_tokenizer(folder: Path) -> None:
    tokenizer, special = tiny_models.byte_level()
    tiny_models.fast(tokenizer, special).save_pretrained(folder)


FAILING = {  # what is said of it, if anything
    "nothing": ("", lambda folder: None),
    "NaN": ("self.query.weight holds NaN", damage),
    "no pieces": ("knows 0 pieces", lambda folder: [path.unlink() for path in folder.glob("tokenizer*")]),
    "another tokenizer": ("embedding table has", other_tokenizer),
    "capitals out of reach": ("pieces with capitals", vocabulary_alone),
    "capitals without a piece": ("capitals of text", lambda folder: vocabulary_alone(folder, lower=True)),
    "a class that lower-cases": (
        "tokenizer that transformers builds",
        lambda folder: edit(folder, SETTINGS, tokenizer_class="BertTokenizer"),
    ),
    "a key of other models": ("scale_embedding=True", lambda folder: edit(folder, scale_embedding=True)),
    "a key of nobody": ("use_magic=3", lambda folder: edit(folder, use_magic=3)),
    "causality of an encoder": ("is_causal=True", lambda folder: edit(folder, is_causal=True)),
    "another class": ("class GPT2Model that", lambda folder: edit(folder, architectures=["GPT2Model"])),
    "own code": ("own.Both", lambda folder: edit(folder, auto_map={"AutoModel": "own.Both"})),
    "outputs by place": ("", lambda folder: edit(folder, return_dict=False, output_attentions=True)),
    **{
        f"{key}={value}": (
            f"{key}={value}",
            lambda folder, key=key, value=value: edit(folder, SETTINGS, **{key: value}),
        )
        for key, value in {
            "do_lower_case": True,
            "strip_accents": True,
            "tokenize_chinese_chars": False,
            "add_prefix_space": True,
            "add_bos_token": False,
            "split_special_tokens": True,
        }.items()
    },
    "other numbers": (r"added_tokens.json", lambda folder: edit(folder, "added_tokens.json", dog=3)),
    "another vocabulary": (r"vocab.txt", lambda folder: (folder / "vocab.txt").write_text("a\nb\n")),
    "other sides": ("", lambda folder: edit(folder, SETTINGS, padding_side="left", clean_up_tokenization_spaces=True)),
}


@pytest.mark.parametrize("unused", ["warn", "refuse"])
@pytest.mark.parametrize("kind", FAILING)
def test_both_doors_read_and_say_the_same(
    tmp_path: Path, kind: str, unused: Literal["warn", "refuse"], caplog: pytest.LogCaptureFixture
) -> None:
    word, change = FAILING[kind]
    folder = tiny_models.make("bert", tmp_path / "model")
    change(folder)

    def outcome(door: Callable[[], Any]) -> tuple[str, np.ndarray | None]:
        caplog.clear()
        try:
            made = vectors(door())
        except ModelError as error:
            return str(error).removeprefix(str(folder.parent) + "/"), None
        return caplog.text.replace(str(folder.parent) + "/", ""), made

    def in_memory() -> Any:
        model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        return from_transformers(model, tokenizer, unused=unused)

    said, by_path = outcome(lambda: encoder(folder, unused=unused))
    said_of_objects, of_objects = outcome(in_memory)
    assert said == said_of_objects
    assert word in said
    assert bool(said) == bool(word)
    np.testing.assert_array_equal(by_path, of_objects)  # type: ignore[arg-type]


def test_a_tokenizer_that_its_owner_changed_reads_as_it_does(tmp_path: Path) -> None:
    folder = tiny_models.make("bert", tmp_path / "model")
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.normalizer = normalizers.Lowercase()
    made = from_transformers(model, tokenizer)
    assert made.tokenizer.encode("The DOG").tokens == made.tokenizer.encode("the dog").tokens  # type: ignore[attr-defined]
    np.testing.assert_array_equal(vectors(from_transformers(model, tokenizer, lower=False)), vectors(encoder(folder)))


WRAPPERS = ("_orig_mod.", "module.", "_orig_mod.module.", "module._orig_mod.", "_forward_module.bert.", "0.auto_model.")


@pytest.mark.parametrize("prefix", WRAPPERS)
def test_names_that_a_wrapper_gave_all_weights_are_read(tmp_path: Path, prefix: str) -> None:
    folder = tiny_models.make("bert", tmp_path / "model")
    plain, file = vectors(encoder(folder)), folder / "model.safetensors"
    save_file({prefix + name: weight for name, weight in load_file(file).items()}, file, {"format": "pt"})
    made = encoder(folder, unused="refuse")
    assert "warnings" not in made.details
    np.testing.assert_array_equal(vectors(made), plain)


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
@pytest.mark.parametrize("value", ["flash_attention_2", "flash_attention_3", "flex_attention", "sdpa", "eager"])
def test_a_wish_for_another_attention_changes_no_vector(tmp_path: Path, key: str, value: str) -> None:
    folder = tiny_models.make("llama", tmp_path / "model")
    plain = vectors(encoder(folder))
    made = encoder(edit(folder, **{key: value}), unused="refuse")
    assert "warnings" not in made.details
    np.testing.assert_allclose(vectors(made), plain, atol=1e-5 * np.abs(plain).max())


NESTED = {"qk_ln": True, "prefix_lm": True, "alibi": False, "rope": True, "sliding_window_size": 8}


@pytest.mark.parametrize("key", NESTED)
def test_keys_inside_parts_of_config_are_judged(tmp_path: Path, key: str) -> None:
    from transformers import MptConfig, MptModel

    folder = tiny_models.make("gpt2", tmp_path / "model")
    vocab = GPT2Config.from_pretrained(folder).vocab_size
    MptModel(MptConfig(vocab_size=vocab, d_model=16, n_layers=2, n_heads=2, max_seq_len=40)).save_pretrained(folder)
    assert "warnings" not in encoder(folder, unused="refuse").details
    parts = json.loads((folder / "config.json").read_text())["attn_config"]
    with pytest.raises(ModelError, match=rf"attn_config\.{key}={NESTED[key]} of its config.json"):
        encoder(edit(folder, attn_config=parts | {key: NESTED[key]}), unused="refuse")
