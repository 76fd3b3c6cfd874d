"""`model=bert`: the mini that ships with ctxexp, the published bert-base-cased, or either one untrained."""

from __future__ import annotations

from ctxexp.model import Encoder
from ctxexp.models.choices import Dtype, Linear, Long, Pooling, Reading, Weights
from ctxexp.models.huggingface import choose


def bert(
    *,
    weights: Weights = "mini",
    checkpoint: str | None = None,
    revision: str | None = None,
    pooling: Pooling = "mean",
    final_norm: bool = True,
    long: Long = "window",
    stride: int | None = None,
    device: str = "auto",
    dtype: Dtype = "float32",
    linear: Linear = "auto",
    seed: int = 0,
) -> Encoder:
    """All layers of BERT: weights=mini ships with ctxexp, weights=published is bert-base-cased.

    weights: mini, published (pinned; from the hub's cache or the hub) or untrained (the mini's shape, drawn anew).
    checkpoint: a folder or hub id of the same type, instead of the one that weights stands for.
    revision: a branch, tag or commit of the hub, instead of the pinned one.
    pooling: mean, first or last of a word's pieces; pieces: each piece is a unit.
    final_norm: must stay true: BERT normalises inside its blocks and has no final norm to leave out.
    long: window (overlapping windows, each piece from where it has most context) or refuse.
    stride: pieces from one window's start to the next; null is half a window.
    device: auto, cpu, cuda or mps.
    dtype: float32, bfloat16 or float16, for computing; half types are stored as float16.
    linear: products in float32 on a CPU: plain (torch's own), prepacked (oneDNN's), or the quicker one here (auto).
    seed: of weights=untrained.
    """
    reading = Reading(
        pooling=pooling, final_norm=final_norm, long=long, stride=stride, device=device, dtype=dtype, linear=linear
    )
    return choose("bert", reading, weights=weights, checkpoint=checkpoint, revision=revision, seed=seed)
