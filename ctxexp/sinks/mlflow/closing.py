"""The end of a sweep: every job settled, one summary run with the comparison."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp.errors import TrackingError
from ctxexp.results import FILE, Results
from ctxexp.sinks.mlflow import process
from ctxexp.sinks.mlflow.failures import failures, redact
from ctxexp.sinks.mlflow.jobs import describe
from ctxexp.sinks.mlflow.sink import COLOUR, KIND, LOGGED, SWEEP, MlflowSink, run_link
from ctxexp.sinks.mlflow.state import STATE, SUMMARY, read_state, try_state, write_json
from ctxexp.sinks.mlflow.sweep import Sweep
from ctxexp.sinks.mlflow.values import headline

if TYPE_CHECKING:
    from mlflow import MlflowClient

Summarise = Callable[[list[tuple[str, Results]], Path], list[Path]]


@dataclass
class Row:
    """How one job ended, for the table on the terminal."""

    label: str
    overrides: list[str]
    status: str
    error: str | None
    run_id: str
    link: str
    folder: Path
    results: Path
    reused: bool = False


@dataclass
class SweepReport:
    """What became of a sweep; `error` says what kept its summary from being made or sent."""

    rows: list[Row] = field(default_factory=list)
    status: str = "FINISHED"
    folder: Path | None = None
    link: str = ""
    summary_link: str = ""
    error: str | None = None


def close_sweep(sweep: Sweep, summarise: Summarise, *, wait: float = 5.0, stopped: str | None = None) -> SweepReport:
    """Settle a sweep, however it ended: no job stays RUNNING, and a summary run compares those with results.

    Call it once, after Hydra has returned, raised or been interrupted. Jobs that still run get `wait` seconds to end by
    themselves. Doesn't raise for what the tracking store or `summarise` do: `error` says it, the rows are there.
    `stopped` says what kept the sweep from running all its jobs: it is KILLED then, even where those that ran FINISHED.
    `summarise` gets (label, results) of each job with results and a folder, and returns the files that it wrote there.
    """
    report = SweepReport(folder=sweep.results, link=sweep.link)
    report.rows = _rows(sweep, wait)
    statuses = {row.status for row in report.rows} | ({"KILLED"} if stopped else set())
    report.status = next((s for s in ("KILLED", "FAILED") if s in statuses), "FINISHED")
    if not report.rows:
        return report
    compared, problems = _compared(report.rows)
    problems = [*([stopped] if stopped else []), *problems]
    folder = sweep.results / SUMMARY
    try:
        write_json(
            folder / "jobs.json", [{**vars(r), "folder": str(r.folder), "results": str(r.results)} for r in report.rows]
        )
        if compared:
            summarise(compared, folder)
    except Exception as error:  # the jobs' results must not be hidden by a figure that failed
        # An interrupt may leave a library half imported: then its traceback says nothing.
        why = f"{type(error).__name__}: {error}; `ctxexp report` makes it" if stopped else describe(error)
        problems.append(f"the comparison failed: {why}")
    report.error = "\n".join(problems) or None
    try:
        report.summary_link = _send(sweep, report, compared)
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
            run_id=str(state.get("run_id") or ""),
            link="",
            folder=folder,
            results=Path(state.get("results") or folder),
            reused=bool(state.get("reused")),
        )
        row.link = run_link(sweep.uri, sweep.experiment_id, row.run_id) if row.run_id else ""
        rows.append(row)
    for row, label in zip(rows, labels([(r.label, r.overrides) for r in rows]), strict=True):
        row.label = label
    return rows


def _gone(state: dict[str, Any]) -> str | None:
    """Why the job's process no longer works on it, or None: it may."""
    tags = state.get("process", {})
    why = process.is_gone(tags.get(process.HOST), tags.get(process.PID), tags.get(process.STARTED))
    return f"{why}: killed, by its sweep's end or by the system" if why else None


