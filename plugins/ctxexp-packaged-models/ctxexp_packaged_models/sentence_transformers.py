"""`model=sentence_transformer model.checkpoint=...`: the transformer inside any sentence-transformers model."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ctxexp
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
    if find_spec("sentence_transformers") is None:
        raise ModelError(
            "model=sentence_transformer needs the library sentence-transformers, which isn't installed: "
            "pip install 'ctxexp-packaged-models[sentence-transformer]'"
        )
    folder = _transformer_folder(checkpoint, revision)
    files = Checkpoint.of(str(folder))
    settings = files.sentence_settings
    if settings.get("do_lower_case") and not lowered:
        raise ModelError(
            f"{checkpoint} lower-cases its texts before its tokenizer sees them; run it with words.lower=true and "
            "confirm with model.lowered=true"
        )
    commit = re.search(r"[\\/]snapshots[\\/]([0-9a-f]{40})", str(folder))
    limit = settings.get("max_seq_length")
    options = replace(options, window=limit if isinstance(limit, int) else None)
    files = replace(files, source=checkpoint)
    if commit:  # the hub's name of it stands for its weights
        files = replace(files, revision=commit.group(1), weights_sha256="")
    return checkpoint_encoder(files, options, used="do_lower_case")


def _transformer_folder(checkpoint: str, revision: str | None) -> Path:
    """The folder of the first module, from the hub's cache or the hub if `checkpoint` is no folder."""
    if Path(checkpoint).expanduser().is_dir() and revision is not None:
        raise ModelError(f"revision={revision} names a commit of the hub, and {checkpoint} is a folder: leave it out")
    listing = _locate(checkpoint, revision, "modules.json")
    modules = json.loads(listing.read_text(encoding="utf-8")) if listing else []
    if not modules and not _locate(checkpoint, revision, "config.json"):
        raise ModelError(
            f"no sentence-transformers model {checkpoint!r}: expected a folder or hub id with modules.json (or "
            "config.json); without a network, the hub's cache must hold it"
        )
    first = modules[0] if modules else {"type": "Transformer", "path": ""}
    if not re.search(r"(^|\.)Transformer$", first["type"]):
        raise ModelError(f"{checkpoint} begins with {first['type']}, which has no layers; expected a Transformer")
    folder = _locate(checkpoint, revision, None, first["path"])
    if folder is None:
        raise ModelError(
            f"{checkpoint} lacks the folder {first['path']!r} of its transformer, which modules.json names"
        )
    return folder


def _locate(checkpoint: str, revision: str | None, file: str | None, subfolder: str = "") -> Path | None:
    """A file, or with `file` None a folder, as the library finds it: on disk, in the hub's cache, at the hub."""
    from sentence_transformers.util import load_dir_path, load_file_path

    source = str(Path(checkpoint).expanduser()) if Path(checkpoint).expanduser().is_dir() else checkpoint
    for cached in (True, False):
        options: dict[str, Any] = {"revision": revision, "local_files_only": cached}
        try:
            path = (
                load_dir_path(source, subfolder, **options) if file is None else load_file_path(source, file, **options)
            )
        except Exception as error:  # which exceptions mean "no network" depends on the hub library's HTTP client
            if cached:
                continue
            raise ModelError(f"cannot reach {checkpoint}: {type(error).__name__}: {error}") from error
        if path is not None:
            return Path(path)
    return None
