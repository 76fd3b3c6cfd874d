"""The tokenizer that a checkpoint's files describe, and what speaks against it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ctxexp.errors import ModelError
from ctxexp.models.transformer.leftovers import Leftovers

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PretrainedConfig, PreTrainedTokenizerBase


def fast_tokenizer(tokenizer: PreTrainedTokenizerBase) -> Tokenizer | None:
    """The quick tokenizer that it wraps; None for one that is slow."""
    backend: Tokenizer | None = getattr(tokenizer, "backend_tokenizer", None)
    return backend


def follow_files(tokenizer: PreTrainedTokenizerBase, folder: Path, lower: bool | None) -> Leftovers:
    """Make the tokenizer read text as the folder's tokenizer.json does, whatever class its settings name: transformers
    builds some fifty classes anew from vocabulary and merges, and loses what else the file says. Without the file the
    vocabulary tells whether capitals count, where no setting does. `lower` has the last word on these.

    A loss is a vocabulary whose capitals no text reaches; a doubt, a setting that tokenizer.json contradicts.
    """
    from tokenizers import Tokenizer

    backend, unused = fast_tokenizer(tokenizer), Leftovers([], [])
    if backend is None:
        return unused
    file = folder / "tokenizer_config.json"
    settings = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if not (folder / "tokenizer.json").is_file():
        if lower is None and (reason := _unreachable(backend)):
            unused.losses.append(f"{reason} (model.lower=false: text as it is; model.lower=true: in lower case)")
            lower = settings.get("do_lower_case", not _lowers(backend))
    elif type(tokenizer).__module__.startswith("transformers."):  # any other is code that the user trusts
        backend = tokenizer._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        for role, piece in tokenizer.special_tokens_map.items():
            if isinstance(piece, str) and backend.token_to_id(piece) is None:  # a default of the class
                setattr(tokenizer, role, None)
        unused.doubts.extend(_contradictions(tokenizer, backend, settings, lower))
    if lower is not None:
        tokenizer._tokenizer = _with_case(backend, lower)
    return unused


def _unreachable(backend: Tokenizer) -> str:
    """How the tokenizer hides its vocabulary's capitals by lower-casing, or has none for text that keeps its own; empty
    where it does neither."""
    vocabulary = backend.get_vocab().keys() - {piece.content for piece in backend.get_added_tokens_decoder().values()}
    if "\u0120" in vocabulary:  # bytes are spelled as letters, most of them capitals
        vocabulary = {piece for piece in vocabulary if piece.isascii()}
    capitals = sorted(piece for piece in vocabulary if piece != piece.lower())
    if _lowers(backend) and 100 * len(capitals) > len(vocabulary):  # a few are an uncased one's symbols
        return f"{len(capitals):,} pieces with capitals ({capitals[-1]!r}), since the tokenizer lower-cases text"
    if not _lowers(backend) and not capitals and any(piece != piece.upper() for piece in vocabulary):
        return "capitals of text, which no piece has, and the tokenizer doesn't lower-case"
    return ""


def _lowers(backend: Tokenizer) -> bool:
    return backend.normalizer is not None and backend.normalizer.normalize_str("A").endswith("a")


def _with_case(backend: Tokenizer, lower: bool) -> Tokenizer:
    """The same tokenizer, which lower-cases text or leaves it as it is."""
    from tokenizers import Tokenizer

    state = json.loads(backend.to_str())
    own = state["normalizer"] or {"type": "Sequence", "normalizers": []}
    steps = [step for step in own.get("normalizers", [own]) if step["type"] != "Lowercase"]
    bert = [step for step in steps if step["type"] == "BertNormalizer"]
    for step in bert:
        step["lowercase"] = lower
    if lower and not bert:
        steps.insert(0, {"type": "Lowercase"})
    state["normalizer"] = {"type": "Sequence", "normalizers": steps}
    changed = Tokenizer.from_str(json.dumps(state))
    if _lowers(changed) != lower:
        raise ModelError(f"model.lower={lower}: its tokenizer lower-cases by a table of its own; leave lower out")
    return changed


def _contradictions(
    tokenizer: PreTrainedTokenizerBase, backend: Tokenizer, settings: dict[str, object], lower: bool | None
) -> Iterator[str]:
    """Settings that versions of transformers obey over tokenizer.json, where the two differ."""
    from tokenizers.normalizers import BertNormalizer

    read = backend.encode("a")
    first = [*read.special_tokens_mask, 0].index(0)
    after = [piece for piece, mask in zip(read.tokens, read.special_tokens_mask, strict=True) if mask][first:]
    done = {"add_bos_token": tokenizer.bos_token in read.tokens[:first], "add_eos_token": tokenizer.eos_token in after}
    words = [word for word, _ in backend.pre_tokenizer.pre_tokenize_str("a b")] if backend.pre_tokenizer else []
    if "\u0120b" in words:
        done["add_prefix_space"] = words[0] != "a"
    if isinstance(bert := backend.normalizer, BertNormalizer):
        done |= {"do_lower_case": bert.lowercase, "tokenize_chinese_chars": bert.handle_chinese_chars}
    for name, does in done.items():
        said = settings.get(name)
        if isinstance(said, bool) and said != does and (name != "do_lower_case" or lower is None):
            other = {"add_bos_token": "; model.prefix decides", "do_lower_case": "; model.lower decides"}.get(name, "")
            yield f"{name}={said} of tokenizer_config.json, since tokenizer.json says otherwise{other}"


def other_numbers(tokenizer: PreTrainedTokenizerBase, config: PretrainedConfig) -> Leftovers:
    """Special pieces whose numbers config.json or the tokenizer's own template give otherwise than its vocabulary: it
    may be another model's. Sizes can't tell: GPT-2's 50,257 pieces fit many tables."""
    doubts, ask = [], "are the tokenizer's files this model's own?"
    for role in ("pad", "bos", "eos"):
        number, has = getattr(config, f"{role}_token_id", None), getattr(tokenizer, f"{role}_token_id", None)
        if isinstance(number, int) and number >= 0 and has is not None and has != number:
            doubts.append(f"{role}_token_id={number} of its config.json, as its tokenizer has {has}: {ask}")
    backend = fast_tokenizer(tokenizer)
    around = backend.encode("") if backend else None
    for piece, number in zip(around.tokens, around.ids, strict=True) if around else ():
        if (has := tokenizer.get_vocab().get(piece)) not in (None, number):
            doubts.append(f"the number {number} that it puts for {piece} around text, {has} in its vocabulary: {ask}")
    return Leftovers([], doubts)
