"""A specification curve, its numbers and their words."""

from __future__ import annotations

import pandas as pd
from ctxexp_multiverse.specifications import CHOICES

from docs.numbers.part import Part

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


PART = Part(
    mark="multiverse",
    page="docs/how-to.md",
    numbers="multiverse.csv",
    kept=lambda summary: pd.read_csv(summary / "table_multiverse.csv").round(DECIMALS),
    paragraph=paragraph,
    figures={"multiverse.png": "multiverse.png"},
)
