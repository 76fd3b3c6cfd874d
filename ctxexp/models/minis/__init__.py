"""The small models that ship with ctxexp; the plugin ctxexp-lab is the recipe that trained them (`ctxexp train`).

BERT, GPT-2 and ELMo of one layer width and size, trained on text of one collection: BERT and ELMo on 48 million words
in the same order, GPT-2 on the first 12 million of them. `CARD.md` says what they are and how good.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ctxexp.errors import ModelError
from ctxexp.models.listing import ModelFiles

FILES = {
    "bert": ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
    "gpt2": ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
    "elmo": ("options.json", "weights.hdf5"),
}


def folder(name: str) -> Path:
    """Folder of a shipped model: `transformers` files for bert and gpt2, options.json and weights.hdf5 for elmo. Raises
    ModelError naming the files that are missing."""
    path = Path(__file__).parent / "weights" / name
    if missing := [file for file in FILES[name] if not (path / file).is_file()]:
        raise ModelError(
            f"mini {name!r} lacks {', '.join(missing)} in {path}: reinstall ctxexp, or train it with ctxexp-lab: "
            f"ctxexp train model={name} text=<folder of *.txt.xz>"
        )
    return path


def files(name: str) -> ModelFiles:
    """The files of a shipped model, for the list of models."""
    return ModelFiles(name, 0, "a small model that ships with ctxexp", "reinstall ctxexp", partial(folder, name))
