"""Jobs whose process is gone are closed: a killed process can't say so itself."""

from __future__ import annotations

import platform
from pathlib import Path

from ctxexp.errors import DiskError
from ctxexp.files.writing import PART, unwritten
from ctxexp.sinks.disk.process import HOST, PID, STARTED, is_gone, started
from ctxexp.sinks.disk.state import STATE, read_state, write_state


def close_dead_jobs(store: Path) -> list[Path]:
    """Say KILLED in the status.json of jobs under `<store>/results` whose process is gone; their folders.

    What such a process was writing, there or in a sweep's summary, is removed. Raises DiskError.
    """
    closed: list[Path] = []
    summaries: set[Path] = set()
    try:
        for path in sorted((store / "results").glob(f"*/*/{STATE}")):
            state = read_state(path.parent)
            tags = state.get("process", {})
            if tags.get(HOST) == platform.node():
                summaries.add(path.parents[1] / "summary")
            why = state.get("status") == "RUNNING" and is_gone(tags.get(HOST), tags.get(PID), tags.get(STARTED))
            if why:
                write_state(path.parent, status="KILLED", error=why)
                closed.append(path.parent)
        for place in (*closed, *summaries):
            for part in place.rglob(f"*{PART}"):
                pid = part.stem.rpartition(".")[2]
                if pid.isdigit() and started(int(pid)) == "":
                    part.unlink()
    except OSError as error:
        raise DiskError(unwritten(error)) from error
    return closed
