"""The built-in controls, which change the text, read words alone or leave occurrences out: one per file."""

from __future__ import annotations

from ctxexp.controls.alone import Alone
from ctxexp.controls.no_first import NoFirst
from ctxexp.controls.no_sinks import NoSinks
from ctxexp.controls.none import Uncontrolled
from ctxexp.controls.shuffled import Shuffled
from ctxexp.plugins import Register, hookimpl


@hookimpl
def register_controls(register: Register) -> None:
    for control in (Uncontrolled, Alone, Shuffled, NoFirst, NoSinks):
        register(control.name, control)
