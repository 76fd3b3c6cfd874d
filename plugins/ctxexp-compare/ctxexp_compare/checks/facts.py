"""What a check compares beside vectors: settings, digests of the tokenizer and of each tensor, and the environment."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from ctxexp import Encoder
from ctxexp_compare.checks.encoding import word_sentences

Fact = str | int | float | bool
Facts = Mapping[str, Mapping[str, Fact]]
SETTINGS = ("pooling", "prefix", "start", "final_norm", "window", "causal", "architecture", "state")
OF_VIEW = ("window", "width")  # what both have, and may differ
PLACE = ("device", "attention")
LIBRARIES = ("ctxexp", "numpy", "torch", "transformers", "tokenizers")
CAUSE_OF_SETTING = {
    "architecture": "", "mode": "pooling", "include_prompt": "pooling", "prompt": "prompt", "modules": "projection",
    "Dense": "projection", "Normalize": "normalising", "lower": "tokenizer", "start": "tokenizer", "prefix": "prompt",
    "window": "text cut", "final_norm": "before the norm", "pooling": "pooling",
}  # fmt: skip  # by a part of its name, the first that fits
TOKENIZER = {"vocabulary": "another vocabulary", "pieces": "texts have other pieces"}
MAX_NAMED = 3


def facts_of(encoder: Encoder, texts: Sequence[str]) -> dict[str, dict[str, Fact]]:
    """The facts of an encoder, and of its view of sentences, by kind."""
    details, view = encoder.details, encoder.sentence_encoder()
    settings: dict[str, Fact] = {key: details[key] for key in SETTINGS if key in details}
    if view is not None:
        own = {key for key in view.details if key in OF_VIEW or key not in details}
        settings |= {f"sentence {key}": view.details[key] for key in sorted(own)}
    place: dict[str, Fact] = {key: details[key] for key in PLACE if key in details}
    place |= {name: version(name) for name in LIBRARIES if not (name == "torch" and "device" not in details)}
    return {
        "settings": settings,
        "tokenizer": _tokenizer_facts(encoder, texts),
        "weights": _weight_digests(encoder),
        "environment": place | {"machine": f"{platform.system()} {platform.machine()}"},
    }


def differences(then: Mapping[str, Fact], now: Mapping[str, Fact]) -> dict[str, str]:
    """`512 -> 128`, by the name of each fact that isn't what it was."""
    names = dict.fromkeys([*then, *now])
    return {name: f"{then.get(name, '-')} -> {now.get(name, '-')}" for name in names if then.get(name) != now.get(name)}


def cause_of(settings: Mapping[str, str]) -> str:
    """The cause that changed settings are; empty for none that is known."""
    return next((cause for part, cause in CAUSE_OF_SETTING.items() if any(part in name for name in settings)), "")


def changed_weights(then: Mapping[str, Fact], now: Mapping[str, Fact]) -> tuple[str, float]:
    """How weights differ, in words (empty where they don't, or neither is known), and the share of tensors that do."""
    changed = list(differences(then, now)) if then and now else []
    renamed = then.keys() != now.keys() and sorted(map(str, then.values())) == sorted(map(str, now.values()))
    if not changed or renamed:
        return "", 0.0
    named = ", ".join(changed[:MAX_NAMED]) + " ..." * (len(changed) > MAX_NAMED)
    return f"{len(changed)} of {len(now)} tensors changed ({named})", len(changed) / len(now)


def _tokenizer_facts(encoder: Encoder, texts: Sequence[str]) -> dict[str, Fact]:
    tokenizer = getattr(encoder, "tokenizer", None)
    if tokenizer is None:
        keys = encoder.unit_keys(word_sentences(encoder, texts))
        return {"pieces": _digest([[str(key) for key in own] for own in keys])}
    pieces = [one.ids for one in tokenizer.encode_batch(list(texts))]
    return {"pieces": _digest(pieces), "vocabulary": _digest(tokenizer.get_vocab())}


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=6).hexdigest()


def _weight_digests(encoder: Encoder) -> dict[str, Fact]:
    """A digest of each tensor of the encoder's networks, by name; of a file of word vectors that of its content; empty
    for an encoder that shows neither. A pooler without weights of its own is drawn anew at each loading."""
    behind = getattr(encoder.sentence_encoder(), "behind", None)
    networks: list[Any] = [getattr(encoder, "model", None), getattr(encoder, "network", None), behind]
    state = {name: entry for one in networks if hasattr(one, "state_dict") for name, entry in one.state_dict().items()}
    if not state:
        content = encoder.details.get("content_hash")
        return {"the file's content": str(content)} if content else {}
    import torch

    digests: dict[str, Fact] = {}
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
