"""`python -m ctxexp_multiverse.page SUMMARY`: a sweep's figure, numbers and their words into docs/."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from ctxexp.files.marked import write_marked, write_small
from ctxexp_multiverse.specifications import CHOICES

MARK, PAGE, NUMBERS = "multiverse", Path("docs") / "how-to.md", Path("docs") / "multiverse.csv"
DECIMALS = 4


def paragraph(numbers: pd.DataFrame) -> str:
    """In how many ways the claim holds, and the choice that most hangs on: whose values' shares lie farthest apart."""
    counted = numbers.verdict.value_counts()
    falls, rises = (int(counted.get(verdict, 0)) for verdict in ("falls", "rises"))
    shares = {choice: (numbers.verdict == "falls").groupby(numbers[choice]).mean() for choice in CHOICES}
    top = max(CHOICES, key=lambda choice: shares[choice].max() - shares[choice].min())
    most, least = ((at, _falls(numbers[numbers[top] == at])) for at in (shares[top].idxmax(), shares[top].idxmin()))
    return (
        f"For `{numbers.model[0]}` the measures fall in {falls} of {len(numbers)} ways, rise in {rises} and are open "
        f"in {len(numbers) - falls - rises}. Most hangs on the {top}: with *{most[0]}* they fall in {most[1]}, "
        f"with *{least[0]}* in {least[1]}."
    )


def _falls(some: pd.DataFrame) -> str:
    return f"{(some.verdict == 'falls').sum()} of {len(some)}"


def write(summary: Path, root: Path) -> None:
    """Take the specification curve, its numbers and their words into the checkout at `root`."""
    numbers = pd.read_csv(summary / "table_multiverse.csv").round(DECIMALS)
    numbers.to_csv(root / NUMBERS, index=False)
    write_small(summary / "multiverse.png", root / "docs" / "multiverse.png")
    write_marked(root / PAGE, MARK, paragraph(numbers))


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path.cwd())
