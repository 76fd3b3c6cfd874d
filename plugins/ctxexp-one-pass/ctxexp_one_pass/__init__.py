"""Whole corpora for ctxexp: measured in one pass, vectors summed while they are encoded and none stored."""

from __future__ import annotations

from pathlib import Path

import ctxexp
from ctxexp.plugins import Register


@ctxexp.hookimpl
def register_measurers(register: Register) -> None:
    register("one_pass", "ctxexp_one_pass.measurer:OnePassMeasurer")


@ctxexp.hookimpl
def config_folders() -> str:
    return str(Path(__file__).parent / "conf")
