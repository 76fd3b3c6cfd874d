"""The page of what a command measured: its path is printed last, and `--open` shows it in the browser."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

from ctxexp.progress import show
from ctxexp.report.page import REPORT

FLAG = "--open"

_opens = False  # whether the command asked for its page in the browser


def open_when_made() -> None:
    """Open the page of this process's command in the browser, once it is made."""
    global _opens
    _opens = True


def show_page(folder: Path) -> None:
    """Print the path of the page in a folder, where there is one, and open it if that was asked for."""
    page = (folder / REPORT).absolute()
    if not page.exists():
        return
    show(f"report: {page}")
    if _opens and not webbrowser.open(page.as_uri()):
        show("warning: no browser to open the report in", sys.stderr)
