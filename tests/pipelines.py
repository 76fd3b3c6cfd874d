"""Small models of sentence-transformers around a tiny network, made by the library."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what the library's imports warn of is the library's business
    import sentence_transformers as st
    from sentence_transformers import models as modules

PROMPT = {"prompts": {"query": "the bank: "}, "default_prompt_name": "query"}


def pipeline(
    network: Path, *behind: torch.nn.Module, mode: Any = "mean", include_prompt: bool = True, **settings: Any
) -> Any:
    """A SentenceTransformer of a pooling and the modules behind it."""
    options = {key: settings.pop(key) for key in ("max_seq_length", "do_lower_case") if key in settings}
    words = modules.Transformer(str(network), **options)
    with torch.random.fork_rng(devices=[]):
        pooling = modules.Pooling(16, mode, include_prompt=include_prompt)
        return st.SentenceTransformer(modules=[words, pooling, *behind], device="cpu", **settings)


def dense(n: int = 8, seed: int = 0, of: int = 16, **options: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return modules.Dense(of, n, **options)


def saved(model: Any, folder: Path) -> Path:
    model.save_pretrained(str(folder), create_model_card=False)
    return folder
