"""The built-in engines, which run the encoding work: one per file."""

from __future__ import annotations

from ctxexp.engines.local import Local
from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_engines(register: Register) -> None:
    register(Local.name, Local)
