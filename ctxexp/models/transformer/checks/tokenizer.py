"""Whether a tokenizer is the model's own, as far as its files, config.json and what is known of papers' models say."""

from __future__ import annotations

import hashlib
import inspect
from typing import TYPE_CHECKING

from ctxexp.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

    from ctxexp.models.transformer.papers import PublishedCheckpoint

_GENERAL = ("", "PreTrainedTokenizer", "TokenizersBackend", "PreTrainedTokenizerBase")  # of any model


def fast_tokenizer(tokenizer: PreTrainedTokenizerBase) -> Tokenizer | None:
    """The quick tokenizer that it wraps; None for one that is slow."""
    backend: Tokenizer | None = getattr(tokenizer, "backend_tokenizer", None)
    return backend


def check_tokenizer(
    tokenizer: PreTrainedTokenizerBase,
    config: PretrainedConfig,
    source: str,
    *,
    paper: PublishedCheckpoint | None = None,
    verified: bool = False,
) -> str:
    """Why the tokenizer may be another model's, in a sentence; empty where nothing speaks for it. Raises `ModelError`
    where that is beyond doubt: it isn't of the class that config.json names, or its pieces aren't those of the `paper`
    whose own weights it stands beside (`verified`).

    Sizes can't tell: GPT-2's 50,257 pieces fit many tables, and all its numbers below a table's rows have a vector.
    """
    own, named = _tokenizer_class(tokenizer), str(getattr(config, "tokenizer_class", None) or "")
    if own and _slow(named) not in ("", own):
        raise ModelError(
            f"{source}: config.json names the tokenizer {named}, but the tokenizer's files are of {own}; copy the "
            "model's own tokenizer files there, or correct tokenizer_class in config.json"
        )
    if paper and (wrong := _other_pieces(tokenizer, config, paper)):
        if verified:
            raise ModelError(f"{source}: {wrong}; copy the model's own tokenizer files there")
        return wrong
    return _other_class(tokenizer, config, own) or _other_numbers(tokenizer, config)


def vocabulary_sha256(tokenizer: PreTrainedTokenizerBase, rows: int) -> str:
    """SHA-256 of the pieces with the numbers 0 to `rows` - 1 in their order, a line each, as in BERT's vocab.txt: a
    piece that was added behind them changes nothing. 64 hex digits."""
    numbers = tokenizer.get_vocab()
    pieces = sorted((number, piece) for piece, number in numbers.items() if number < rows)
    return hashlib.sha256("".join(f"{piece}\n" for _, piece in pieces).encode()).hexdigest()


def _other_pieces(tokenizer: PreTrainedTokenizerBase, config: PretrainedConfig, paper: PublishedCheckpoint) -> str:
    """Where the pieces differ from those of the paper's tokenizer; empty where they don't."""
    vocabulary = tokenizer.get_vocab()
    for piece, number in paper.special_pieces.items():
        if (own_hash := vocabulary.get(piece)) != number:
            here = "none" if own_hash is None else own_hash
            return f"{piece} has the number {number} in its paper's tokenizer, and {here} in the files here"
    paper_hash = paper.vocabulary_sha256
    if paper_hash and (own_hash := vocabulary_sha256(tokenizer, config.vocab_size)) != paper_hash:
        return f"its tokenizer has other pieces (SHA-256 {own_hash[:12]}...) than its paper's ({paper_hash[:12]}...)"
    return ""


def _other_class(tokenizer: PreTrainedTokenizerBase, config: PretrainedConfig, own: str) -> str:
    from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES, tokenizer_class_from_name

    usual = TOKENIZER_MAPPING_NAMES.get(config.model_type)
    usual = usual[-1] or usual[0] if isinstance(usual, tuple) else usual
    if not usual or _slow(usual) in _GENERAL:
        return ""
    if own and own != _slow(usual):
        return f"its tokenizer is a {own}, models of type {config.model_type} have a {_slow(usual)} as a rule"
    usual_class = tokenizer_class_from_name(usual)
    algorithm = getattr(usual_class, "model", None)  # WordPiece, BPE or Unigram, as the class says
    backend = fast_tokenizer(tokenizer)
    if backend is None or not isinstance(algorithm, type) or isinstance(backend.model, algorithm):
        return ""
    roles = inspect.signature(usual_class.__init__).parameters
    expected = [roles[f"{role}_token"].default for role in ("cls", "sep", "eos") if f"{role}_token" in roles]
    if absent := [piece for piece in expected if isinstance(piece, str) and backend.token_to_id(piece) is None]:
        return (
            f"its tokenizer makes pieces by {type(backend.model).__name__} and has no {absent[0]}, models of type "
            f"{config.model_type} have it, by {algorithm.__name__}, as a rule"
        )
    return ""


def _other_numbers(tokenizer: PreTrainedTokenizerBase, config: PretrainedConfig) -> str:
    """Special pieces whose numbers config.json or the tokenizer's own template give otherwise."""
    for role in ("pad", "bos", "eos"):
        number, has = getattr(config, f"{role}_token_id", None), getattr(tokenizer, f"{role}_token_id", None)
        if isinstance(number, int) and number >= 0 and has is not None and has != number:
            return f"its config.json gives {role}_token_id {number}, its tokenizer {has}"
    backend = fast_tokenizer(tokenizer)
    if backend is None:
        return ""
    around = backend.encode("")
    for piece, number in zip(around.tokens, around.ids, strict=True):
        if (has := backend.token_to_id(piece)) not in (None, number):
            return f"its tokenizer puts {piece} with the number {number} around text, in its vocabulary it has {has}"
    return ""


def _slow(name: str) -> str:
    """A tokenizer's class without the suffix of its quick form."""
    return name.removesuffix("Fast")


def _tokenizer_class(tokenizer: PreTrainedTokenizerBase) -> str:
    """The class that its files name, else its own; empty for one that any model may have."""
    name = _slow(str(tokenizer.init_kwargs.get("tokenizer_class") or type(tokenizer).__name__))
    return "" if name in _GENERAL else name
