"""A pair of small models through their training: heat maps, numbers, and a table of the last layer."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ctxexp.report import decimal
from docs.numbers.part import Part, markdown, one_run_each

DECIMALS = 4
HEAD = ["training", "measure", "layer"]


def collected(summary: Path) -> pd.DataFrame:
    """The sweep's table of training steps."""
    return pd.read_csv(summary / "table_training_steps.csv").round(DECIMALS)


def table(numbers: pd.DataFrame) -> str:
    """A Markdown table: each measure's last layer by step; of the first word's length the layer that ends
    farthest from chance."""
    steps = sorted(numbers.step.unique())
    rows = []
    for (training, measure), of_measure in numbers.groupby(["training", "measure"], sort=False):
        by_layer = of_measure.pivot(index="layer", columns="step", values="value")
        layer = by_layer[steps[-1]].abs().idxmax() if measure == "first_word_length" else by_layer.index[-1]
        values = [decimal(by_layer.loc[layer, step]) for step in steps]
        rows.append([f"`{training}`", measure.replace("_", " "), str(layer), *values])
    return markdown([*HEAD, *(f"step {step}" for step in steps)], rows) + one_run_each(numbers.training)


PART = Part(
    mark="training steps",
    page="docs/how-to/follow-a-model-through-its-training.md",
    numbers="training_steps.csv",
    kept=collected,
    table=table,
    figures={"training_steps.png": "training_steps.png"},
)
