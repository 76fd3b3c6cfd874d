"""A trained network to the folder that the loaders read: float16 weights, config, tokenizer."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from ctxexp_lab.training.data import SPECIAL


def save_transformer(network: Any, tokenizer_file: Path, folder: Path, *, masked: bool) -> None:
    """`transformers` folder with float16 safetensors and a fast tokenizer with offsets.

    The language-model head is kept, so that `AutoModelForMaskedLM` and `AutoModelForCausalLM` load it too. AutoModel
    would give BERT a pooler that was never trained: loaders ask for `add_pooling_layer=False`.
    """
    import torch

    half = copy.deepcopy(network).to(torch.float16)
    half.config.dtype = torch.float16
    half.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    positions = getattr(network.config, "n_positions", None) or network.config.max_position_embeddings
    fast_tokenizer(tokenizer_file, masked=masked, positions=int(positions)).save_pretrained(folder)


def fast_tokenizer(tokenizer_file: Path, *, masked: bool, positions: int) -> Any:
    """The tokenizer as `transformers` has it; for the masked model it puts [CLS] and [SEP] around a text."""
    from tokenizers import AddedToken, Tokenizer, processors
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer.from_file(str(tokenizer_file))
    end, pad, cls, sep, mask = SPECIAL
    if not masked:
        return PreTrainedTokenizerFast(
            tokenizer_object=inner,
            bos_token=end,
            eos_token=end,
            unk_token=end,
            pad_token=pad,
            model_max_length=positions,
        )
    # A typed mask takes the space before it along, as the pieces that it stands for do.
    gap = AddedToken(mask, lstrip=True, special=True)
    inner.add_special_tokens([gap])
    ids = {piece: inner.token_to_id(piece) for piece in (cls, sep)}
    inner.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=True),
            processors.TemplateProcessing(
                single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} $B:1 {sep}:1", special_tokens=list(ids.items())
            ),
        ]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, cls_token=cls, sep_token=sep, mask_token=gap, pad_token=pad, unk_token=end,
        bos_token=cls, eos_token=sep, model_max_length=positions,
    )  # fmt: skip
