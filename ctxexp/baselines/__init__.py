"""Baselines: what unrelated occurrences give. One scheme per file."""

from __future__ import annotations

from ctxexp.baseline import Baseline
from ctxexp.baselines.drawn import OnePerSentence, Uniform
from ctxexp.baselines.size_matched import SizeMatched
from ctxexp.errors import UnknownName
from ctxexp.plugins import Register, hookimpl

BASELINES: dict[str, type[Baseline]] = {kind.name: kind for kind in (OnePerSentence, SizeMatched, Uniform)}


@hookimpl
def register_baselines(register: Register) -> None:
    for name, kind in BASELINES.items():
        register(name, kind)


def builtin_baseline(name: str) -> Baseline:
    """The built-in baseline of the name, with its defaults. Raises UnknownName for another's."""
    if name not in BASELINES:
        raise UnknownName("baseline", name, BASELINES)
    return BASELINES[name]()
