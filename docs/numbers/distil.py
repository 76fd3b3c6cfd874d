"""What static vectors cost and keep of two models."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from docs.numbers.part import Part, markdown

DECIMALS = 4


def collected(made: Path) -> pd.DataFrame:
    """A row a model and way."""
    parts = [pd.read_csv(file).assign(model=file.parent.name) for file in sorted(made.glob("*/distil.csv"))]
    return pd.concat(parts, ignore_index=True).round(DECIMALS)


def table(numbers: pd.DataFrame) -> str:
    """A row a model and way; speeds as multiples of the model's own, since they were taken side by side."""
    rows = []
    for model, of in numbers.groupby("model", sort=False):
        own = of[of.way == "the model"].iloc[0]
        for one in of.itertuples():
            rows.append(
                [
                    f"`{model}`",
                    str(one.way),
                    f"{one.bytes_kept / 1e6:.1f}",
                    f"{one.words_per_second / own.words_per_second:.0f}",
                    f"{one.spearman:.1f} [{one.low:.1f}, {one.high:.1f}]",
                    f"{one.kept:.0%} [{one.kept_low:.0%}, {one.kept_high:.0%}]",
                ]
            )
    head = ["model", "sentence vectors of", "MB", "speed, the model's = 1", "Spearman x 100", "of the model's"]
    return markdown(head, rows)


PART = Part(
    mark="distil",
    page="docs/how-to/distil-static-vectors-benchmark-any-vectors.md",
    numbers="distil.csv",
    kept=collected,
    table=table,
)
