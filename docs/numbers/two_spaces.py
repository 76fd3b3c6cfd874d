"""A comparison of models: its heat maps and numbers, and their words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ctxexp.report.negative_controls import ONE_TRAINING_RUN
from docs.numbers.part import Part

SHOWN = {"cka": "CKA", "mutual_knn": "mutual nearest neighbours"}
DECIMALS = 4
RUNS = f"{ONE_TRAINING_RUN}; intervals are over the text, and don't know that these layers were chosen."


def paragraph(numbers: pd.DataFrame) -> str:
    """What the numbers say: by each measure the most alike layers of two models, and the two layers of one model that
    the measures disagree most on."""
    apart = numbers[numbers.run_a != numbers.run_b]
    said = []
    for measure, name in SHOWN.items():
        rows = apart[apart.measure == measure]
        row = rows.loc[rows.adjusted.idxmax()]
        bare = ", which know words and positions alone" if row.layer_a == row.layer_b == 0 else ""
        said.append(f"by {name} {_place(row, 'a')} and {_place(row, 'b')}, {_value(row)}{bare}")
    first = f"Most alike across models are {', and '.join(said)}."
    keys = ["run_a", "layer_a", "run_b", "layer_b"]
    within = numbers[numbers.run_a == numbers.run_b].set_index(keys)
    one, other = (within[within.measure == measure] for measure in SHOWN)
    at = (one.adjusted - other.adjusted).abs().idxmax()
    told = ", ".join(f"{name} {_value(rows.loc[at])}" for name, rows in zip(SHOWN.values(), (one, other), strict=True))
    disagree = f"The measures disagree most about {at[0]}'s layers {at[1]} and {at[3]}: {told}."
    return f"Beyond which word stands where, rows at norm 1: {first[0].lower()}{first[1:]} {disagree} {RUNS}"


def kept(folder: Path) -> pd.DataFrame:
    """What the paragraph is made of: each pair of places once, the measures that are shown."""
    numbers = pd.read_csv(folder / "compare.csv")
    place = {pair: i for i, pair in enumerate(dict.fromkeys(zip(numbers.run_a, numbers.layer_a, strict=True)))}
    a = [place[pair] for pair in zip(numbers.run_a, numbers.layer_a, strict=True)]
    b = [place[pair] for pair in zip(numbers.run_b, numbers.layer_b, strict=True)]
    once = np.array(a) < np.array(b)
    columns = ["measure", "run_a", "layer_a", "run_b", "layer_b", "adjusted", "adjusted_low", "adjusted_high"]
    return numbers[once & numbers.measure.isin(SHOWN).to_numpy()][columns].round(DECIMALS)


def _place(row: pd.Series, end: str) -> str:
    return f"{row[f'run_{end}']}'s layer {row[f'layer_{end}']}"


def _value(row: pd.Series) -> str:
    return f"{row.adjusted:.2f} [{row.adjusted_low:.2f}, {row.adjusted_high:.2f}]"


PART = Part(
    mark="numbers",
    page="docs/measures/two-spaces.md",
    numbers="two_spaces.csv",
    kept=kept,
    paragraph=paragraph,
    figures={f"two_spaces_{measure}.png": f"compare_{measure}.png" for measure in SHOWN},
)
