"""What a check compares beside vectors: settings, the place where they were computed, digests of the tokenizer and of
each tensor, and how weights differ from what they were."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from ctxexp import EncodedSentence, Encoder, Sentence

Fact = str | int | float | bool
SETTINGS = ("pooling", "prefix", "start", "final_norm", "window", "causal", "architecture", "state")
LIBRARIES = ("ctxexp", "numpy", "torch", "transformers", "tokenizers")
OF_VIEW = ("window", "width")  # what both have, and may differ
TOKENIZER_FILE = re.compile(r"token|vocab|merges|sentencepiece|spiece|tiktoken|\.(model|spm|bpe|codes)$")
TEXT_NEUTRAL = ("version", "truncation", "padding", "decoder")  # parts of tokenizer.json that decide no piece
BLOCK = re.compile(r"^(.*?\.)?(\d+)\.(.+)$")  # of a tensor's name: before the block's number, number, rest
MAX_NAMED = 3


def settings(encoder: Encoder, view: Encoder | None) -> dict[str, Fact]:
    """The settings of an encoder, and of its view of sentences."""
    facts: dict[str, Fact] = {key: encoder.details[key] for key in SETTINGS if key in encoder.details}
    if view is not None:
        own = {key for key in view.details if key in OF_VIEW or key not in encoder.details}
        facts |= {f"sentence {key}": view.details[key] for key in sorted(own)}
    return facts


def environment(encoder: Encoder) -> dict[str, Fact]:
    """Where an encoder computes: device, kernels, versions."""
    facts: dict[str, Fact] = {key: encoder.details[key] for key in ("device", "attention") if key in encoder.details}
    for name in LIBRARIES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            continue
    return {**facts, "machine": f"{platform.system()} {platform.machine()}"}


def differences(then: Mapping[str, Fact], now: Mapping[str, Fact]) -> list[str]:
    """`window 512 -> 128`, for each fact that isn't what it was."""
    keys = [*then, *(key for key in now if key not in then)]
    return [f"{key} {then.get(key, '-')} -> {now.get(key, '-')}" for key in keys if then.get(key) != now.get(key)]


@dataclass(frozen=True)
class TokenizerDigest:
    """Digests of each sentence's pieces and units, of the vocabulary (with merges or scores), of the settings, and of
    the tokenizer's files by name; the last three are empty for a model without a tokenizer of its own. `library` is the
    version that wrote the settings."""

    pieces: tuple[str, ...]
    units: tuple[str, ...]
    vocabulary: str = ""
    settings: str = ""
    library: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    def changed_sentences(self, now: TokenizerDigest) -> list[int]:
        """The sentences whose pieces, or units, aren't what they were."""
        same = [(self.pieces[i], self.units[i]) == (now.pieces[i], now.units[i]) for i in range(len(self.pieces))]
        return [i for i, equal in enumerate(same) if not equal]

    def changes(self, now: TokenizerDigest) -> list[str]:
        """The differences, in words; settings as another version of the library writes them are none, nor is a file
        that only one of the two has: the vocabulary and settings are what the library read of all files."""
        differences = []
        if changed := self.changed_sentences(now):
            differences.append(f"{len(changed)} of {len(self.pieces)} sentences have other pieces")
        if self.vocabulary != now.vocabulary:
            differences.append("another vocabulary")
        elif self.settings != now.settings and self.library == now.library:
            differences.append("other settings")
        both = sorted(self.files.keys() & now.files.keys())
        return differences + [f"another {name}" for name in both if self.files[name] != now.files[name]]


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
    folder = getattr(getattr(encoder, "checkpoint", None), "folder", Path(os.devnull))
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    own = [path for path in found if path.is_file() and TOKENIZER_FILE.search(path.name)]
    files = {path.name: hashlib.blake2b(path.read_bytes(), digest_size=6).hexdigest() for path in own}
    return TokenizerDigest(pieces, units, vocabulary, _digest([settings, model]), version("tokenizers"), files)


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=6).hexdigest()


