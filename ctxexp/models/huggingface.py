"""`model=huggingface model.checkpoint=<id, folder or GGUF file>`: any encoder or decoder that `transformers` loads."""

from __future__ import annotations

from typing import Any, get_args

from ctxexp.errors import UnknownName
from ctxexp.model import Encoder
from ctxexp.models import minis
from ctxexp.models.choices import Reading, Weights, check_weights, reads
from ctxexp.models.known import known
from ctxexp.models.transformer.checkpoints import PUBLISHED, Checkpoint, describe, from_hub, resolve


@reads
def huggingface(
    *, reading: Reading, checkpoint: str, revision: str | None = None, trust_remote_code: bool = False
) -> Encoder:
    """All layers of any transformers encoder or decoder (BERT, RoBERTa, GPT-2, Llama, Qwen, T5's encoder ...).

    checkpoint: a folder, an id of the hub (its cache is looked in first), both safetensors only, or a GGUF file.
    revision: a branch, tag or commit of the hub.
    trust_remote_code: run the model code that a checkpoint brings along.
    """
    return checkpoint_encoder(resolve(checkpoint, revision), reading, trust_remote_code=trust_remote_code)


def checkpoint_encoder(checkpoint: Checkpoint, reading: Reading, **choices: Any) -> Encoder:
    """The encoder of the checkpoint's files, loaded when it must encode; `choices` as `from_files` takes them.

    What a plugin with a checkpoint of its own calls, its arguments taken by `ctxexp.models.choices.reads`.
    """

    def load() -> Encoder:
        from ctxexp.models.transformer.build import from_files

        return from_files(checkpoint, reading, **choices)

    if choices.get("trust_remote_code") or reading.quantization:  # code from elsewhere decides
        return load()
    return known((checkpoint, reading, choices), load, device=reading.device)


def choose(
    kind: str, reading: Reading, *, weights: Weights, checkpoint: str | None, revision: str | None, seed: int
) -> Encoder:
    """The encoder of `model=bert` or `model=gpt2` under `weights`: mini, published or untrained.

    `checkpoint` replaces the files that `weights` stands for, and must be of the same type; with `weights=untrained`
    its config and tokenizer are used, its weights drawn anew with `seed`.
    """
    if weights not in get_args(Weights):
        raise UnknownName("weights", weights, get_args(Weights))
    check_weights(weights, checkpoint, revision, seed)
    if checkpoint is not None:
        found = resolve(checkpoint, revision)
    elif weights == "published":
        found = from_hub(PUBLISHED[kind].ids, revision or PUBLISHED[kind].revision, verified=True)
    else:
        found = describe(minis.folder(kind), source=f"ctxexp mini {kind}")
    return checkpoint_encoder(found, reading, untrained=seed if weights == "untrained" else None, expect=kind)
