"""`model=huggingface model.checkpoint=<id, folder or GGUF file>`: any encoder or decoder that `transformers` loads;
and the papers' two, `model=bert` and `model=gpt2`: the mini that ships with ctxexp, the published model, or either
untrained.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ctxexp.model import Encoder
from ctxexp.models import minis
from ctxexp.models.choices import (
    ModelFiles,
    TransformerOptions,
    Weights,
    check_weights,
    with_transformer_options,
)
from ctxexp.models.lazy import lazy
from ctxexp.models.transformer.checkpoints import (
    PUBLISHED_CHECKPOINTS,
    Checkpoint,
    cached_folder,
    describe,
    from_hub,
)
from ctxexp.models.transformer.leftovers import account, unused_files


@with_transformer_options
def huggingface(
    *, options: TransformerOptions, checkpoint: str, revision: str | None = None, trust_remote_code: bool = False
) -> Encoder:
    """All layers of any transformers encoder or decoder (BERT, RoBERTa, GPT-2, Llama, Qwen, T5's encoder ...).

    checkpoint: a folder, an id of the hub (its cache is looked in first), both safetensors only, or a GGUF file.
    revision: a branch, tag or commit of the hub.
    trust_remote_code: run the model code that a checkpoint brings along.
    """
    return checkpoint_encoder(Checkpoint.of(checkpoint, revision), options, trust_remote_code=trust_remote_code)


def checkpoint_encoder(
    checkpoint: Checkpoint, options: TransformerOptions, *, used: str = "", **choices: Any
) -> Encoder:
    """The encoder of the checkpoint's files, loaded when it must encode; `choices` as `from_files` takes them, `used`
    a setting of sentence-transformers that the caller sees to, so that it isn't called unused.

    A plugin with a checkpoint of its own calls this in a factory that is decorated with
    `ctxexp.models.with_transformer_options`.

    Example:
        >>> from ctxexp.models.minis import folder
        >>> encoder = checkpoint_encoder(Checkpoint.of(str(folder("bert"))), TransformerOptions(layers=[0, -1]))
        >>> encoder.n_layers
        5
    """

    def load() -> Encoder:
        from ctxexp.models.transformer.build import from_files

        return from_files(checkpoint, options, **choices)

    if not checkpoint.is_gguf and choices.get("untrained") is None:
        account([unused_files(checkpoint, used=used)], options.unused, checkpoint.source)
    if choices.get("trust_remote_code") or options.quantization:  # code from elsewhere decides
        return load()
    return lazy((checkpoint, options, choices), load, device=options.device)


def paper_model(kind: str, summary: str, published_bytes: float) -> Callable[..., Encoder]:
    """The factory of `model=bert` or `model=gpt2`, whose docstring begins with `summary`; the size is of the published
    files."""
    paper = PUBLISHED_CHECKPOINTS[kind]

    def build(
        *,
        options: TransformerOptions,
        weights: Weights = "mini",
        checkpoint: str | None = None,
        revision: str | None = None,
        seed: int = 0,
    ) -> Encoder:
        check_weights(weights, checkpoint, revision, seed)
        if checkpoint is not None:
            files = Checkpoint.of(checkpoint, revision)
        elif weights == "published":
            files = from_hub(paper.ids, revision or paper.revision, verified=True)
        else:
            files = describe(minis.folder(kind), source=f"ctxexp mini {kind}")
        return checkpoint_encoder(files, options, untrained=seed if weights == "untrained" else None, expect=kind)

    build.__name__, build.__qualname__, build.__module__ = kind, kind, f"ctxexp.models.{kind}"  # to be pickled by name
    build.__doc__ = f"""{summary}

    weights: mini, published (pinned; from the hub's cache or the hub) or untrained (the mini's shape, drawn anew).
    checkpoint: a folder, hub id or GGUF file of the same type, instead of the one that weights stands for.
    revision: a branch, tag or commit of the hub, instead of the pinned one.
    seed: of weights=untrained.
    """
    found, source = partial(cached_folder, paper.ids, paper.revision), f"{paper.ids[0]} of the hub"
    published = ModelFiles(
        f"{kind} weights=published", published_bytes, source, "downloaded when it is first used", found
    )
    return minis.files(kind)(published(with_transformer_options(build)))


bert = paper_model(
    "bert", "All layers of BERT: weights=mini ships with ctxexp, weights=published is bert-base-cased.", 436e6
)
gpt2 = paper_model("gpt2", "All layers of GPT-2: weights=mini ships with ctxexp, weights=published is gpt2.", 548e6)
