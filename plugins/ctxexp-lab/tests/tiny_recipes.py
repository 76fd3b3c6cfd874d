"""Trainings of a few steps on a few hundred made-up sentences."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import ctxexp_lab
import torch
from ctxexp_lab.training.train import TrainingRun
from omegaconf import DictConfig

from ctxexp.models import minis

SHAPE = "model.shape={vocabulary: 300, layers: 1, width: 16, heads: 4, inner: 64, positions: 16}"
TINY = {
    "bert": [SHAPE, "model.rows=4", "model.window=8", "model.long=16"],
    "gpt2": [SHAPE, "model.rows=4", "model.window=8", "model.long=16"],
    "elmo": [
        "model.vocabulary=40", "model.samples=64", "model.rows=4", "model.window=8", "model.options.lstm.dim=12",
        "model.options.lstm.projection_dim=8", "model.options.char_cnn.filters=[[1,4],[2,4]]",
    ],
}  # fmt: skip


def composed(*overrides: str) -> DictConfig:
    """The recipe of these words."""
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(str(Path(ctxexp_lab.__file__).parent / "training" / "conf"), version_base="1.3"):
        return compose("train", overrides=list(overrides))


def config(model: str, text: Path, folder: Path, *overrides: str) -> DictConfig:
    return composed(
        f"model={model}", f"text={text}", f"cache={text}/cache", f"folder={folder}", "words=null", "log_every=2",
        "held_out_every=1000", "warmup=2", "keep=null", "tracking=null", *TINY[model], *overrides,
    )  # fmt: skip


@cache
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(minis.folder("gpt2"))


def network(seed: int = 0) -> Any:
    """An untrained GPT-2 of two layers, whose pieces are the mini's."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "bos_token_id": 0, "eos_token_id": 0}
    return GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer()), **sizes)).train()


def weights(run: TrainingRun) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in run.learner.network.parameters()])
