"""What a verb found, in one form for the terminal, for files and for scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp.report.frame import save_figure
from ctxexp.report.terminal import Table, fitted_markdown

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Document:
    """Sentences, tables and figures: the command prints them, writes them to `out`, or gives them as JSON.

    Args:
        sentences: What was found, a line each; the answer last.
        tables: By the names of their files; printed before the sentences, written as CSV and Markdown.
        figures: Of matplotlib, by the names of their files; written as PNG and SVG.
        files: Files that the verb wrote itself.
        status: The exit status: 0, or 1 where what was checked fails.

    Example:
        >>> Document(sentences=["One word is enough."]).text(80)
        'One word is enough.'
    """

    sentences: Sequence[str] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)
    files: Sequence[Path] = ()
    status: int = 0

    def save(self, folder: Path | None) -> list[Path]:
        """Write tables and figures to the folder (None: nowhere); all files of the verb."""
        paths = list(self.files)
        if folder is not None:
            paths += [path for name, table in self.tables.items() for path in table.save(folder, name)]
            paths += [path for name, figure in self.figures.items() for path in save_figure(figure, folder, name)]
        return paths

    def text(self, width: int, files: Sequence[Path] = ()) -> str:
        """As a terminal of this width shows it, the files last."""
        tables = [fitted_markdown(table.markdown(), width) for table in self.tables.values()]
        return "\n".join([*tables, *self.sentences, *map(str, files)])

    def as_dict(self, files: Sequence[Path] = ()) -> dict[str, Any]:
        """As JSON has it: status, sentences, tables as rows of numbers in full, NaN as null, and files."""
        tables = {
            name: {
                "title": table.title,
                "rows": _rows(table.numbers),
                "notes": list(table.notes),
            }
            for name, table in self.tables.items()
        }
        return {
            "status": self.status,
            "sentences": list(self.sentences),
            "tables": tables,
            "files": [str(path) for path in files],
        }


def _rows(numbers: pd.DataFrame) -> list[dict[str, Any]]:
    cells = numbers.astype(object)
    rows: list[dict[str, Any]] = cells.where(cells.notna(), None).to_dict("records")
    return rows