def labels(jobs: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """A label a job, no two alike: its name, with the overrides that tell it from its namesakes."""
    names = [name or " ".join(overrides) or "job" for name, overrides in jobs]
    found = []
    for name, (_, overrides) in zip(names, jobs, strict=True):
        same = [set(o) for n, (_, o) in zip(names, jobs, strict=True) if n == name]
        common = set.intersection(*same) if len(same) > 1 else set(overrides)
        found.append(" ".join([name, *(o for o in overrides if o not in common)]))
    seen: Counter[str] = Counter()
    for i, label in enumerate(found):
        seen[label] += 1
        if seen[label] > 1:
            found[i] = f"{label} ({seen[label]})"
    return found


def _send(sweep: Sweep, report: SweepReport, compared: list[tuple[str, Results]]) -> str:
    """Colour and settle the jobs' runs, make the summary run; its link."""
    from ctxexp.report.palette import colours

    folder = sweep.results / SUMMARY
    sink = MlflowSink(sweep.uri, sweep.experiment, folder, store=sweep.folder)
    client = sink.client
    colour = colours([row.label for row in report.rows])
    with failures(
        f"cannot settle the runs of sweep {sweep.id} in {redact(sweep.uri)}",
        f". Its comparison is in {folder}",
    ):
        held = {run.info.run_id: run for run in _runs(client, sweep)}
        for row in report.rows:
            run = held.pop(row.run_id, None)
            if run is None:
                continue
            client.set_tag(row.run_id, COLOUR, colour[row.label])
            if run.info.run_name != row.label and not row.reused:
                client.update_run(row.run_id, name=row.label)
            if run.info.status == "RUNNING":
                client.set_terminated(row.run_id, row.status)
        for run_id, run in held.items():  # of jobs that left nothing on this disk
            if run.info.status == "RUNNING" and run.data.tags.get(KIND) == "job":
                client.set_terminated(run_id, "KILLED")
        counts = Counter(row.status for row in report.rows)
        sink.start(
            name=f"comparison of {len(compared)} jobs" if compared else "comparison (no job finished)",
            tags={
                KIND: SUMMARY,
                SWEEP: sweep.id,
                COLOUR: "#7f7f7f",
                "mlflow.note.content": note(report.rows, sweep.link),
                **{f"ctxexp.jobs_{status.lower()}": str(n) for status, n in counts.items()},
            },
            params={"jobs": len(report.rows), "labels": [r.label for r in report.rows], "overrides": sweep.overrides},
            config="\n".join(["# overrides of the sweep", *(f"- {o!r}" for o in sweep.overrides), ""]),
            began=int(sweep.began * 1000),
        )
    failed: TrackingError | None = None
    try:
        with failures(f"cannot send the comparison of sweep {sweep.id} to {redact(sweep.uri)}", f". It is in {folder}"):
            sink._artifacts(folder)
            client.set_tag(sink.run_id, LOGGED, "true")
    except TrackingError as error:
        failed = error
    errors = [f"{row.label}: {headline(row.error)}" for row in report.rows if row.error]
    errors += [str(problem) for problem in (report.error, failed) if problem]
    status = "FAILED" if (report.error or failed) and report.status == "FINISHED" else report.status
    sink.finish(status, "\n".join(errors) or None)  # type: ignore[arg-type]
    if failed:
        raise failed
    return sink.link()


def _runs(client: MlflowClient, sweep: Sweep) -> list[Any]:
    found: list[Any] = []
    token: str | None = None
    while True:
        page = client.search_runs(
            [sweep.experiment_id], f"tags.`{SWEEP}` = '{sweep.id}'", max_results=1000, page_token=token
        )
        found += page
        token = page.token
        if not token:
            return found


def note(rows: Sequence[Row], link: str = "") -> str:
    """The jobs as a Markdown table, shown on the summary run's page."""
    lines = ["| job | status | run | error |", "|---|---|---|---|"]
    for row in rows:
        error = headline(row.error or "").replace("|", "/")
        run = f"[{row.run_id[:8]}](#{row.link.partition('#')[2]})" if row.run_id else ""
        lines.append(f"| {row.label} | {row.status}{' (reused)' if row.reused else ''} | {run} | {error} |")
    if link:
        lines = [f"[Curves of all jobs](#{link.partition('#')[2]})", "", *lines]
    return "\n".join(lines)[:7900]
