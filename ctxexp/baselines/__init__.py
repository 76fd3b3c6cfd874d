"""Chance levels: what unrelated occurrences give. One scheme a file."""

from __future__ import annotations

from ctxexp.baselines.drawn import OnePerSentence, Uniform
from ctxexp.baselines.size_matched import SizeMatched
from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_baselines(register: Register) -> None:
    register("one_per_sentence", OnePerSentence)
    register("uniform", Uniform)
    register("size_matched", SizeMatched)
