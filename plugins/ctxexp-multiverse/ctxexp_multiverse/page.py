"""`python -m ctxexp_multiverse.page SUMMARY`: figure and numbers of a sweep's summary folder into docs/."""

from __future__ import annotations

import sys
from pathlib import Path

DECIMALS = 4


def write(summary: Path, docs: Path) -> None:
    """Take the specification curve and its numbers into the docs, whose sentence about them a test holds."""
    import pandas as pd
    from PIL import Image

    numbers = pd.read_csv(summary / "table_multiverse.csv")
    numbers.round(DECIMALS).to_csv(docs / "multiverse.csv", index=False)
    with Image.open(summary / "multiverse.png") as drawn:
        drawn.convert("RGB").quantize(64).save(docs / "multiverse.png", optimize=True)


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path("docs"))
