"""The prefix before each text that a transformer reads: the tokenizer's own pieces, none, a start token, a text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from ctxexp.errors import ConfigError, ModelError
from ctxexp.model import TextStart
from ctxexp.models.choices import AS_TOKENIZER

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

    from ctxexp.models.transformer.pieces import Pieces


@dataclass(frozen=True)
class Prefix:
    """The pieces before each text: `tokenizer_ids` are those that the tokenizer adds by itself, `ids` those that stand
    there instead.

    `begin` and `end` bound the pieces in `ids` that `model.prefix` added: they are excluded from sentence vectors.
    """

    tokenizer_ids: tuple[int, ...]
    ids: tuple[int, ...]
    begin: int
    end: int
    start: TextStart

    @property
    def is_default(self) -> bool:
        """Whether text begins as the tokenizer lets it begin by itself."""
        return self.ids == self.tokenizer_ids

    def __str__(self) -> str:
        """The prefix's part of the vectors' cache key; empty for the tokenizer's own prefix."""
        return "" if self.is_default else f" prefix={','.join(map(str, self.ids)) or 'none'}"

    def replace_start(self, pieces: Pieces) -> Pieces:
        """Replace what the tokenizer put before the text of one sentence by this prefix."""
        n = min(len(self.tokenizer_ids), len(pieces.ids))
        after = pieces.n_before + pieces.n_after - n  # all special pieces of an empty text count as before it
        ids = np.concatenate([np.array(self.ids, pieces.ids.dtype), pieces.ids[n:]])
        return replace(pieces, ids=ids, at=pieces.at + len(self.ids) - n, n_before=len(self.ids), n_after=after)


def prefix_of(choice: str, tokenizer: PreTrainedTokenizerBase, source: str) -> Prefix:
    """The prefix that `model.prefix=choice` stands for with this tokenizer.

    `as_tokenizer`: the special pieces that it adds by itself, if any; `none`: nothing; `bos`: its `bos_token`, or
    `cls_token` where it has none, once, before the tokenizer's special pieces; any other value is a text: its pieces
    follow the special ones.

    Raises ModelError for `bos` where the tokenizer has neither, ConfigError for a prefix that the tokenizer makes no
    piece of.
    """
    backend: Tokenizer = tokenizer.backend_tokenizer
    sample = backend.encode("a")
    mask = [*sample.special_tokens_mask, 0]
    own = tuple(sample.ids[: mask.index(0)])
    added: tuple[int, ...] = ()
    if choice == "bos":
        token = tokenizer.bos_token or tokenizer.cls_token
        number = backend.token_to_id(token) if token else None
        if number is None:
            raise ModelError(
                f"model.prefix=bos: the tokenizer of {source} has neither a bos_token nor a cls_token; give the text "
                "that is to stand first, such as model.prefix=., or leave model.prefix=as_tokenizer"
            )
        added = (number,) if own[:1] != (number,) else ()
    elif choice not in (AS_TOKENIZER, "none"):
        added = tuple(backend.encode(choice, add_special_tokens=False).ids)
        if not added:
            raise ConfigError(f"model.prefix={choice!r}: the tokenizer of {source} makes no piece of it; give another")
    if choice == "none":
        return Prefix(own, (), 0, 0, TextStart((), "prefix" if own else "tokenizer"))
    ids = (*added, *own) if choice == "bos" else (*own, *added)
    begin = 0 if choice == "bos" else len(own)
    tokens = tuple(str(backend.id_to_token(i)) for i in ids)
    whose: Literal["tokenizer", "prefix", "both"] = "tokenizer" if not added else "both" if own else "prefix"
    return Prefix(own, ids, begin, begin + len(added), TextStart(tokens, whose))
