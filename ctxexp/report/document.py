"""What a verb found, in one form for the terminal, for files and for scripts.

Its JSON, one line of stdout with `json=true`, is described by `document.schema.json` beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp.files import write_csv
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
        tables: By the names of their files; those with cells are printed before the sentences.
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

    def save(self, out: Path | None) -> list[Path]:
        """Write tables and figures to `out`, a folder, or a .csv for the first table's numbers; all files of the verb.

        Nothing is written where `out` is None, or a file that the verb wrote itself.
        """
        paths = list(self.files)
        if out is None or out in paths:
            return paths
        if out.suffix == ".csv":
            write_csv(next(iter(self.tables.values())).numbers, out)
            return [*paths, out]
        paths += [path for name, table in self.tables.items() for path in table.save(out, name)]
        return paths + [path for name, figure in self.figures.items() for path in save_figure(figure, out, name)]

    def text(self, width: int, files: Sequence[Path] = ()) -> str:
        """As a terminal of this width shows it, the files last."""
        tables = [fitted_markdown(table.markdown(), width) for table in self.tables.values() if table.columns]
        return "\n".join([*tables, *self.sentences, *map(str, files)])

    def as_dict(self, files: Sequence[Path] = ()) -> dict[str, Any]:
        """As JSON has it: status, sentences, tables as rows of numbers in full (null: not finite), and files."""
        tables = {
            name: {"title": table.title, "rows": _rows(table.numbers), "notes": list(table.notes)}
            for name, table in self.tables.items()
        }
        return {
            "status": self.status,
            "sentences": list(self.sentences),
            "tables": tables,
            "files": [str(path) for path in files],
        }


def _rows(numbers: pd.DataFrame) -> list[dict[str, Any]]:
    cells = numbers.replace([math.inf, -math.inf], math.nan).astype(object)
    rows: list[dict[str, Any]] = cells.where(cells.notna(), None).to_dict("records")
    return rows
