"""`python -m ctxexp_train.probe.page PROBE.csv ...`: the probe's numbers of several networks into docs/, as a table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ctxexp.files.marked import write_marked

MARK = "probe"
PAGE, NUMBERS = Path("docs") / "measures" / "probe.md", Path("docs") / "probe.csv"
DECIMALS = 6
KINDS = {"layer": str}  # "0-2" is that of the mix


def paragraph(numbers: pd.DataFrame) -> str:
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


def write(files: Sequence[Path], root: Path) -> None:
    """Take the tables that the probe wrote into the checkout at `root`; a file's folder names its network."""
    numbers = pd.concat([pd.read_csv(file, dtype=KINDS).assign(network=file.parent.name) for file in files])
    numbers = numbers.round(DECIMALS)
    numbers.to_csv(root / NUMBERS, index=False)
    write_marked(root / PAGE, MARK, paragraph(numbers))


if __name__ == "__main__":
    write([Path(file) for file in sys.argv[1:]], Path.cwd())
