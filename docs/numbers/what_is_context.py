"""Components of variance: their figure, numbers and a table of them.

`python -m docs.numbers.what_is_context` draws the figure of the kept numbers anew, where only its drawing has changed.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from ctxexp_measures.senses.components.figure import DECIMALS, below_zero, drawing

from ctxexp.command import registry
from ctxexp.report import save_figure
from docs.numbers.marked import write_small
from docs.numbers.part import ROOT, Part, markdown, one_run_each

HEAD = ["model", "text", "context: layer 0", "highest", "its floor", "last layer", "its floor",
        "of which document", "sentence", "rest", "position, highest above layer 0",
        "sense of ambiguous words, highest", "below 0"]  # fmt: skip


def table(numbers: pd.DataFrame) -> str:
    """A Markdown table: a row a model and text with the context in the first, the highest and the last layer, and its
    parts there; the sense where it is largest, among ambiguous words."""
    rows = []
    for (corpus, model), of in numbers[numbers.words == "all"].groupby(["corpus", "model"], sort=False):
        by_layer = of.sort_values("layer")
        first, last = by_layer.iloc[0], by_layer.iloc[-1]
        parts = [f"{last[part]:.0%}" if pd.notna(last.get(part)) else "" for part in ("document", "sentence", "rest")]
        position = by_layer.iloc[1:].position
        some = numbers[(numbers.words == "ambiguous") & (numbers.corpus == corpus) & (numbers.model == model)]
        sense = _highest(some, "sense") if len(some) else ""
        highest = f"{position.max():.0%} (layer {by_layer.layer[position.idxmax()]})"
        most = by_layer.loc[by_layer.context.idxmax()]
        context = [share(first, "context"), _highest(by_layer, "context"), _floor(most)]
        context += [share(last, "context"), _floor(last)]
        rows.append([f"`{model}`", str(corpus), *context, *parts, highest, sense, impossible(by_layer)])
    return markdown(HEAD, rows) + one_run_each(numbers.model)


def _highest(rows: pd.DataFrame, part: str) -> str:
    top = rows.loc[rows[part].idxmax()]
    return f"{share(top, part)} (layer {top.layer})"


def _floor(row: pd.Series) -> str:
    return f"{row.floor:z.1%}" if pd.notna(row.get("floor")) else ""


def impossible(rows: pd.DataFrame) -> str:
    """The components that are below 0 with their whole interval, and where; "" for none."""
    return "; ".join(
        f"{part} {share(row, part)} (layer {row.layer})"
        for _, row in rows.iterrows()
        for part in below_zero(row.to_dict())
    )


def share(row: pd.Series, name: str) -> str:
    """The share with its interval, in percent: `35.7% [35.4, 36.0]`."""
    value, low, high = (round(100 * row[column], 1) + 0.0 for column in (name, f"{name}_low", f"{name}_high"))
    return f"{value:.1f}% [{low:.1f}, {high:.1f}]"


PART = Part(
    mark="what is context",
    page="docs/measures/variance-components.md",
    numbers="what_is_context.csv",
    kept=lambda summary: pd.read_csv(summary / "table_what_is_context.csv").round(DECIMALS),
    table=table,
    figures={"what_is_context.png": "what_is_context.png"},
)


def draw(root: Path = ROOT) -> None:
    """Draw the figure of the kept numbers, as the step does of those that it measures but for the models' sizes."""
    figure = drawing(
        PART.read(root),
        f"control: {registry().find('control', 'no_sinks').factory().label}",
        ["One training run a model; numbers: the CSV beside this figure."],
    )
    with TemporaryDirectory() as folder:
        (picture,) = save_figure(figure, Path(folder), "what_is_context", kinds=("png",))
        write_small(picture, root / "docs" / "what_is_context.png")


if __name__ == "__main__":
    draw()
