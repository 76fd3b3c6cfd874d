"""`python -m ctxexp_calibration.league.page SUMMARY`: a league's figure, last layers and a table of them into docs/."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from ctxexp.files.marked import write_marked, write_small

NAME, MARK = "calibration_league", "calibration league"
PAGE, NUMBERS = Path("docs") / "measures" / "transforms.md", Path("docs") / f"{NAME}.csv"
NONE, SHOWN = "none", ("center", "whitening", "flow")
KEPT = ["model", "transform", "average", "gain", "gain_ci_low", "gain_ci_high"]
DECIMALS = 2


def last_layers(league: pd.DataFrame) -> pd.DataFrame:
    """What is spoken of: each model's last layer."""
    rows = league[(league.vectors == "last layer") & league["transform"].isin([NONE, *SHOWN])]
    return rows[KEPT].round(DECIMALS).reset_index(drop=True)


def paragraph(numbers: pd.DataFrame) -> str:
    """A Markdown table: a row a model, the raw Spearman and what each transform gains."""
    lines = [f"| | `{NONE}` | {' | '.join(f'`{name}`' for name in SHOWN)} |", "|---" * (2 + len(SHOWN)) + "|"]
    for model, rows in numbers.groupby("model", sort=False):
        of = rows.set_index("transform")
        lines.append(f"| {model} | {of.average[NONE]:.2f} | {' | '.join(_gain(of.loc[name]) for name in SHOWN)} |")
    return "\n".join(lines)


def _gain(row: pd.Series) -> str:
    return f"{row.gain:+.2f} [{row.gain_ci_low:.2f}, {row.gain_ci_high:.2f}]"


def write(summary: Path, root: Path) -> None:
    """Take a sweep's league from its summary folder into the checkout at `root`."""
    numbers = last_layers(pd.read_csv(summary / "table_league.csv"))
    numbers.to_csv(root / NUMBERS, index=False)
    write_small(summary / "isotropy_against_spearman.png", root / "docs" / f"{NAME}.png")
    write_marked(root / PAGE, MARK, paragraph(numbers))


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path.cwd())
