"""Data sets of the Hugging Face hub as streams, and Ray's clusters as an engine."""

from __future__ import annotations

import ctxexp
from ctxexp import Register


@ctxexp.hookimpl
def register_datasets(register: Register) -> None:
    register("huggingface", "ctxexp_scale.huggingface:huggingface")


@ctxexp.hookimpl
def register_engines(register: Register) -> None:
    register("ray", "ctxexp_scale.ray.engine:RayEngine")
