"""Measures by class of word: their figures, last layers and a table of them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from ctxexp_measures.senses.by_class.figure import COMPONENTS, SELF_SIMILARITY, SENSE_SEPARATION
from ctxexp_measures.senses.components.figure import DECIMALS

from docs.numbers.part import Part, one_run_each

DRAWN = ("by_class_sense_separation", "by_class_components")
SPOKEN = {
    SENSE_SEPARATION.name: ("sense separation", ("pos", "pieces")),
    COMPONENTS.name: ("context", ("pos", "frequency", "pieces")),
    SELF_SIMILARITY.name: ("self-similarity", ("pos", "pieces")),
}
KINDS = {"pos": "{}", "frequency": "{} occurrences", "pieces": "{} tokens"}


def last_layers(summary: Path) -> pd.DataFrame:
    """What is spoken of: each run's and measure's last layer."""
    numbers = pd.read_csv(summary / "table_by_class.csv")
    last = numbers.groupby(["model", "corpus", "measure"]).layer.transform("max")
    return numbers[numbers.layer == last].round(DECIMALS).reset_index(drop=True)


def table(numbers: pd.DataFrame) -> str:
    """A Markdown table of one text: a row a measure and class, a column a model's last layer."""
    layers = {str(model): rows.layer.max() for model, rows in numbers.groupby("model", sort=False)}
    lines = ["| | class | " + " | ".join(f"{model}, layer {layer}" for model, layer in layers.items()) + " |"]
    lines.append("|" + "---|" * (2 + len(layers)))
    for measure, (what, kinds) in SPOKEN.items():
        for kind in kinds:
            rows = numbers[(numbers.measure == measure) & (numbers.kind == kind) & numbers.value.notna()]
            for name, of in rows.groupby("class", sort=False):
                told = {str(row.model): _value(row, percent=measure == COMPONENTS.name) for _, row in of.iterrows()}
                cells = " | ".join(told.get(model, "") for model in layers)
                marks = of["filled"].dropna().unique() if "filled" in of else []  # of bands of word frequency
                named = ", ".join([KINDS[kind].format(name), *marks])
                lines.append(f"| {what} | {named} | {cells} |")
    return "\n".join(lines) + one_run_each(numbers.model)


def _value(row: pd.Series, *, percent: bool) -> str:
    value, low, high = (row[column] for column in ("value", "low", "high"))
    if percent:
        return f"{value:.0%} [{100 * low:.0f}, {100 * high:.0f}]"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


PART = Part(
    mark="by class",
    page="docs/measures/usages.md",
    numbers="by_class.csv",
    kept=last_layers,
    table=table,
    figures={f"{name}.png": f"{name}.png" for name in DRAWN},
)
