"""What the first position does: every measure under each condition of what stands first, in one figure and table."""

from __future__ import annotations

from pathlib import Path

import ctxexp
from ctxexp.plugins import Register


@ctxexp.hookimpl
def register_figures(register: Register) -> None:
    register("first_word", "ctxexp_first_word.figure:figure")


@ctxexp.hookimpl
def register_tables(register: Register) -> None:
    register("first_word", "ctxexp_first_word.table:table")


@ctxexp.hookimpl
def config_folders() -> str:
    return str(Path(__file__).parent / "conf")
