"""`model=bert`: the mini that ships with ctxexp, the published bert-base-cased, or either one untrained."""

from __future__ import annotations

from ctxexp.model import Encoder
from ctxexp.models.choices import TransformerOptions, Weights, with_transformer_options
from ctxexp.models.huggingface import choose, files_of
from ctxexp.models.listing import with_files


@with_files(*files_of("bert", 436e6))
@with_transformer_options
def bert(
    *,
    options: TransformerOptions,
    weights: Weights = "mini",
    checkpoint: str | None = None,
    revision: str | None = None,
    seed: int = 0,
) -> Encoder:
    """All layers of BERT: weights=mini ships with ctxexp, weights=published is bert-base-cased.

    weights: mini, published (pinned; from the hub's cache or the hub) or untrained (the mini's shape, drawn anew).
    checkpoint: a folder, hub id or GGUF file of the same type, instead of the one that weights stands for.
    revision: a branch, tag or commit of the hub, instead of the pinned one.
    seed: of weights=untrained.
    """
    return choose("bert", options, weights=weights, checkpoint=checkpoint, revision=revision, seed=seed)