def weight_digests(encoder: Encoder) -> dict[str, str]:
    """A digest of each tensor of the encoder's model, by name; of a file of word vectors that of its content; empty for
    an encoder that shows neither. A pooler without weights of its own is drawn anew at each loading, and left out."""
    state = weights(encoder)
    if not state:
        content = encoder.details.get("content_hash")
        return {"the file's content": str(content)} if content else {}
    import torch

    digests = {}
    for name, entry in sorted(state.items()):
        if name.startswith("pooler.") and not getattr(encoder, "has_pooler", True):
            continue
        digest = hashlib.blake2b(digest_size=6)
        for part in entry if isinstance(entry, tuple) else (entry,):  # quantised weights come with their type
            if not isinstance(part, torch.Tensor):
                digest.update(repr(part).encode())
                continue
            tensor = part.dequantize() if part.is_quantized else part.detach()
            digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        digests[name] = digest.hexdigest()
    return digests


def networks(encoder: Encoder) -> list[Any]:
    """The encoder's torch modules: a transformer's `model` and those `behind` it, ELMo's `network`; empty without."""
    parts = (getattr(encoder, "model", None), getattr(encoder, "network", None))
    behind = getattr(encoder.sentence_encoder(), "behind", None)
    return [part for part in (*parts, behind) if hasattr(part, "state_dict")]


def weights(encoder: Encoder) -> dict[str, Any]:
    """Their tensors by name."""
    return {name: entry for part in networks(encoder) for name, entry in part.state_dict().items()}


class WeightChange(NamedTuple):
    """How weights differ, in words (empty where they don't, or neither is known), and the share of tensors that do."""

    text: str = ""
    share: float = 0.0


def weight_change(then: Mapping[str, str], now: Mapping[str, str]) -> WeightChange:
    """How a model's weights differ, by their digests, from what they were."""
    same_values = sorted(then.values()) == sorted(now.values()) and then.keys() != now.keys()
    if not then or not now or then == now or same_values:
        return WeightChange()
    changed = [name for name in now if then.get(name) != now[name]]
    gone = [name for name in then if name not in now]
    share = len(changed) / len(now)
    if moved := _moved_blocks(then, now, changed):
        return WeightChange(moved)
    if gone or then.keys() != now.keys():
        text = f"{len(changed)} tensors are new or changed, {len(gone)} are gone ({_some([*changed, *gone])})"
        return WeightChange(text, share)
    if all("norm" in name.lower() or re.search(r"\bln_", name) for name in changed):
        return WeightChange(f"weights of a norm changed ({_some(changed)})", share)
    return WeightChange(f"{len(changed)} of {len(now)} tensors changed ({_some(changed)})", share)


def _moved_blocks(then: Mapping[str, str], now: Mapping[str, str], changed: Sequence[str]) -> str:
    """`the weights of block 2 are what block 3 had`, where every changed tensor of a block is another block's former
    one; empty otherwise."""
    sources: dict[str, set[str]] = {}
    for name in changed:
        found = BLOCK.match(name)
        if found is None:
            return ""
        prefix, number, rest = found[1] or "", found[2], found[3]
        candidates = {
            match[2]
            for other, digest in then.items()
            if digest == now[name] and (match := BLOCK.match(other)) and (match[1] or "", match[3]) == (prefix, rest)
        }
        sources[number] = sources.get(number, candidates) & candidates
    if not sources or not all(sources.values()):
        return ""
    pairs = sorted((int(number), int(min(origin))) for number, origin in sources.items())
    if len(pairs) == 2 and pairs[0] == pairs[1][::-1]:
        return f"blocks {pairs[0][0]} and {pairs[0][1]} are swapped"
    return "; ".join(f"block {number} has the weights that block {origin} had" for number, origin in pairs)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_NAMED]) + " ..." * (len(names) > MAX_NAMED)
