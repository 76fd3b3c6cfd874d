"""Which weights changed, and how, from a digest of each tensor."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ctxexp import Encoder

BLOCK = re.compile(r"^(.*?\.)?(\d+)\.(.+)$")  # of a tensor's name: before the block's number, number, rest
ROWS = 32  # of a matrix, in which levels are looked for
MAX_NAMED = 3
QUANTISED = "quantised"
SAME_WEIGHTS = "all weights are what they were: the code, its settings or the engine changed"


def weight_digests(encoder: Encoder) -> dict[str, str]:
    """A digest of each tensor of the encoder's model, by name; of a file of word vectors that of its content; empty for
    an encoder that shows neither. A pooler without weights of its own is drawn anew at each loading, and left out."""
    model = network(encoder)
    if model is None:
        content = encoder.details.get("content_hash")
        return {"the file's content": str(content)} if content else {}
    import torch

    digests = {}
    for name, entry in sorted(model.state_dict().items()):
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


def network(encoder: Encoder) -> Any:
    """The encoder's torch module: a transformer's `model`, ELMo's `network`; None without one."""
    parts = (getattr(encoder, name, None) for name in ("model", "network"))
    return next((part for part in parts if hasattr(part, "state_dict")), None)


def weight_changes(then: Mapping[str, str], precision: str, encoder: Encoder) -> str:
    """How the weights differ from what they were, in words; empty where neither is known. `precision` is what they were
    rounded to."""
    now = weight_digests(encoder)
    if not then or not now:
        return ""
    if sorted(then.values()) == sorted(now.values()) and (then == now or then.keys() != now.keys()):
        return SAME_WEIGHTS
    changed = [name for name in now if then.get(name) != now[name]]
    gone = [name for name in then if name not in now]
    if moved := _moved_blocks(then, now, changed):
        return moved
    rounded = weight_precision(encoder, changed)
    if rounded and any(weight_precision(encoder, [name]) == rounded for name in now.keys() - set(changed)):
        rounded = ""  # weights that didn't change are stored so too
    share = f"{len(changed)} of {len(now)} tensors"
    if rounded == QUANTISED or (rounded not in ("", precision, f"rounded to {encoder.dtype}") and not gone):
        return f"weights are {rounded} now ({share})"
    if gone or then.keys() != now.keys():
        return f"{len(changed)} tensors are new or changed, {len(gone)} are gone ({_some([*changed, *gone])})"
    if all("norm" in name.lower() or re.search(r"\bln_", name) for name in changed):
        return f"weights of a norm changed ({_some(changed)})"
    return f"{share} changed ({_some(changed)})"


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


def weight_precision(encoder: Encoder, names: Iterable[str]) -> str:
    """The type that the values of these matrices are rounded to, beyond their own; empty where they don't show one."""
    model = network(encoder)
    if model is None:
        return ""
    if any("quantized" in type(module).__module__ for module in model.modules()):
        return QUANTISED
    state = model.state_dict()
    tensors = [state[name] for name in names]
    matrices = [
        one[:ROWS].detach().float().cpu().numpy() for one in tensors if one.ndim == 2 and one.is_floating_point()
    ]
    if not matrices:
        return ""
    if all(_levels(one) for one in matrices) or all(_levels(one.T) for one in matrices):
        return f"rounded to {max(max(_levels(one), _levels(one.T)) for one in matrices)} levels or fewer"
    if all((one.view(np.uint32) & 0xFFFF == 0).all() for one in matrices):
        return "rounded to bfloat16"
    if all(np.array_equal(one, one.astype(np.float16).astype(np.float32)) for one in matrices):
        return "rounded to float16"
    return ""


def _levels(matrix: np.ndarray) -> int:
    """How many evenly spaced levels the values of each row lie on, at most; 0 unless all of them do.

    256 levels in a row of 192 values leave gaps of a few steps each, which values that aren't rounded have not.
    """
    most = 0
    for row in matrix:
        values = np.unique(row.astype(np.float64))
        gaps = np.diff(values)
        if not len(gaps):
            continue
        steps = gaps / gaps.min()
        levels = float(steps.sum()) + 1
        if levels > 2**9 or np.abs(steps - np.round(steps)).max() > 0.05:
            return 0
        most = max(most, round(levels))
    return most


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_NAMED]) + " ..." * (len(names) > MAX_NAMED)
