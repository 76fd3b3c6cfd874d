"""`python -m ctxexp_senses.by_class.words SUMMARY`: a sweep's figures and last layers by class, and their words, into
docs/."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from ctxexp.files.writing import write_text
from ctxexp_senses.by_class.figure import COMPONENTS, SELF_SIMILARITY, SENSE_SEPARATION
from ctxexp_senses.components.figure import DECIMALS

BEGIN, END = "<!-- by class: begin -->\n\n", "\n\n<!-- by class: end -->"
NAME, PAGE = "by_class", Path("docs") / "measures" / "usages.md"
DRAWN = ("by_class_sense_separation", "by_class_components")
SPOKEN = {
    SENSE_SEPARATION.name: ("sense separation", ("pos", "pieces")),
    COMPONENTS.name: ("context", ("pos", "frequency", "pieces")),
    SELF_SIMILARITY.name: ("self-similarity", ("pieces",)),
}
KINDS = {"pos": "by part of speech", "frequency": "by occurrences", "pieces": "by tokens"}


def last_layers(numbers: pd.DataFrame) -> pd.DataFrame:
    """What is spoken of: each run's and measure's last layer."""
    last = numbers.groupby(["model", "corpus", "measure"]).layer.transform("max")
    return numbers[numbers.layer == last].round(DECIMALS).reset_index(drop=True)


def paragraph(numbers: pd.DataFrame) -> str:
    """What is found, an item a model and text: each measure by class in the last layer."""
    items = []
    for (model, corpus), rows in numbers.groupby(["model", "corpus"], sort=False):
        said = []
        for measure, (what, kinds) in SPOKEN.items():
            mine = rows[(rows.measure == measure) & rows.value.notna()]
            told = [f"{KINDS[kind]} {_classes(mine[mine.kind == kind], measure)}" for kind in kinds]
            said.append(f"{what} {', '.join(told)}")
        items.append(f"- `{model}` on {corpus}, last layer ({rows.layer.max()}): {'; '.join(said)}.")
    return "\n".join(items)


def _classes(rows: pd.DataFrame, measure: str) -> str:
    return ", ".join(f"{row['class']} {_value(row, percent=measure == COMPONENTS.name)}" for _, row in rows.iterrows())


def _value(row: pd.Series, *, percent: bool) -> str:
    value, low, high = (row[column] for column in ("value", "low", "high"))
    if percent:
        return f"{value:.0%} [{100 * low:.0f}, {100 * high:.0f}]"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def write(summary: Path, root: Path) -> None:
    """Take the figures and the table of a sweep's summary folder into the checkout at `root`."""
    from PIL import Image

    numbers = last_layers(pd.read_csv(summary / f"table_{NAME}.csv"))
    numbers.to_csv(root / "docs" / f"{NAME}.csv", index=False)
    for name in DRAWN:
        with Image.open(summary / f"{name}.png") as drawn:
            target = root / "docs" / "pictures" / f"{name}.png"
            drawn.convert("RGB").quantize(64).save(target, optimize=True)
    before, _, rest = (root / PAGE).read_text(encoding="utf-8").partition(BEGIN)
    write_text(root / PAGE, f"{before}{BEGIN}{paragraph(numbers)}{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path.cwd())
