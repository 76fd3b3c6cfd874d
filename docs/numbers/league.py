"""A calibration league: its figure, each model's last layer and a table of them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from docs.numbers.part import Part, one_run_each

NONE, SHOWN = "none", ("center", "whitening", "flow")
KEPT = ["model", "transform", "average", "gain", "gain_ci_low", "gain_ci_high"]
DECIMALS = 2


def last_layers(summary: Path) -> pd.DataFrame:
    """What is spoken of: each model's last layer."""
    league = pd.read_csv(summary / "table_league.csv")
    rows = league[(league.vectors == "last layer") & league["transform"].isin([NONE, *SHOWN])]
    return rows[KEPT].round(DECIMALS).reset_index(drop=True)


def table(numbers: pd.DataFrame) -> str:
    """A Markdown table: a row a model, the raw Spearman and what each transform gains."""
    lines = [f"| | `{NONE}` | {' | '.join(f'`{name}`' for name in SHOWN)} |", "|---" * (2 + len(SHOWN)) + "|"]
    for model, rows in numbers.groupby("model", sort=False):
        of = rows.set_index("transform")
        lines.append(f"| {model} | {of.average[NONE]:.2f} | {' | '.join(_gain(of.loc[name]) for name in SHOWN)} |")
    return "\n".join(lines) + one_run_each(numbers.model, intervals=False)


def _gain(row: pd.Series) -> str:
    return f"{row.gain:+.2f} [{row.gain_ci_low:.2f}, {row.gain_ci_high:.2f}]"


PART = Part(
    mark="calibration league",
    page="docs/measures/transforms.md",
    numbers="calibration_league.csv",
    kept=last_layers,
    table=table,
    figures={"calibration_league.png": "isotropy_against_spearman.png"},
)
