"""What `--help` prints."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH = 160  # where nobody says how wide the page is


def columns(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns as text, the second one folded to the terminal's width."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    console = Console(width=None if terminal else WIDTH, color_system=None)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for left, right in rows:
        table.add_row(Text(f"  {left}"), Text(right))
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
