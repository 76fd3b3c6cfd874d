"""A sweep's end: every job settled, and one comparison of those with results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from ctxexp.errors import TrackingError
from ctxexp.files.job_folder import STATE, read_state, try_state, write_json
from ctxexp.files.process import why_gone
from ctxexp.jobs import error_message
from ctxexp.jobs.names import labels, title_of
from ctxexp.plugins.registry import registry
from ctxexp.report.comparison import write_summary
from ctxexp.results import Results
from ctxexp.results.files import RESULTS_FILE
from ctxexp.sinks import Status, Sweep, SweepReport, SweepRow

JOBS = "jobs.json"  # beside the comparison: the sweep's rows


def close_sweep(sweep: Sweep, *, stopped: str | None = None) -> SweepReport:
    """Settle a sweep, however it ended: no job stays RUNNING, and those with results are compared.

    Call it once, after Hydra has returned, raised or been interrupted. Jobs that still run get five seconds to end by
    themselves. Doesn't raise where the comparison fails: `error` says it, the rows are there. `stopped` says what kept
    the sweep from running all its jobs: it is KILLED then, even where those that ran FINISHED.
    """
    report = report_of(sweep, stopped=stopped)
    if not report.rows:
        return report
    problems = [report.error] if report.error else []
    try:
        write_json(
            sweep.summary / JOBS,
            [{**vars(r), "folder": str(r.folder), "results": str(r.results)} for r in report.rows],
        )
        if report.compared:
            links = {row.label: row.link for row in report.rows}
            write_summary(report.compared, sweep.summary, registry(), links=links)
    except Exception as error:  # the jobs' results must not be hidden by a figure that failed
        problems.append(f"the comparison failed: {error_message(error)}")
    report.error = "\n".join(problems) or None
    return report


def report_of(sweep: Sweep, *, stopped: str | None = None) -> SweepReport:
    """The outcome of a sweep that has ended, from its folder."""
    report = SweepReport(_settle_jobs(sweep))
    statuses = {row.status for row in report.rows} | ({"KILLED"} if stopped else set())
    ends: tuple[Status, ...] = ("KILLED", "FAILED")
    report.status = next((s for s in ends if s in statuses), "FINISHED")
    report.compared, problems = _results_of(report.rows)
    report.error = "\n".join([*([stopped] if stopped else []), *problems]) or None
    return report


def _results_of(rows: Sequence[SweepRow]) -> tuple[list[tuple[str, Results]], list[str]]:
    """The results of every job that has them, by its label, and a line for each whose results can't be read."""
    runs, problems = [], []
    for row in rows:
        if row.status == "FINISHED" or (row.results / RESULTS_FILE).exists():
            try:
                runs.append((row.label, Results.load(row.results)))
            except TrackingError as error:
                problems.append(f"{row.label} is left out of the comparison: {error}")
    return runs, problems


def _settle_jobs(sweep: Sweep) -> list[SweepRow]:
    """A row for each job, after up to 5 s of waiting for those that still run; the rest of these are marked KILLED."""
    deadline = time.monotonic() + 5.0
    rows = []
    for path in sorted(sweep.results.glob(f"*/{STATE}")):
        folder = path.parent
        state = read_state(folder)
        while state.get("status") == "RUNNING":
            why = why_gone(state.get("process", {}))
            if why or time.monotonic() > deadline:
                error = f"{why}: killed, by its sweep's end or by the system" if why else "interrupted with its sweep"
                try_state(folder, status="KILLED", error=error)
                state |= {"status": "KILLED", "error": error}
                break
            time.sleep(0.1)
            state = read_state(folder)
        row = SweepRow(
            label=title_of(str(state.get("name") or ""), state.get("overrides", [])),
            overrides=list(state.get("overrides", [])),
            status=str(state.get("status", "KILLED")),
            error=state.get("error"),
            folder=folder,
            name=str(state.get("name") or ""),
            results=Path(state.get("results") or folder),
            link=str(state.get("link") or ""),
            reused=bool(state.get("reused")),
        )
        rows.append(row)
    for row, label in zip(rows, labels([(r.label, r.overrides) for r in rows]), strict=True):
        row.label = label
    return rows
