"""Trainings of a few steps on a few hundred made-up sentences."""

from __future__ import annotations

from pathlib import Path

import ctxexp_lab
import torch
from ctxexp_lab.training.train import TrainingRun
from omegaconf import DictConfig

SHAPE = "model.shape={vocabulary: 300, layers: 1, width: 16, heads: 4, inner: 64, positions: 16}"
TINY = {
    "bert": [SHAPE, "model.rows=4", "model.window=8", "model.long=16"],
    "gpt2": [SHAPE, "model.rows=4", "model.window=8", "model.long=16"],
    "elmo": [
        "model.vocabulary=40", "model.samples=64", "model.rows=4", "model.window=8", "model.options.lstm.dim=12",
        "model.options.lstm.projection_dim=8", "model.options.char_cnn.filters=[[1,4],[2,4]]",
    ],
}  # fmt: skip


def config(model: str, text: Path, tmp: Path, *overrides: str) -> DictConfig:
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(str(Path(ctxexp_lab.__file__).parent / "training" / "conf"), version_base="1.3"):
        return compose("train", overrides=[
            f"model={model}", f"text={text}", f"cache={text}/cache", f"folder={tmp}", "words=null", "log_every=2",
            "held_out_every=1000", "warmup=2", "keep=null", "tracking=null", *TINY[model], *overrides,
        ])  # fmt: skip


def weights(run: TrainingRun) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in run.learner.network.parameters()])
