"""`python -m ctxexp_first_word.readme SUMMARY`: a sweep's figure and numbers into docs/, their words into README.md."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd

from ctxexp.files.marked import write_marked
from ctxexp_first_word.words import paragraph

MARK = "first word"
DECIMALS = 4  # of the numbers that are kept beside the README


def write(summary: Path, root: Path) -> None:
    """Take figure and table of the sweep's summary folder into the checkout at `root`."""
    numbers = pd.read_csv(summary / "table_first_word.csv").round(DECIMALS)
    shutil.copy(summary / "first_word.png", root / "docs" / "first_word.png")
    numbers.to_csv(root / "docs" / "first_word.csv", index=False)
    write_marked(root / "README.md", MARK, paragraph(numbers))


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path.cwd())
