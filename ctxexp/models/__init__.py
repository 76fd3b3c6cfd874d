"""The models that come with ctxexp, where they are: a factory, and with it torch, is loaded when it is called for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxexp.model import TokenStates
from ctxexp.models.choices import ModelFiles, TransformerOptions, resolve_device, with_transformer_options
from ctxexp.models.huggingface import checkpoint_encoder
from ctxexp.models.transformer import Checkpoint
from ctxexp.models.word_vectors import WordVectorEncoder, WordVectors

if TYPE_CHECKING:
    from ctxexp.models.elmo.encoder import ElmoNetwork

__all__ = [
    "Checkpoint",
    "ElmoNetwork",
    "ModelFiles",
    "TokenStates",
    "TransformerOptions",
    "WordVectorEncoder",
    "WordVectors",
    "checkpoint_encoder",
    "resolve_device",
    "with_transformer_options",
]


def __getattr__(name: str) -> Any:
    if name != "ElmoNetwork":
        raise AttributeError(f"ctxexp.models has no {name!r}")
    from ctxexp.models.elmo.encoder import ElmoNetwork  # with torch

    return ElmoNetwork
