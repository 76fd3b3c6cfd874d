"""A specification curve, its numbers and their table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ctxexp.report import decimal
from docs.numbers.part import Part, markdown

DECIMALS = 4
VERDICTS = ("falls", "rises", "open")


def table(numbers: pd.DataFrame) -> str:
    """Two Markdown tables: the joint statistics against chance, and in how many ways the measures fall and rise."""
    joint = numbers[numbers.verdict.isna()]
    head = ["all ways together", "value", "chance", "expected of it", "p"]
    chance = markdown(head, [[row.name_, _value(row, row.value), row.null, _value(row, row.expected),
                            "" if pd.isna(row.p) else f"{row.p:.3f}"]
                           for row in joint.rename(columns={"name": "name_"}).itertuples()])  # fmt: skip
    counts = pd.crosstab(numbers.definition, numbers.verdict, margins=True, margins_name="all")[[*VERDICTS, "all"]]
    ways = [[str(definition), *map(str, of)] for definition, *of in counts.itertuples()]
    return f"{chance}\n\n{markdown(['ways, by definition', *VERDICTS, 'all'], ways)}"


def _value(row: Any, value: float) -> str:
    return decimal(value, 3, sign=True) if row.name_ == "median effect" else f"{value:.0%}"


def _kept(summary: Path) -> pd.DataFrame:
    """The specifications, and behind them the joint statistics, which have no verdict."""
    tables = (pd.read_csv(summary / f"table_{name}.csv") for name in ("multiverse", "multiverse_joint"))
    return pd.concat(tables, ignore_index=True).round(DECIMALS)


PART = Part(
    mark="multiverse",
    page="docs/how-to/how-much-hangs-on-my-choices.md",
    numbers="multiverse.csv",
    kept=_kept,
    table=table,
    figures={"multiverse.png": "multiverse.png"},
)
