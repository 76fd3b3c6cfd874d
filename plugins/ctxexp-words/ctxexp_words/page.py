"""`python -m ctxexp_words.page SUMMARY`: the measured rows of a sweep's Table 1 into docs/, as CSV and in its page."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from ctxexp.files.marked import write_marked
from ctxexp_words.table_1 import HEADINGS, cell

MARK = "table 1"
NUMBERS, PAGE = Path("docs") / "table_1.csv", Path("docs") / "measures" / "static-vectors.md"
DECIMALS = 4


def paragraph(numbers: pd.DataFrame) -> str:
    """A Markdown table: a row a model and layer, a column a benchmark, with the share of it that is covered in its
    heading (the first row's: the text gives the vocabulary, whatever the model)."""
    first = numbers.iloc[0]
    headings = [f"{title} ({first[f'{name}_covered']:.0%})" for name, title in HEADINGS.items()]
    lines = [f"| model, layer | {' | '.join(headings)} |", "|---|" + "---:|" * len(headings)]
    for _, row in numbers.iterrows():
        values = " | ".join(cell(row[name]) for name in HEADINGS)
        lines.append(f"| {row.model}, {row.layer} | {values} |")
    return "\n".join(lines)


def write(summary: Path, root: Path) -> None:
    """Take a sweep's Table 1 from its summary folder into the checkout at `root`."""
    numbers = pd.read_csv(summary / "table_1.csv")
    numbers = numbers[numbers.source == "measured"].round(DECIMALS).astype({"layer": int})
    numbers.to_csv(root / NUMBERS, index=False)
    write_marked(root / PAGE, MARK, paragraph(numbers))


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path.cwd())
