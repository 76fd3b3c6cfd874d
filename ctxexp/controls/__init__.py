"""The built-in controls, which change the text or leave occurrences out before measuring: one per file."""

from __future__ import annotations

from ctxexp.controls.no_first import NoFirst
from ctxexp.controls.no_sinks import NoSinks
from ctxexp.controls.none import Uncontrolled
from ctxexp.controls.shuffled import Shuffled
from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_controls(register: Register) -> None:
    for control in (Uncontrolled, Shuffled, NoFirst, NoSinks):
        register(control.name, control)
