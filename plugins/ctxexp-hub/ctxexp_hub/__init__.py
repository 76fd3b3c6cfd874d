"""Data sets of the Hugging Face hub, and runs sent to Weights & Biases and to Trackio."""

from __future__ import annotations

import ctxexp
from ctxexp import Register


@ctxexp.hookimpl
def register_datasets(register: Register) -> None:
    register("huggingface", "ctxexp_hub.huggingface:huggingface")


@ctxexp.hookimpl
def register_sinks(register: Register) -> None:
    register("wandb", "ctxexp_hub.wandb:WandbSink")
    register("trackio", "ctxexp_hub.trackio:TrackioSink")
