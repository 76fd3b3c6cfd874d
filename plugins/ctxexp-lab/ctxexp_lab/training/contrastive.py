"""Sentence vectors by contrast: the unsupervised objective of SimCSE (Gao, Yao & Chen 2021, section 3), on any network.

Departures: vectors are means of the last layer's pieces (or its first piece) without the MLP that the paper trains over
[CLS] and drops afterwards; sentences are those of the training text, not a million of Wikipedia's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ctxexp.command import registry
from ctxexp.errors import ConfigError, DataError, UnknownName
from ctxexp.models import Checkpoint, resolve_device
from ctxexp_lab.training.data import TextSource

DROPOUTS = (  # what the configurations of transformers call them
    "hidden_dropout_prob", "attention_probs_dropout_prob", "resid_pdrop", "embd_pdrop", "attn_pdrop", "dropout",
    "attention_dropout",
)  # fmt: skip
POOLINGS = ("mean", "cls")
LAST = 4096  # held-out sentences of the check at the end
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")  # between two sentences


class Contrastive:
    """A network in training with `info_nce` of its sentences' vectors, each under two dropout masks."""

    unit = "sentence"

    def __init__(self, cfg: Any, text: TextSource) -> None:
        self.cfg, self.choices = cfg, cfg.contrastive
        _check(cfg)
        self.train = _sentences(text.lines(), self.choices.least_words, text.words)
        self.train = [self.train[i] for i in np.random.default_rng(cfg.seed).permutation(len(self.train))]
        self.other = _sentences(text.held_out_lines(), self.choices.least_words, None)
        for name, some in (("training", self.train), ("held-out", self.other)):
            if len(some) < cfg.model.rows:
                raise DataError(
                    f"the {name} text has {len(some)} sentences of {self.choices.least_words} words or more, fewer "
                    f"than one step's model.rows={cfg.model.rows}"
                )
        self.device = resolve_device(cfg.device)
        self.network, self.tokenizer = load(cfg, dropout=self.choices.dropout)
        self.network.to(self.device).train()

    def units(self, step: int, steps: int | None) -> int:
        """Sentences of a step."""
        return int(self.cfg.model.rows)

    def batch(self, step: int) -> list[str]:
        """The sentences of `step`: a text that is read through begins again."""
        rows = self.cfg.model.rows
        return [self.train[i % len(self.train)] for i in range(step * rows, (step + 1) * rows)]

    def loss(self, step: int, steps: int | None) -> Tensor:
        """Mean nats in the batch of `step`, a function of the weights, the seed and `step` alone."""
        torch.manual_seed(self.cfg.seed * 1_000_003 + step)  # of the dropout masks
        return info_nce(*self.views(self.batch(step)), self.choices.temperature)[0]

    def views(self, sentences: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Vectors (n, d) of the sentences under one dropout mask and under another, float32."""
        read = self.tokenizer(
            list(sentences), truncation=True, max_length=self.choices.length, padding=True, return_tensors="pt"
        ).to(self.device)
        twice = {key: torch.cat([read[key], read[key]]) for key in ("input_ids", "attention_mask")}
        hidden = self.network(**twice).last_hidden_state.float()
        if self.choices.pooling == "cls":
            pooled = hidden[:, 0]
        else:
            mask = twice["attention_mask"][:, :, None].float()
            pooled = (hidden * mask).sum(1) / mask.sum(1)
        return pooled[: len(sentences)], pooled[len(sentences) :]

    @torch.no_grad()
    def held_out(self, limit: int | None) -> dict[str, float]:
        """Over the first `limit` (4,096 at the end) held-out sentences, in batches of a step's size, dropout on: the
        loss; `chance`, the loss of equal vectors; `right`, the share whose other view is the nearest; `alignment`, the
        mean cosine of a sentence's two views; `unrelated`, that of two sentences."""
        rows = self.cfg.model.rows
        n = min(len(self.other), limit or LAST) // rows * rows
        parts: list[tuple[Tensor, Tensor]] = []
        for start in range(0, max(n, rows), rows):
            torch.manual_seed(start)
            parts.append(info_nce(*self.views(self.other[start : start + rows]), self.choices.temperature))
        cosines = torch.stack([cosine for _, cosine in parts]).double()  # (batches, rows, rows)
        own = cosines.diagonal(dim1=1, dim2=2)
        return {
            "loss": torch.stack([loss for loss, _ in parts]).double().mean().item(),
            "chance": math.log(rows),
            "right": (cosines.argmax(2) == torch.arange(rows, device=cosines.device)).double().mean().item(),
            "alignment": own.mean().item(),
            "unrelated": ((cosines.sum((1, 2)) - own.sum(1)) / (rows * (rows - 1))).mean().item(),
            "predicted": float(len(parts) * rows),
        }

    def begin_from(self, folder: Path) -> None:
        """Nothing: the network began as `start` when it was built."""

    def export(self, folder: Path) -> None:
        """Writes a `transformers` folder: weights, float16, with the dropout that the network came with; tokenizer."""
        import copy

        half = copy.deepcopy(self.network).to(torch.float16)
        half.config.dtype = torch.float16
        for key, value in _dropouts(half.config).items():
            setattr(half.config, key, self.network.config.ctxexp_dropouts.get(key, value))
        del half.config.ctxexp_dropouts
        half.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)


