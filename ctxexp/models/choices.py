"""The choices that several models share, as types that the command line checks before any work, and their ranges."""

from __future__ import annotations

from typing import Literal

from ctxexp.errors import ConfigError

Weights = Literal["mini", "published", "untrained"]
Pooling = Literal["mean", "first", "last", "pieces"]
Long = Literal["window", "refuse"]
State = Literal["reset", "carry"]
Dtype = Literal["float32", "bfloat16", "float16"]


def check_seed(seed: int) -> None:
    """Raise `ConfigError` unless torch can draw untrained weights from `seed`."""
    if not 0 <= seed < 2**63:
        raise ConfigError(f"seed={seed} (weights=untrained): expected 0 to 2**63 - 1, which is {2**63 - 1}")
