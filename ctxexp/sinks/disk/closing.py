"""The end of a sweep: every job settled, one comparison of those with results."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from ctxexp.errors import TrackingError
from ctxexp.plugins import KINDS
from ctxexp.results import FILE, Results
from ctxexp.sink import Row, Status, Sweep, SweepReport
from ctxexp.sinks.disk import process
from ctxexp.sinks.disk.job import describe
from ctxexp.sinks.disk.sinks import Sinks
from ctxexp.sinks.disk.state import STATE, State, read_state, try_state, write_json

JOBS = "jobs.json"  # beside the comparison: the sweep's rows

Summarise = Callable[[list[tuple[str, Results]], Path], list[Path]]


def close_sweep(
    sweep: Sweep, sinks: Sinks, summarise: Summarise, *, wait: float = 5.0, stopped: str | None = None
) -> SweepReport:
    """Settle a sweep, however it ended: no job stays RUNNING, and those with results are compared.

    Call it once, after Hydra has returned, raised or been interrupted. Jobs that still run get `wait` seconds to end by
    themselves. Doesn't raise for what the sinks or `summarise` do: `error` says it, the rows are there.
    `stopped` says what kept the sweep from running all its jobs: it is KILLED then, even where those that ran FINISHED.
    `summarise` gets (label, results) of each job with results and a folder, and returns the files that it wrote there.
    """
    report = SweepReport(_rows(sweep, wait))
    statuses = {row.status for row in report.rows} | ({"KILLED"} if stopped else set())
    ends: tuple[Status, ...] = ("KILLED", "FAILED")
    report.status = next((s for s in ends if s in statuses), "FINISHED")
    if not report.rows:
        return report
    report.compared, problems = _compared(report.rows)
    problems = [*([stopped] if stopped else []), *problems]
    try:
        write_json(
            sweep.summary / JOBS,
            [{**vars(r), "folder": str(r.folder), "results": str(r.results)} for r in report.rows],
        )
        if report.compared:
            summarise(report.compared, sweep.summary)
    except Exception as error:  # the jobs' results must not be hidden by a figure that failed
        # An interrupt may leave a library half imported: then its traceback says nothing.
        why = f"{type(error).__name__}: {error}; `ctxexp report` makes it" if stopped else describe(error)
        problems.append(f"the comparison failed: {why}")
    report.error = "\n".join(problems) or None
    try:
        sinks.close(sweep, report)
    except TrackingError as error:
        report.error = "\n".join([*problems, str(error)])
    return report


def _compared(rows: Sequence[Row]) -> tuple[list[tuple[str, Results]], list[str]]:
    """The results of every job that has them, by its label, and a line for each whose results can't be read."""
    found, problems = [], []
    for row in rows:
        if row.status == "FINISHED" or (row.results / FILE).exists():
            try:
                found.append((row.label, Results.load(row.results)))
            except TrackingError as error:
                problems.append(f"{row.label} is left out of the comparison: {error}")
    return found, problems


def _rows(sweep: Sweep, wait: float) -> list[Row]:
    deadline = time.monotonic() + wait
    rows = []
    for path in sorted(sweep.results.glob(f"*/{STATE}")):
        folder = path.parent
        state = read_state(folder)
        while state.get("status") == "RUNNING" and time.monotonic() < deadline:
            if _gone(state):
                break
            time.sleep(0.1)
            state = read_state(folder)
        if state.get("status") == "RUNNING":
            state |= {"status": "KILLED", "error": _gone(state) or "interrupted with its sweep"}
            try_state(folder, **state)
        row = Row(
            label=str(state.get("name") or ""),
            overrides=list(state.get("overrides", [])),
            status=str(state.get("status", "KILLED")),
            error=state.get("error"),
            folder=folder,
            results=Path(state.get("results") or folder),
            link=str(state.get("link") or ""),
            reused=bool(state.get("reused")),
            sinks=state.get("sinks", {}),
        )
        rows.append(row)
    for row, label in zip(rows, labels([(r.label, r.overrides) for r in rows]), strict=True):
        row.label = label
    return rows


def _gone(state: State) -> str | None:
    """Why the job's process no longer works on it, or None: it may."""
    tags = state.get("process", {})
    why = process.is_gone(tags.get(process.HOST), tags.get(process.PID), tags.get(process.STARTED))
    return f"{why}: killed, by its sweep's end or by the system" if why else None


def labels(jobs: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """A label a job, no two alike: its name, with what tells it from its namesakes: `bert (seed 1)`, `bert (sts_b)`."""
    names = [name or " ".join(overrides) or "job" for name, overrides in jobs]
    found = []
    for name, (_, overrides) in zip(names, jobs, strict=True):
        same = [set(o) for n, (_, o) in zip(names, jobs, strict=True) if n == name]
        common = set.intersection(*same) if len(same) > 1 else set(overrides)
        told = ", ".join(_said(o) for o in overrides if o not in common)
        found.append(f"{name} ({told})" if told else name)
    seen: Counter[str] = Counter()
    for i, label in enumerate(found):
        seen[label] += 1
        if seen[label] > 1:
            found[i] = f"{label} ({seen[label]})"
    return found


def _said(override: str) -> str:
    """An override as a reader says it: the choice of a group, or a key's last word and its value; of paths the end.

    Sentences keep their name: `pooling cls` alone would be that of a word's pieces.
    """
    key, _, value = override.lstrip("+").partition("=")
    value = ", ".join(part.rpartition("/")[2] for part in value.strip("[]").split(","))
    if key in (*KINDS, "weights", "experiment"):
        return value
    group, _, last = key.rpartition(".")
    return f"sentence {last} {value}" if group == "sentence" else f"{last} {value}"
