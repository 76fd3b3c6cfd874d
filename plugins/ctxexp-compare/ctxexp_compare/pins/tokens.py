"""Digests of a tokenizer, and of the pieces that it makes of the pin's text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from ctxexp import EncodedSentence, Encoder, Sentence

TEXT_NEUTRAL = ("version", "truncation", "padding", "decoder")  # parts of tokenizer.json that decide no piece


@dataclass(frozen=True)
class TokenizerDigest:
    """Digests of each sentence's pieces and units, of the vocabulary (with merges or scores), and of the settings;
    the last two are empty for a model without a tokenizer of its own. `library` is the version that wrote them."""

    pieces: tuple[str, ...]
    units: tuple[str, ...]
    vocabulary: str = ""
    settings: str = ""
    library: str = ""

    def changed_sentences(self, now: TokenizerDigest) -> list[int]:
        """The sentences whose pieces, or units, aren't what they were."""
        same = [(self.pieces[i], self.units[i]) == (now.pieces[i], now.units[i]) for i in range(len(self.pieces))]
        return [i for i, equal in enumerate(same) if not equal]

    def changes(self, now: TokenizerDigest) -> list[str]:
        """The differences, in words; settings as another version of the library writes them are none."""
        differences = []
        if changed := self.changed_sentences(now):
            differences.append(f"{len(changed)} of {len(self.pieces)} sentences have other pieces")
        if self.vocabulary != now.vocabulary:
            differences.append("another vocabulary")
        elif self.settings != now.settings and self.library == now.library:
            differences.append("other settings")
        return differences


def tokenizer_digest(
    encoder: Encoder, sentences: Sequence[Sentence], encoded: Sequence[EncodedSentence]
) -> TokenizerDigest:
    """The digests of an encoder over sentences that it has encoded."""
    units = tuple(_digest(list(one.units)) for one in encoded)
    tokenizer = getattr(encoder, "tokenizer", None)
    if tokenizer is None:
        keys = encoder.unit_keys(sentences)
        return TokenizerDigest(tuple(_digest([str(key) for key in own]) for own in keys), units)
    pieces = tuple(_digest(one.ids) for one in tokenizer.encode_batch([sentence.text for sentence in sentences]))
    settings = json.loads(tokenizer.to_str())
    model = settings.pop("model")
    merges = [one if isinstance(one, str) else " ".join(one) for one in model.pop("merges", None) or ()]
    vocabulary = _digest([model.pop("vocab", None), merges])
    for key in TEXT_NEUTRAL:
        settings.pop(key, None)
    return TokenizerDigest(pieces, units, vocabulary, _digest([settings, model]), version("tokenizers"))


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=6).hexdigest()
