"""Tiny checkpoints of many families, made on the spot: real tokenizers trained on a few sentences, random weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from ctxexp.models.elmo.encoder import ElmoEncoder
from ctxexp.models.elmo.files import ElmoOptions
from tests.shipped import huggingface


def elmo_options(**changes: Any) -> ElmoOptions:
    """The shape of an ELMo that is made in no time."""
    base = ElmoOptions(4, ((1, 3), (2, 4), (3, 6)), 1, 262, 50, "relu", 12, 5, 2, 3.0, 3.0, True)
    return replace(base, **changes)


def elmo(options: ElmoOptions, state: dict[str, torch.Tensor], **choices: Any) -> ElmoEncoder:
    """The encoder of an ELMo's weights."""
    return ElmoEncoder(options, state, source="test", identity="x:y", **choices)


Folder = Callable[[str], Path]
"""What the fixture `tiny_model` gives: the folder of a type."""

TEXTS = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind.",
    "She deposited the money in the bank by the river; naïve café owners agreed.",
    "Running, jumped, happiest: unbelievable internationalisation of words 1234.",
] * 4
SHAPE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def wordpiece() -> tuple[Tokenizer, dict[str, str]]:
    special = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=None)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=180, special_tokens=["[PAD]", *list(special.values())[:3]], show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ids)
    tokenizer.enable_truncation(8)  # as some checkpoints ship: must not cut anything
    tokenizer.enable_padding(length=16)
    return tokenizer, special


def byte_level(*, template: str | None = None, trim: bool = True) -> tuple[Tokenizer, dict[str, str]]:
    special = {"unk_token": "<|end|>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=340, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        special_tokens=["<s>", "<pad>", "</s>", "<|end|>"],
    )  # fmt: skip
    tokenizer.train_from_iterator(TEXTS, trainer)
    ids = [(name, tokenizer.token_to_id(name)) for name in ("<s>", "</s>")]
    level = processors.ByteLevel(trim_offsets=trim)
    tokenizer.post_processor = (
        processors.Sequence([level, processors.TemplateProcessing(single=template, special_tokens=ids)])
        if template
        else level
    )
    return tokenizer, special


