"""Tables that a whole sweep makes, such as a paper's with ours beside it: CSV, Markdown, and on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxexp.files.writing import write_text
from ctxexp.report.wording import Run
from ctxexp.results import Table

FILES = "table_*.md"


@dataclass(frozen=True)
class SweepTable:
    """A table of several runs: `numbers` in full for the CSV, `shown` with cells as they are read."""

    name: str  # of its files: table_<name>.csv, table_<name>.md
    title: str
    numbers: Table
    columns: Sequence[str]
    shown: Sequence[Sequence[str]]  # rows of as many cells as columns
    notes: Sequence[str] = ()  # a line each: sources and choices


Maker = Callable[[Sequence[Run]], SweepTable | None]


def makers() -> list[Maker]:
    """What makes a table of a sweep's runs, or None where these have nothing for it. Add yours here."""
    from ctxexp.papers.calibration_league.table import table_league
    from ctxexp.papers.ethayarajh_2019.table_1 import table_1
    from ctxexp.papers.frequency.table import table_degeneration, table_frequency
    from ctxexp.papers.li_2020.table import table_li_2020

    return [table_1, table_frequency, table_degeneration, table_league, table_li_2020]


def write_tables(runs: Sequence[Run], folder: Path, using: Sequence[Maker] | None = None) -> list[Path]:
    """Write each table that the runs give as CSV and Markdown; the paths."""
    paths: list[Path] = []
    for make in makers() if using is None else using:
        if table := make(runs):
            csv, text = folder / f"table_{table.name}.csv", folder / f"table_{table.name}.md"
            table.numbers.write_csv(csv)
            paths += [csv, write_text(text, markdown(table))]
    return paths


def markdown(table: SweepTable) -> str:
    """The table as Markdown whose columns line up, so that it reads on a terminal too."""
    rows = [[cell.replace("|", "\\|") for cell in row] for row in (table.columns, *table.shown)]
    width = [max(3, *(len(row[i]) for row in rows)) for i in range(len(table.columns))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, width, strict=True)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in width) + "|")
    notes = "".join(f"\n- {note}" for note in table.notes)
    return f"**{table.title}**\n\n" + "\n".join(lines) + "\n" + (f"{notes}\n" if notes else "")


def written(folder: Path) -> list[str]:
    """The tables that lie in a sweep's summary folder, as text."""
    return [path.read_text(encoding="utf-8") for path in sorted(folder.glob(FILES))]
