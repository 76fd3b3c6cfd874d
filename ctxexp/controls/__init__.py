"""What may be done to the text, or left out of it, before anything is measured: one control a file."""

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