def sentencepiece() -> tuple[Tokenizer, dict[str, str]]:
    """As Llama's: a marker for spaces, byte fallback, <s> in front."""
    special = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))],
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator([w for t in TEXTS for w in t.split()], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer, special


def unigram() -> tuple[Tokenizer, dict[str, str]]:
    """As T5's: pieces with metaspace markers, </s> behind."""
    special = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"}
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer, special


def config(kind: str, vocab_size: int) -> Any:
    import transformers as t

    ends = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    if kind == "bert":
        return t.BertConfig(vocab_size=vocab_size, max_position_embeddings=40, **SHAPE)
    if kind == "roberta":  # positions start at pad_token_id + 1
        return t.RobertaConfig(
            vocab_size=vocab_size, max_position_embeddings=42, pad_token_id=1, bos_token_id=0, eos_token_id=2, **SHAPE
        )
    if kind == "distilbert":
        return t.DistilBertConfig(vocab_size=vocab_size, dim=16, n_layers=2, n_heads=2, hidden_dim=32)
    if kind == "deberta-v2":
        return t.DebertaV2Config(vocab_size=vocab_size, **SHAPE)
    if kind == "gpt2":
        ends = {"bos_token_id": 0, "eos_token_id": 2}
        return t.GPT2Config(vocab_size=vocab_size, n_positions=40, n_embd=16, n_layer=2, n_head=2, **ends)
    if kind == "llama":
        return t.LlamaConfig(vocab_size=vocab_size, max_position_embeddings=40, **(ends | {"pad_token_id": 2}), **SHAPE)
    if kind == "qwen2":
        ends = {"bos_token_id": 0, "eos_token_id": 2}
        return t.Qwen2Config(vocab_size=vocab_size, num_key_value_heads=2, max_position_embeddings=40, **ends, **SHAPE)
    if kind == "gpt_neox":
        return t.GPTNeoXConfig(vocab_size=vocab_size, bos_token_id=0, eos_token_id=2, **SHAPE)
    assert kind == "t5"
    return t.T5Config(vocab_size=vocab_size, d_model=16, num_layers=2, num_heads=2, d_kv=8, d_ff=32,
                      decoder_start_token_id=0, pad_token_id=0, eos_token_id=1)  # fmt: skip


TOKENIZERS = {
    "bert": wordpiece,
    "distilbert": wordpiece,
    "deberta-v2": wordpiece,
    "roberta": lambda: byte_level(template="<s> $A </s>"),
    "gpt2": lambda: byte_level(trim=False),
    "qwen2": byte_level,
    "llama": sentencepiece,
    "t5": unigram,
    "gpt_neox": byte_level,
}
KINDS = tuple(TOKENIZERS)


def fast(tokenizer: Tokenizer, special: dict[str, str]) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def edit(folder: Path, name: str = "config.json", /, **changes: object) -> Path:
    """The folder, one of its JSON files with other values, or new."""
    file = folder / name
    file.write_text(json.dumps((json.loads(file.read_text()) if file.is_file() else {}) | changes))
    return folder


def make(kind: str, folder: Path) -> Path:
    """A checkpoint folder of that model type, its weights large enough to tell vectors apart."""
    from transformers import AutoModel

    tokenizer, special = TOKENIZERS[kind]()
    fast(tokenizer, special).save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(7)
        model = AutoModel.from_config(config(kind, tokenizer.get_vocab_size()))
        for name, weight in model.named_parameters():
            if weight.ndim == 1:  # norms and biases off their trivial values, so that leaving one out shows
                weight.data += 0.1 * torch.randn_like(weight)
            elif "norm" not in name:
                weight.data *= 5
    model.save_pretrained(folder)
    return folder


def encoder(folder: Path, **choices: Any) -> Any:
    """The model of a folder."""
    return huggingface(checkpoint=str(folder), device="cpu", **choices)


@cache
def plain(folder: Path) -> tuple[Any, Any]:
    """transformers' own tokenizer and network of a folder, of two networks the one that reads."""
    from transformers import AutoModel, PreTrainedTokenizerFast

    model = AutoModel.from_pretrained(folder).eval()
    reader = model.get_encoder() if model.config.is_encoder_decoder else model
    return PreTrainedTokenizerFast.from_pretrained(folder), reader


def hidden_states(folder: Path, text: str, limit: int | None = None) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """What transformers' tokenizer gives for a text, the network's states (n_layers, n_pieces, dim), and its pooler."""
    tokenizer, model = plain(folder)
    cut = {"truncation": True, "max_length": limit} if limit else {}
    read = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True, return_tensors="pt", **cut)
    with torch.no_grad():
        out = model(input_ids=read["input_ids"], output_hidden_states=True)
    pooled = getattr(out, "pooler_output", None)
    states = torch.stack(out.hidden_states)[:, 0].double().numpy()
    return read, states, None if pooled is None else pooled[0].numpy()


SHORT_TEXTS = ["The quick brown fox jumps over the lazy dog.", "The bank by the river agreed.", "naïve dog"]


def with_head(kind: str, folder: Path, *, tied: bool) -> Path:
    """A tiny checkpoint that was saved with its language-model head."""
    import transformers as t

    tokenizer, special = TOKENIZERS[kind]()
    fast(tokenizer, special).save_pretrained(folder)
    shape = config(kind, tokenizer.get_vocab_size() + 3)  # padded, as some are
    shape.tie_word_embeddings = tied
    head = {"bert": t.BertForMaskedLM, "gpt2": t.GPT2LMHeadModel}[kind]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(3)
        head(shape).save_pretrained(folder)
    return folder
