"""The measured rows of a sweep's Table 1."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from ctxexp_measures.words.table_1 import HEADINGS, cell

from docs.numbers.part import Part, one_run_each

DECIMALS = 4


def measured(summary: Path) -> pd.DataFrame:
    """Its rows that the sweep measured, not those of the paper."""
    numbers = pd.read_csv(summary / "table_1.csv")
    return numbers[numbers.source == "measured"].round(DECIMALS).astype({"layer": int})


def table(numbers: pd.DataFrame) -> str:
    """A Markdown table: a row a model and layer, a column a benchmark, with the share of it that is covered in its
    heading (the first row's: the text gives the vocabulary, whatever the model)."""
    first = numbers.iloc[0]
    headings = [f"{title} ({first[f'{name}_covered']:.0%})" for name, title in HEADINGS.items()]
    lines = [f"| model, layer | {' | '.join(headings)} |", "|---|" + "---:|" * len(headings)]
    for _, row in numbers.iterrows():
        values = " | ".join(cell(row[name]) for name in HEADINGS)
        lines.append(f"| {row.model}, {row.layer} | {values} |")
    return "\n".join(lines) + one_run_each(numbers.model, intervals=False)


PART = Part(
    mark="table 1",
    page="docs/measures/static-vectors.md",
    numbers="table_1.csv",
    kept=measured,
    table=table,
)
