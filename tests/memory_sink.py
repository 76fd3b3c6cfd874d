"""A sink in memory."""

from __future__ import annotations

from pathlib import Path

from ctxexp import Results, Run, Sink
from ctxexp.sinks import Status


class MemorySink(Sink):
    """Keeps a run, its results and its status as attributes."""

    run: Run | None = None
    results: Results | None = None
    files: tuple[str, ...] = ()
    status: str = ""
    error: str | None = None

    def start(self, run: Run) -> None:
        self.run, self.status = run, "RUNNING"

    def log(self, results: Results, folder: Path) -> None:
        self.results = results
        self.files = tuple(sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()))

    def finish(self, status: Status, error: str | None = None) -> None:
        self.status, self.error = status, error
