"""The models that come with ctxexp. Registering them imports no torch: a factory does, when it is called."""

from __future__ import annotations

from ctxexp.models import bert, gpt2, huggingface, word_vectors
from ctxexp.models.elmo import factory as elmo
from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_models(register: Register) -> None:
    register("bert", bert.bert)
    register("gpt2", gpt2.gpt2)
    register("elmo", elmo.elmo)
    register("huggingface", huggingface.huggingface)
    register("word_vectors", word_vectors.word_vectors)
