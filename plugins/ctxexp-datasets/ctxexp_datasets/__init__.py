"""Hugging Face data sets for ctxexp: text of the hub, or of Parquet, JSON lines and Arrow files, streamed."""

from __future__ import annotations

from pathlib import Path

import ctxexp
from ctxexp.plugins import Register


@ctxexp.hookimpl
def register_datasets(register: Register) -> None:
    register("huggingface", "ctxexp_datasets.rows:huggingface")


@ctxexp.hookimpl
def config_folders() -> str:
    return str(Path(__file__).parent / "conf")
