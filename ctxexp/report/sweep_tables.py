"""What plugins add to a sweep: tables and figures, such as a paper's beside ours (CSV, Markdown, on the terminal),
and the word explorer of its page, which a distribution brings (ctxexp-words): shown each layer, and drawn on the
page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ctxexp.dataset import Corpus
from ctxexp.files.writing import write_csv, write_text
from ctxexp.measuring.words import Observer
from ctxexp.occurrences import Occurrences, Shelf
from ctxexp.plugins import REPORT, Registry
from ctxexp.report.frame import save_figure
from ctxexp.report.wording import LabelledResults, one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ctxexp.results import Results

FILES = "table_*.md"
Cells = dict[str, Any]
GROUP = "ctxexp.explorer"  # the entry-point group of an `Explorer`
TABLE = "word_map"  # among a run's results


"""A row of a table under work: texts and numbers by column."""


@dataclass(frozen=True)
class SweepTable:
    """A table of several runs: `numbers` in full for the CSV, `shown` with cells as they are read."""

    title: str
    numbers: pd.DataFrame
    columns: Sequence[str]
    shown: Sequence[Sequence[str]]  # rows of as many cells as columns
    notes: Sequence[str] = ()  # a line each: sources and choices


def write_tables(runs: Sequence[LabelledResults], folder: Path, registry: Registry) -> list[Path]:
    """Write each table that the registry offers and the runs give as CSV and Markdown; the paths."""
    paths: list[Path] = []
    for name in _names(registry, tables=True):
        with registry.plugin_call(REPORT, name):
            table: SweepTable | None = registry.find(REPORT, name).factory(runs)
        if table:
            write_csv(table.numbers, folder / f"{name}.csv")
            paths += [folder / f"{name}.csv", write_text(folder / f"{name}.md", markdown(table))]
    return paths


def write_figures(runs: Sequence[LabelledResults], folder: Path, registry: Registry) -> list[Path]:
    """Write each figure that the registry offers and the runs give as PNG and SVG; the paths."""
    paths: list[Path] = []
    for name in _names(registry, tables=False):
        with registry.plugin_call(REPORT, name):
            figure: Figure | None = registry.find(REPORT, name).factory(runs)
        paths += save_figure(figure, folder, name) if figure else []
    return paths


def figure_files(folder: Path, registry: Registry) -> list[Path]:
    """The SVG files of the registry's figures in a sweep's summary folder."""
    paths = (folder / f"{name}.svg" for name in _names(registry, tables=False))
    return [path for path in paths if path.exists()]


def _names(registry: Registry, *, tables: bool) -> list[str]:
    return [name for name in registry.names(REPORT) if registry.find(REPORT, name).is_table == tables]


def markdown(table: SweepTable) -> str:
    """The table as Markdown whose columns line up, so that it reads on a terminal too."""
    rows = [[cell.replace("|", "\\|") for cell in row] for row in (table.columns, *table.shown)]
    width = [max(3, *(len(row[i]) for row in rows)) for i in range(len(table.columns))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, width, strict=True)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in width) + "|")
    notes = "".join(f"\n- {note}" for note in table.notes)
    return f"**{table.title}**\n\n" + "\n".join(lines) + "\n" + (f"{notes}\n" if notes else "")


def table_texts(folder: Path) -> list[str]:
    """The tables that lie in a sweep's summary folder, as text."""
    return [path.read_text(encoding="utf-8") for path in sorted(folder.glob(FILES))]


def row_label(label: str, results: Results) -> str:
    """The run's label with the weights that it used, which a chart's label leaves out where they are the default."""
    weights = one_line(results.info.model.weights)
    return label if not weights or weights in label else f"{label} ({weights})"


class PageSection(NamedTuple):
    """A section of the page.

    Args:
        html: Its HTML.
        script: The script that draws it.
        data: The data that the script needs at once, in JSON's types.
        blocks: Further data by the id of the element that holds it, as text; the script reads one when it needs it.
    """

    html: str
    script: str
    data: dict[str, Any]
    blocks: Mapping[str, str] = {}


class Explorer(Protocol):
    """A distribution's word explorer: the object of its entry point in the group `ctxexp.explorer`."""

    def observe(self, store: Shelf, occurrences: Occurrences, corpus: Corpus, *, dim: int, most: int) -> Observer:
        """The observer of a run's layers, whose table has at most `most` occurrences."""

    def section(self, runs: Sequence[LabelledResults]) -> PageSection | None:
        """The page's section; None where no run has the table."""


def load_explorer() -> Explorer | None:
    """The installed distribution's explorer; None without any."""
    for entry in entry_points(group=GROUP):
        explorer: Explorer = entry.load()
        return explorer
    return None
