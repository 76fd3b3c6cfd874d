"""Published models whose files come as packages, and those of sentence-transformers."""

from __future__ import annotations

import ctxexp
from ctxexp import Register


@ctxexp.hookimpl
def register_models(register: Register) -> None:
    register("glove", "ctxexp_packaged_models.glove:glove")
    register("minilm", "ctxexp_packaged_models.minilm:minilm")
    register("sentence_transformer", "ctxexp_packaged_models.sentence_transformers:sentence_transformer")
    register("smollm2", "ctxexp_packaged_models.smollm2:smollm2")
