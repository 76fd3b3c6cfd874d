"""The choices that several models share, as types: the command line checks them before any work."""

from __future__ import annotations

from typing import Literal

Weights = Literal["mini", "published", "untrained"]
Pooling = Literal["mean", "first", "last", "pieces"]
Long = Literal["window", "refuse"]
State = Literal["reset", "carry"]
Dtype = Literal["float32", "bfloat16", "float16"]
