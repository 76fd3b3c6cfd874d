"""`python -m ctxexp_lab.training.condense FOLDER FILE`: a training's checkpoint as a file to keep, a sixth as large.

Weights, softmax included, are rounded to float16 and the optimiser's moments left out. As FOLDER/checkpoint.pt it lets
`ctxexp train` go on elsewhere, with moments and warm-up anew: not to the bit what an uninterrupted training gives.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch


def condense(folder: Path, file: Path) -> None:
    checkpoint = torch.load(folder / "checkpoint.pt", weights_only=True)
    half = {name: weight.half() for name, weight in checkpoint["network"].items()}
    torch.save(checkpoint | {"network": half, "optimiser": None}, file)


if __name__ == "__main__":
    condense(Path(sys.argv[1]), Path(sys.argv[2]))
