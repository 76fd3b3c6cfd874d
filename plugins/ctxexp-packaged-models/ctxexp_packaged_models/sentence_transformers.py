"""`model=sentence_transformer model.checkpoint=...`: the transformer inside any sentence-transformers model."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import ctxexp
from ctxexp.datasets import user_path
from ctxexp.errors import ModelError
from ctxexp.models import Checkpoint, TransformerOptions, checkpoint_encoder, with_transformer_options


@with_transformer_options
def sentence_transformer(
    *, options: TransformerOptions, checkpoint: str, revision: str | None = None, lowered: bool = False
) -> ctxexp.Encoder:
    """All layers of the transformer inside a sentence-transformers model.

    checkpoint: a folder, or an id of the hub (its cache is looked in first); safetensors only.
    revision: a branch, tag or commit of the hub.
    lowered: confirms that words.lower=true is set, without which checkpoints that lower-case their texts are refused;
        it lower-cases nothing itself.

    Texts are read in windows of the model's own max_seq_length.
    """
    files = _files(checkpoint, revision)
    settings = files.sentence_settings
    if settings.get("do_lower_case") and not lowered:
        raise ModelError(
            f"{checkpoint} lower-cases its texts before its tokenizer sees them; run it with words.lower=true and "
            "confirm with model.lowered=true"
        )
    limit = settings.get("max_seq_length")
    options = replace(options, window=limit if isinstance(limit, int) else None)
    return checkpoint_encoder(replace(files, source=checkpoint), options, used="do_lower_case")


def _files(checkpoint: str, revision: str | None) -> Checkpoint:
    """The files of the first module: in older folders they lie in a folder of their own, which modules.json names."""
    folder = user_path(checkpoint)
    inside = folder / _first_module(folder, checkpoint) if folder.is_dir() else folder
    if folder.is_dir() and not (inside / "config.json").is_file():
        raise ModelError(f"no sentence-transformers model {checkpoint!r}: expected its transformer's files in {inside}")
    files = Checkpoint.of(checkpoint if inside == folder else str(inside), revision)
    _first_module(files.folder, checkpoint)  # refuses a hub model that doesn't begin with a Transformer
    return files


def _first_module(folder: Path, checkpoint: str) -> str:
    """The path of the first module, in the folder. Raises ModelError for one that is no transformer."""
    file = folder / "modules.json"
    first = json.loads(file.read_text(encoding="utf-8"))[0] if file.is_file() else {"type": "Transformer", "path": ""}
    if not re.search(r"(^|\.)Transformer$", first["type"]):
        raise ModelError(f"{checkpoint} begins with {first['type']}, which has no layers; expected a Transformer")
    return str(first["path"])
