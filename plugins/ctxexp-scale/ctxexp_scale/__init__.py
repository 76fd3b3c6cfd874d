"""Texts beyond memory and beyond one process: bounded contexts, one pass, Ray's clusters as an engine."""

from __future__ import annotations

import ctxexp
from ctxexp import Register


@ctxexp.hookimpl
def register_readers(register: Register) -> None:
    register("words.max_contexts", "ctxexp_scale.bounded:BoundedContexts")
    register("one_pass.shards", "ctxexp_scale.one_pass:OnePass")


@ctxexp.hookimpl
def register_engines(register: Register) -> None:
    register("ray", "ctxexp_scale.ray.engine:RayEngine")
