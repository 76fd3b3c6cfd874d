"""`python -m ctxexp_compare.page FOLDER`: a comparison's heat maps and numbers into docs/, their words into a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ctxexp.files.marked import write_marked, write_small

if TYPE_CHECKING:
    import pandas as pd

MARK, PAGE = "numbers", Path("measures") / "two-spaces.md"
SHOWN = {"cka": "CKA", "mutual_knn": "mutual nearest neighbours"}
DECIMALS = 4


def paragraph(numbers: pd.DataFrame) -> str:
    """What the numbers say: by each measure the most alike layers of two models, and the two layers of one model that
    the measures disagree most on."""
    apart = numbers[numbers.run_a != numbers.run_b]
    said = []
    for measure, name in SHOWN.items():
        rows = apart[apart.measure == measure]
        row = rows.loc[rows.adjusted.idxmax()]
        said.append(f"by {name} {_place(row, 'a')} and {_place(row, 'b')}, {_value(row)}")
    first = f"Most alike across models are {', and '.join(said)}."
    keys = ["run_a", "layer_a", "run_b", "layer_b"]
    within = numbers[numbers.run_a == numbers.run_b].set_index(keys)
    one, other = (within[within.measure == measure] for measure in SHOWN)
    at = (one.adjusted - other.adjusted).abs().idxmax()
    told = ", ".join(f"{name} {_value(rows.loc[at])}" for name, rows in zip(SHOWN.values(), (one, other), strict=True))
    return f"{first} The measures disagree most about {at[0]}'s layers {at[1]} and {at[3]}: {told}."


def kept(numbers: pd.DataFrame) -> pd.DataFrame:
    """What the paragraph is made of: each pair of places once, the measures that are shown."""
    place = {pair: i for i, pair in enumerate(dict.fromkeys(zip(numbers.run_a, numbers.layer_a, strict=True)))}
    a = [place[pair] for pair in zip(numbers.run_a, numbers.layer_a, strict=True)]
    b = [place[pair] for pair in zip(numbers.run_b, numbers.layer_b, strict=True)]
    once = np.array(a) < np.array(b)
    columns = ["measure", "run_a", "layer_a", "run_b", "layer_b", "adjusted", "adjusted_low", "adjusted_high"]
    return numbers[once & numbers.measure.isin(SHOWN).to_numpy()][columns].round(DECIMALS)


def write(folder: Path, docs: Path) -> None:
    """Take the heat maps and numbers of a comparison's folder into the docs."""
    import pandas as pd

    numbers = kept(pd.read_csv(folder / "compare.csv"))
    numbers.to_csv(docs / "two_spaces.csv", index=False)
    for measure in SHOWN:
        write_small(folder / f"compare_{measure}.png", docs / f"two_spaces_{measure}.png")
    write_marked(docs / PAGE, MARK, paragraph(numbers))


def _place(row: pd.Series, end: str) -> str:
    return f"{row[f'run_{end}']}'s layer {row[f'layer_{end}']}"


def _value(row: pd.Series) -> str:
    return f"{row.adjusted:.2f} [{row.adjusted_low:.2f}, {row.adjusted_high:.2f}]"


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path("docs"))
