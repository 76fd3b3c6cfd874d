"""Components of variance: their figure, numbers and words."""

from __future__ import annotations

import pandas as pd
from ctxexp_senses.components.figure import DECIMALS

from docs.numbers.part import Part


def paragraph(numbers: pd.DataFrame) -> str:
    """A list with an item a model and text: context in the first, the highest and the last layer, and what it is made
    of there; the sense where it is largest, among ambiguous words."""
    items = []
    for (corpus, model), rows in numbers[numbers.words == "all"].groupby(["corpus", "model"], sort=False):
        rows = rows.sort_values("layer")
        first, last, top = rows.iloc[0], rows.iloc[-1], rows.loc[rows.context.idxmax()]
        said = f"`{model}` on {corpus}: context is {share(first, 'context')} of the variance in layer 0"
        if top.layer != last.layer:
            said += f", at most {share(top, 'context')} (layer {top.layer})"
        said += f" and {share(last, 'context')} in the last layer ({last.layer}), of which "
        parts = [part for part in ("document", "sentence", "rest") if part in rows and pd.notna(last[part])]
        said += ", ".join(f"{part} {last[part]:.0%}" for part in parts)
        most = rows.loc[rows.position.idxmax()]
        if most.position >= NOTABLE and most.layer > 0:
            said += f"; position takes up to {most.position:.0%} (layer {most.layer})"
        some = numbers[(numbers.words == "ambiguous") & (numbers.corpus == corpus) & (numbers.model == model)]
        if len(some):
            best = some.loc[some.sense.idxmax()]
            said += f"; of ambiguous words the sense is {share(best, 'sense')} at most (layer {best.layer})"
        items.append(f"- {said}.")
    return "\n".join(items)


NOTABLE = 0.2  # a share of position, above the input layer, that is worth a word


def share(row: pd.Series, name: str) -> str:
    """The share with its interval, in percent: `35.7% [35.4, 36.0]`."""
    value, low, high = (round(100 * row[column], 1) + 0.0 for column in (name, f"{name}_low", f"{name}_high"))
    return f"{value:.1f}% [{low:.1f}, {high:.1f}]"


PART = Part(
    mark="what is context",
    page="docs/measures/variance-components.md",
    numbers="what_is_context.csv",
    kept=lambda summary: pd.read_csv(summary / "table_what_is_context.csv").round(DECIMALS),
    paragraph=paragraph,
    figures={"what_is_context.png": "what_is_context.png"},
)
