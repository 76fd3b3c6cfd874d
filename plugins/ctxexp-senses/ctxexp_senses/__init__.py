"""Senses for ctxexp: what context is made of, and corpora, metrics and an experiment of real senses."""

from __future__ import annotations

from pathlib import Path

import ctxexp
from ctxexp.plugins import Register


@ctxexp.hookimpl
def register_metrics(register: Register) -> None:
    register("variance_components", "ctxexp_senses.components.metric:VarianceComponents")


@ctxexp.hookimpl
def register_tables(register: Register) -> None:
    register("what_is_context", "ctxexp_senses.components.figure:table")


@ctxexp.hookimpl
def register_figures(register: Register) -> None:
    register("what_is_context", "ctxexp_senses.components.figure:figure")


@ctxexp.hookimpl
def config_folders() -> str:
    return str(Path(__file__).parent / "conf")
