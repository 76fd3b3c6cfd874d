"""No control."""

from __future__ import annotations

from ctxexp.control import Control


class Uncontrolled(Control):
    """The text as it is, every occurrence measured."""

    name = "none"
    label = ""
