"""The probe on several networks: its numbers, and a table of them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from docs.numbers.part import Part

DECIMALS = 6
KINDS = {"layer": str}  # "0-2" is that of the mix


def collected(folder: Path) -> pd.DataFrame:
    """What the probe wrote into subfolders, whose names are the networks'."""
    files = sorted(folder.glob("*/probe.csv"))
    tables = [pd.read_csv(file, dtype=KINDS).assign(network=file.parent.name) for file in files]
    return pd.concat(tables).round(DECIMALS)


def table(numbers: pd.DataFrame) -> str:
    """A Markdown table: a row a score, a column a network, whose learnt mix stands below."""
    numbers = numbers.assign(score=[_named(row) for _, row in numbers.iterrows()])
    networks = list(dict.fromkeys(numbers.network))
    lines = [f"| accuracy | {' | '.join(networks)} |", "|---" * (1 + len(networks)) + "|"]
    by = numbers.set_index(["score", "network"])
    for score in dict.fromkeys(numbers.score):
        lines.append(f"| {score} | {' | '.join(_accuracy(by.loc[(score, network)]) for network in networks)} |")
    shares = [_shares(by.loc[("mix", network)]) for network in networks]
    return "\n".join([*lines, f"| shares of the mix, by layer | {' | '.join(shares)} |"])


def _named(row: pd.Series) -> str:
    return str(row.use) if row.use != "frozen" else f"layer {row.layer}"


def _accuracy(row: pd.Series) -> str:
    value, low, high = (f"{row[name]:.3f}".removeprefix("0") for name in ("accuracy", "ci_low", "ci_high"))
    return f"{value} [{low}, {high}]"


def _shares(mix: pd.Series) -> str:
    shares = [mix[name] for name in mix.index if name.startswith("s_") and not name.endswith("_sd")]
    return ", ".join(f"{share:.2f}".removeprefix("0") for share in shares)


PART = Part(
    mark="probe",
    page="docs/measures/probe.md",
    numbers="probe.csv",
    kept=collected,
    table=table,
    kinds=KINDS,
)
