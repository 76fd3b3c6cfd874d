"""Training steps of checkpoints, by the names that trainers give them."""

from __future__ import annotations

import re
from pathlib import Path

_STEP = re.compile(r"(?:^|[-_ ])(?:step|checkpoint|ckpt|iter)[-_]?(\d+)$", re.IGNORECASE)
_FOLDERS = ("checkpoints",)  # of a training's folder, whose name is no model's


def training_step(name: str) -> int | None:
    """The step of a revision or folder of that name; None for a name of no step.

    Example:
        >>> [training_step(name) for name in ("step1000", "checkpoint-500", "global_step3", "main", "bert-base-2")]
        [1000, 500, 3, None, None]
    """
    match = _STEP.search(name)
    return int(match[1]) if match else None


def training_of(folder: Path) -> str:
    """The name of the training whose checkpoints lie beside this one: `gpt2` of `gpt2/checkpoints/step8`."""
    return next((part for part in reversed(folder.parent.parts) if part not in _FOLDERS), "")
