"""The linear probe of several models and kinds of labels: its numbers, and a table of them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from docs.numbers.part import Part, markdown, one_run_each

DECIMALS = 4
HEAD = ["probe", "layer", "accuracy", "control task", "selectivity", "words held out", "words alone", "untrained"]


def collected(summary: Path) -> pd.DataFrame:
    """What the sweep's table of the probe holds."""
    return pd.read_csv(summary / "table_probe.csv").round(DECIMALS)


def table(numbers: pd.DataFrame) -> str:
    """A Markdown table: of each probe the layers 0, the most selective and the last; then what no layer changes."""
    rows = []
    for model, of_model in numbers.groupby("model", sort=False):
        best = of_model.adjusted.idxmax()
        chosen = dict.fromkeys([of_model.index[0], best, of_model.index[-1]])
        for at in chosen:
            row = of_model.loc[at]
            interval = f"{row.adjusted:.3f} [{row.adjusted_low:.3f}, {row.adjusted_high:.3f}]"
            shown = ("held_out_words", "alone", "untrained")
            cells = ["" if pd.isna(row.get(key)) else f"{row[key]:.3f}" for key in shown]
            layer = f"{row.layer}{', the most selective' if at == best else ''}"
            rows.append([str(model), layer, f"{row.raw:.3f}", f"{row.baseline:.3f}", interval, *cells])
    return markdown(HEAD, rows) + one_run_each(numbers.model)


PART = Part(
    mark="label probe",
    page="docs/measures/probe.md",
    numbers="label_probe.csv",
    kept=collected,
    table=table,
    figures={"probe_layers.png": "probe_layers.png"},
)
