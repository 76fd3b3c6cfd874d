"""Sending: runs that have ended, from their folders to the sinks; a job's status.json notes which sink has it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ctxexp.errors import CtxexpError, plugin_call
from ctxexp.files.credentials import map_texts, mask
from ctxexp.files.job_folder import RUN_FILE, mark_killed_jobs, read_state, write_state
from ctxexp.files.process import defer_signals
from ctxexp.results import Results
from ctxexp.results.files import RESULTS_FILE
from ctxexp.sinks import Run, Sink, Sweep, SweepReport, load_run

LONG = 30.0  # seconds; the library of a tracker takes three to import
Sinks = Mapping[str, Sink]  # by label


def check_sinks(sinks: Sinks, tracking_folder: Path) -> None:
    """Have each sink refuse what no sending could mend, and close the jobs that killed processes left open. Raises
    CtxexpError."""
    mark_killed_jobs(tracking_folder)
    destinations(sinks, tracking_folder)


def destinations(sinks: Sinks, tracking_folder: Path) -> dict[str, dict[str, str]]:
    """By label of a sink, where it is meant to send runs to; credentials masked. Raises CtxexpError."""
    meant: dict[str, dict[str, str]] = {}
    for label, sink in sinks.items():
        with plugin_call("sink", label, "can't be used"):
            meant[label] = map_texts(mask, dict(sink.check(tracking_folder)))
    return meant


def is_due(run: Run) -> bool:
    """Whether a job's run is sent as the job ends: a lone one is; of a sweep's, those that took long, which someone may
    be watching. The sweep's end sends all others, so that a tracker's library is imported once."""
    return not run.sweep or time.time() - run.began_ms / 1000 > LONG


def send_runs(
    jobs: Mapping[Path, Results | None], sinks: Sinks, tracking_folder: Path, *, sweep: str | None
) -> list[str]:
    """Send the jobs in these folders, as runs of a sweep, to each sink, with their results where these are read
    already. Returns an error for each sink that failed: its other runs are not tried, since they would fail alike, and
    slowly where a server hangs."""
    problems = []
    for label, sink in sinks.items():
        try:
            for folder, results in jobs.items():
                if (_results_folder(folder) / RUN_FILE).exists():
                    send_run(folder, label, sink, tracking_folder, sweep, results)
        except CtxexpError as error:
            problems.append(mask(str(error)))
    return problems


def _results_folder(folder: Path) -> Path:
    """The folder of a job's results: an earlier job's, where that stands for it."""
    return Path(read_state(folder).get("results") or folder)


def send_run(
    folder: Path, label: str, sink: Sink, tracking_folder: Path, sweep: str | None, results: Results | None = None
) -> None:
    """Send the job in this folder, as a run of a sweep, to a sink; its results are read unless they are given. Raises
    CtxexpError."""
    place = _results_folder(folder)
    run = replace(load_run(place, tracking_folder), sweep=sweep)
    if results is None:
        results = Results.load(place) if (place / RESULTS_FILE).exists() else Results()
    sent = read_state(place).get("sinks", {}).get(label)
    advice = f"can't take the run, which is safe in {place}: the same command with resume=true sends it"
    with plugin_call("sink", label, advice), defer_signals():
        metadata = sink.send(run, results) if sent is None else sink.send_again(run, results, sent)
    for each in {place, folder}:
        _note(each, label, map_texts(mask, dict(metadata)))


def _note(folder: Path, label: str, metadata: dict[str, str]) -> None:
    state = read_state(folder)
    link = state.get("link") or metadata.get("link", "")
    write_state(folder, sinks={**state.get("sinks", {}), label: metadata}, link=link)


def link_of(folder: Path) -> str:
    """The first link to a job's run that needs nothing started first; empty if there is none."""
    sent = read_state(folder).get("sinks", {}).values()
    return next((about["link"] for about in sent if about.get("link") and not about.get("hint")), "")


def send_sweep(sweep: Sweep, report: SweepReport, sinks: Sinks) -> tuple[str, list[str]]:
    """Send a sweep: the runs of its jobs that aren't damaged, then the comparison. Returns the link to the curves of
    all, and an error for each sink that failed."""
    compared = dict(report.compared)
    jobs = {
        row.folder: compared.get(row.label)
        for row in report.rows
        if row.label in compared or not (row.results / RESULTS_FILE).exists()
    }
    links, problems = [], []
    for label, sink in sinks.items():
        failed = send_runs(jobs, {label: sink}, sweep.tracking_folder, sweep=sweep.id)
        if not failed:
            sent = [read_state(row.folder).get("sinks", {}).get(label, {}) for row in report.rows]
            what = f"can't take the comparison, which is in {sweep.summary}"
            try:
                with plugin_call("sink", label, what), defer_signals():
                    links.append(sink.send_sweep(sweep, report, sent))
            except CtxexpError as error:
                failed = [mask(str(error))]
        problems += failed
    return mask(next(filter(None, links), "")), problems
