"""Split words: their shares recovered by layer, and a table of the layer of most."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from docs.numbers.part import Part, markdown, one_run_each

DECIMALS = 4
HEAD = [
    "model",
    "words",
    "layer of most",
    "split",
    "mismatched",
    "gain",
    "alone",
    "in one piece",
    "chance",
]


def collected(made: Path) -> pd.DataFrame:
    """The verb's table."""
    return pd.read_csv(made / "split_words.csv").round(DECIMALS)


def table(numbers: pd.DataFrame) -> str:
    """A Markdown table: of each model the layer in which most split words are recovered."""
    rows = []
    for model, of_model in numbers.groupby("model", sort=False):
        split = of_model[of_model.condition == "split"]
        layer = split.layer[split.share.idxmax()]
        at = of_model[of_model.layer == layer].set_index("condition")
        shown = ("split", "mismatched", "gain", "alone", "whole")
        cells = [percent(at.loc[name]) if name in at.index else "" for name in shown]
        rows.append([f"`{model}`", str(split.words.iloc[0]), str(layer), *cells, f"{split.chance.iloc[0]:.1%}"])
    return markdown(HEAD, rows) + one_run_each(numbers.model)


def percent(row: pd.Series) -> str:
    """A share with its interval: `21% [15, 28]`."""
    low, high = (round(100 * row[end]) for end in ("low", "high"))
    return f"{round(100 * row.share)}% [{low}, {high}]"


PART = Part(
    mark="split words",
    page="docs/measures/split-words.md",
    numbers="split_words.csv",
    kept=collected,
    table=table,
    figures={"split_words.png": "split_words.png"},
)
