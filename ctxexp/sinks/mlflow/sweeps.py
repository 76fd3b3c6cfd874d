"""Sweeps in MLflow: their jobs' runs share a tag, and one summary run beside them carries the comparison.

Runs lie flat, not nested: MLflow folds children away, and the charts of folded runs stay empty until one unfolds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ctxexp.errors import TrackingError
from ctxexp.files.credentials import redact
from ctxexp.jobs import environment
from ctxexp.report.charts import line_styles
from ctxexp.report.palette import SUMMARY as SUMMARY_COLOUR
from ctxexp.report.palette import colours
from ctxexp.sink import Sweep, SweepReport
from ctxexp.sinks.mlflow import views
from ctxexp.sinks.mlflow.failures import tracking_errors
from ctxexp.sinks.mlflow.links import jobs_filter, sweep_link
from ctxexp.sinks.mlflow.notes import experiment_note, sweep_note
from ctxexp.sinks.mlflow.tags import COLOUR, KEY, KIND, LOGGED, NOTE, SWEEP, source_tags
from ctxexp.sinks.mlflow.values import headline

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

    from ctxexp.sinks.mlflow.sink import MlflowSink


def search(client: MlflowClient, experiment_id: str, query: str) -> Iterator[Run]:
    """Every run that the query finds, the newest first."""
    token: str | None = None
    while True:
        page = client.search_runs(
            [experiment_id], query, max_results=1000, order_by=["attributes.start_time DESC"], page_token=token
        )
        yield from page
        token = page.token
        if not token:
            return


def finished_run(client: MlflowClient, experiment_id: str, key: str) -> str:
    """The id of the newest FINISHED run of a job key that was logged completely; empty if there is none."""
    query = f"attributes.status = 'FINISHED' AND tags.`{KIND}` = 'job' AND tags.`{LOGGED}` = 'true'"
    with tracking_errors(f"cannot list the finished runs of {redact(client.tracking_uri)}"):
        runs = client.search_runs(
            [experiment_id],
            f"{query} AND tags.`{KEY}` = '{key}'",
            max_results=1,
            order_by=["attributes.start_time DESC"],
        )
    return str(runs[0].info.run_id) if runs else ""


def finish_sweep(sink: MlflowSink, sweep: Sweep, report: SweepReport, run_ids: Sequence[str]) -> None:
    """Finish a sweep: colour the jobs' runs by their labels, tell namesakes apart, terminate those that are still
    RUNNING, install the sweep's view of charts, and create the summary run with the comparison. Raises TrackingError.

    `run_ids` belong to the report's rows; empty where a job has none.
    """
    client, uri = sink.client, redact(sink.uri or "")
    colour = colours([row.label for row in report.rows])
    line_colours = {label: line_colour for label, (line_colour, _) in line_styles(report.compared).items()}
    if len(set(line_colours.values())) == len(line_colours):  # charts have no line styles: all colours must differ
        colour |= line_colours
    with tracking_errors(
        f"cannot settle the runs of sweep {sweep.id} in {uri}", f". Its comparison is in {sweep.summary}"
    ):
        runs_of_sweep = {
            run.info.run_id: run for run in search(client, sink.experiment_id, f"tags.`{SWEEP}` = '{sweep.id}'")
        }
        for row, run_id in zip(report.rows, run_ids, strict=True):
            run = runs_of_sweep.pop(run_id, None)
            if run is None:
                continue
            client.set_tag(run_id, COLOUR, colour[row.label])
            if row.label != run.info.run_name and row.label.startswith(run.info.run_name) and not row.reused:
                client.update_run(run_id, name=row.label)  # its own name is a namesake's too
            if run.info.status == "RUNNING":
                client.set_terminated(run_id, row.status)
        for run_id, run in runs_of_sweep.items():  # of jobs that left nothing on this disk
            if run.info.status == "RUNNING" and run.data.tags.get(KIND) == "job":
                client.set_terminated(run_id, "KILLED")
        if report.compared:
            views.install(client, sink.experiment_id, sweep.id, jobs_filter(sweep.id), report.compared)
        tags = client.get_experiment(sink.experiment_id).tags
        link = sweep_link(uri, sink.experiment_id, sweep.id, tags)
        counts = Counter(row.status for row in report.rows)
        sink.create_run(
            f"comparison of {len(report.compared)} jobs" if report.compared else "comparison (no job finished)",
            {
                **source_tags(environment.provenance_tags()),
                KIND: "summary",
                SWEEP: sweep.id,
                COLOUR: SUMMARY_COLOUR,
                NOTE: sweep_note(report, run_ids, link),
                **{f"ctxexp.jobs_{status.lower()}": str(n) for status, n in counts.items()},
            },
            {"jobs": len(report.rows), "labels": [r.label for r in report.rows], "overrides": sweep.overrides},
            "\n".join(["# overrides of the sweep", *(f"- {o!r}" for o in sweep.overrides), ""]),
            int(sweep.began_s * 1000),
        )
        if report.compared:
            note = experiment_note("sweep", report.compared, sink.experiment_id, sink.run_id)
            views.describe(client, sink.experiment_id, note)
    failed: TrackingError | None = None
    try:
        with tracking_errors(f"cannot send the comparison of sweep {sweep.id} to {uri}", f". It is in {sweep.summary}"):
            sink.send_files(sweep.summary)
            client.set_tag(sink.run_id, LOGGED, "true")
    except TrackingError as error:
        failed = error
    errors = [f"{row.label}: {headline(row.error)}" for row in report.rows if row.error]
    errors += [str(problem) for problem in (report.error, failed) if problem]
    broken = (report.error or failed) and report.status == "FINISHED"
    sink.finish("FAILED" if broken else report.status, "\n".join(errors) or None)
    if failed:
        raise failed