def info_nce(first: Tensor, second: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """The loss of Gao et al. 2021, equation 4, in nats, and the cosines (n, n) of both views.

    -log exp(cos(a_i, b_i) / t) / sum_j exp(cos(a_i, b_j) / t), averaged over i, of views `first` a and `second` b,
    (n, d) each. Equal vectors give log n; the least is log(1 + (n - 1) exp(-2 / t)) for n = 2 and near 0 for large d.
    """
    cosine = functional.normalize(first, dim=1) @ functional.normalize(second, dim=1).T
    target = torch.arange(len(cosine), device=cosine.device)
    return functional.cross_entropy(cosine / temperature, target), cosine


def load(cfg: Any, *, dropout: float) -> tuple[Any, Any]:
    """The network and tokenizer of `start`, with `dropout` in every dropout layer; drawn anew where
    `contrastive.untrained` says so."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer
    from transformers.utils import logging

    folder = start_folder(cfg)
    config = AutoConfig.from_pretrained(folder)
    config.ctxexp_dropouts = _dropouts(config)  # to be written back
    for key in config.ctxexp_dropouts:
        setattr(config, key, dropout)
    extra = {"add_pooling_layer": False} if config.model_type in ("bert", "roberta") else {}
    torch.manual_seed(cfg.seed)
    logging.set_verbosity_error()  # of heads that aren't loaded
    if cfg.contrastive.untrained:
        network = AutoModel.from_config(config, **extra).float()
    else:
        network = AutoModel.from_pretrained(folder, config=config, dtype=torch.float32, **extra)
    if not any(type(m).__name__ == "Dropout" and m.p == dropout for m in network.modules()):
        raise ConfigError(f"start={cfg.start}: its network has no dropout layers, so that two views would be alike")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return network, tokenizer


def start_folder(cfg: Any) -> Path:
    """The folder of `start`: that of the mini of `model`, or what a name of the hub or a path stands for."""
    if cfg.start is None:
        raise ConfigError("objective=contrastive goes on from a network: start=mini, a transformers folder or hub name")
    if str(cfg.start) == "mini":
        return Path(registry().find("model", cfg.model.name).factory(device="cpu").checkpoint.folder)
    return Checkpoint.of(str(cfg.start)).folder


def _check(cfg: Any) -> None:
    if cfg.model.name == "elmo":
        raise ConfigError("objective=contrastive is for transformers: model=bert, model=gpt2 or start=<folder>")
    choices = cfg.contrastive
    if choices.pooling not in POOLINGS:
        raise UnknownName("pooling", str(choices.pooling), POOLINGS)
    if not 0 < choices.dropout < 1:
        raise ConfigError(f"contrastive.dropout={choices.dropout}: expected a share above 0 and below 1")
    if cfg.model.rows < 2:
        raise ConfigError(f"model.rows={cfg.model.rows}: expected 2 sentences a step or more, as there are no others")


def _dropouts(config: Any) -> dict[str, float]:
    return {key: getattr(config, key) for key in DROPOUTS if hasattr(config, key)}


def _sentences(lines: Iterator[str], least: int, words: int | None) -> list[str]:
    """Distinct sentences of `least` words or more, of the first `words` words."""
    distinct: dict[str, None] = {}
    read = 0
    for line in lines:
        for sentence in _END.split(line.strip()):
            if len(sentence.split()) >= least:
                distinct.setdefault(sentence)
        read += len(line.split())
        if words is not None and read >= words:
            break
    return list(distinct)
