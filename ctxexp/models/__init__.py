"""The models that come with ctxexp, where they are: a factory, and with it torch, is loaded when it is called for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ctxexp.lazy import VerbPackage, lazy_names
from ctxexp.model import TokenStates
from ctxexp.models.huggingface import checkpoint_encoder
from ctxexp.models.listing import ModelFiles
from ctxexp.models.options import TransformerOptions, resolve_device, with_transformer_options
from ctxexp.models.transformer.checkpoint import Checkpoint
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
__getattr__ = lazy_names(__name__, __file__)

sys.modules[__name__].__class__ = VerbPackage  # ctxexp.models(...)
