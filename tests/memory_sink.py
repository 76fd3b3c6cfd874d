"""A sink in memory."""

from __future__ import annotations

from collections.abc import Mapping

from ctxexp import Results, Run, Sink


class MemorySink(Sink):
    """Keeps the last run and its results as attributes."""

    run: Run | None = None
    results: Results | None = None
    files: tuple[str, ...] = ()

    def send(self, run: Run, results: Results) -> Mapping[str, str]:
        self.run, self.results = run, results
        self.files = tuple(sorted(p.relative_to(run.folder).as_posix() for p in run.folder.rglob("*") if p.is_file()))
        return {}
