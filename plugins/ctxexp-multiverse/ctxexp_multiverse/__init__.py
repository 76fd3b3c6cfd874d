"""One claim over every choice that could be defended: a specification curve of a sweep's runs."""

from __future__ import annotations

from pathlib import Path

import ctxexp
from ctxexp.plugins import Register
from ctxexp_multiverse.joint import Joint, joint
from ctxexp_multiverse.specifications import Specification, specifications

__all__ = ["Joint", "Specification", "joint", "specifications"]


@ctxexp.hookimpl
def register_figures(register: Register) -> None:
    register("multiverse", "ctxexp_multiverse.figure:figure")


@ctxexp.hookimpl
def register_tables(register: Register) -> None:
    register("multiverse", "ctxexp_multiverse.table:table")
    register("multiverse_joint", "ctxexp_multiverse.table:joint_table")


@ctxexp.hookimpl
def config_folders() -> str:
    return str(Path(__file__).parent / "conf")
