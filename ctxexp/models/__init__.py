"""The models that come with ctxexp, where they are: a factory, and with it torch, is loaded when it is called for."""

from __future__ import annotations

from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_models(register: Register) -> None:
    register("bert", "ctxexp.models.huggingface:bert")
    register("gpt2", "ctxexp.models.huggingface:gpt2")
    register("elmo", "ctxexp.models.elmo.factory:elmo")
    register("huggingface", "ctxexp.models.huggingface:huggingface")
    register("random_words", "ctxexp.models.word_vectors:random_words")
    register("word_vectors", "ctxexp.models.word_vectors:word_vectors")
