"""Components of variance: their figure, numbers and words."""

from __future__ import annotations

import pandas as pd
from ctxexp_senses.components.figure import DECIMALS, below_zero

from docs.numbers.part import Part, one_run_each


def paragraph(numbers: pd.DataFrame) -> str:
    """A list with an item a model and text: context in the first, the highest and the last layer, and what it is made
    of there; the sense where it is largest, among ambiguous words."""
    items = []
    for (corpus, model), rows in numbers[numbers.words == "all"].groupby(["corpus", "model"], sort=False):
        rows = rows.sort_values("layer")
        first, last, top = rows.iloc[0], rows.iloc[-1], rows.loc[rows.context.idxmax()]
        said = f"`{model}` on {corpus}: the floor, layer 0, is {share(first, 'context')}; context is "
        if top.layer != last.layer:
            said += f"at most {share(top, 'context')} of the variance (layer {top.layer}) and "
        said += f"{share(last, 'context')} in the last layer ({last.layer}), of which "
        parts = [part for part in ("document", "sentence", "rest") if part in rows and pd.notna(last[part])]
        said += ", ".join(f"{part} {last[part]:.0%}" for part in parts)
        most = rows.loc[rows.position.idxmax()]
        if most.position >= NOTABLE and most.layer > 0:
            said += f"; position takes up to {most.position:.0%} (layer {most.layer})"
        some = numbers[(numbers.words == "ambiguous") & (numbers.corpus == corpus) & (numbers.model == model)]
        if len(some):
            best = some.loc[some.sense.idxmax()]
            said += f"; of ambiguous words the sense is {share(best, 'sense')} at most (layer {best.layer})"
        items.append(f"- {said}.{impossible(rows)}")
    return "\n".join(items) + one_run_each(numbers.model)


def impossible(rows: pd.DataFrame) -> str:
    """Which components are below 0 with their whole interval, and where; "" for none."""
    found = [
        f"{part} is {share(row, part)} in layer {row.layer}"
        for _, row in rows.iterrows()
        for part in below_zero(row.to_dict())
    ]
    return f" *Below 0, which no variance can be*: {', '.join(found)}: there the rows don't follow the model." * bool(
        found
    )


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
