"""MLflow as a sink: a run a job, its curves with the layer as the step, its files; one more run for a whole sweep; and
saved results sent later, for when the store was down, or lives elsewhere.

Runs lie flat, not nested: MLflow folds children away, and the charts of folded runs stay empty until one unfolds them.
"""

from __future__ import annotations

import logging
import math
import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np

from ctxexp.errors import ConfigError, TrackingError
from ctxexp.files import is_own_file, user_path
from ctxexp.files.credentials import redact
from ctxexp.files.environment import provenance_tags
from ctxexp.files.job_folder import RUN, STATE, read_state, write_state
from ctxexp.report.charts import line_styles
from ctxexp.report.style import SUMMARY as SUMMARY_COLOUR
from ctxexp.report.style import colours
from ctxexp.results import Results
from ctxexp.results.values import RESULTS_FILE
from ctxexp.sinks import Run, Sink, Status, Sweep, SweepReport, database, load_run, views
from ctxexp.sinks.database import BUNDLE, ERROR, KIND, LOGGED, SWEEP, tracking_errors

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag
_log = logging.getLogger("ctxexp")
MAX_METRICS, MAX_PARAMS = 1000, 100  # a batch, over HTTP
MAX_RUNS = 50_000  # that MLflow gives at once


@cache
def _say_where_files_stay(uri: str, place: str, can_write: bool) -> None:
    """Once a process, in one line."""
    where = f"are written to {place} on this machine" if can_write else f"stay in the tracking folder: no {place} here"
    _log.warning(
        f"warning: {uri} serves no artifacts (it was started with --no-serve-artifacts): the runs' files {where}, and "
        "its page shows them on no other machine"
    )


class MlflowSink(Sink):
    """MLflow: curves by layer as charts, files as artifacts; a SQLite file in the tracking folder, or any store.

    `metrics`: compared logs each measure's share of the room, adjusted, raw, baseline and main curve; all logs
    every value.

    uri: null: MLFLOW_TRACKING_URI, else the SQLite store in tracking.folder
    experiment: null: MLFLOW_EXPERIMENT_NAME or MLFLOW_EXPERIMENT_ID, else ctxexp
    metrics: compared: each measure's main curve, raw and baseline; all: every value, ends of intervals too
    """

    # Through the client alone: no active run, no global state, MLFLOW_RUN_ID plays no part.

    client: MlflowClient

    def __init__(
        self,
        *,
        uri: str | None = None,
        experiment: str | None = None,
        metrics: Literal["compared", "all"] = "compared",
    ) -> None:
        if experiment is not None and not experiment.strip():
            raise ConfigError(f"sink mlflow: experiment={experiment!r}: expected a name")
        self.uri, self.experiment, self.metrics = uri, experiment, metrics
        self.experiment_id = self.run_id = ""
        self._began_ms = 0
        self._folder = Path()
        self._is_alone = False  # whether the run is of no sweep, whose end would show it

    def prepare_jobs(self, tracking_folder: Path) -> Mapping[str, object]:
        """Make store and experiment, and close the runs that killed processes left open; returns the store's URI and
        the experiment, so that all jobs use these."""
        own_experiment = self.experiment
        self._connect(tracking_folder)
        database.mark_killed_runs(self.client, self.experiment_id)
        uri = {"uri": self.uri} if self.uri and self.uri.startswith("sqlite") else {}  # a server's is in the config
        return uri if own_experiment == self.experiment else {**uri, "experiment": self.experiment}

    def start(self, run: Run) -> None:
        self._connect(run.tracking_folder, prepared=bool(run.sweep))
        self._folder, self._is_alone = run.folder, not run.sweep
        self.create_run(run.name, views.tags_of(run), run.params, run.began_ms)

    def create_run(self, name: str, tags: Mapping[str, str], params: Mapping[str, object], began_ms: int) -> None:
        """Create an MLflow run, which later calls write to; `began_ms`: the time of its start in ms since 1970."""
        from mlflow.entities import Param

        self._began_ms = began_ms
        with self._tracking_errors("start a run"):
            run = self.client.create_run(
                self.experiment_id, began_ms, {k: str(v)[: views.MAX_TAG] for k, v in tags.items()}, name
            )
            self.run_id = run.info.run_id
            self._log_batches(params=[Param(k, v) for k, v in views.flat(params).items()])

    def send_once(self, run: Run) -> bool:
        """Send a saved run with its results, unless it is there already; one that an interruption left incomplete is
        replaced. Returns whether anything had to be sent."""
        results = Results.load(run.folder)
        self._connect(run.tracking_folder)
        with tracking_errors(f"cannot look for the run of {run.folder} in {redact(self.uri or '')}"):
            for earlier in self.client.search_runs([self.experiment_id], f"tags.`{BUNDLE}` = '{run.id}'"):
                self.run_id = earlier.info.run_id
                if earlier.data.tags.get(LOGGED) == "true" and earlier.info.status == "FINISHED":
                    return False
                self.client.delete_run(self.run_id)
        self.start(run)
        self.log(results, run.folder)
        self.finish("FINISHED")
        return True

    def _connect(self, tracking_folder: Path, *, prepared: bool = False) -> None:
        """Open store and experiment, unless they are open; `prepared`: `prepare_jobs` of a sweep has made them."""
        if self.experiment_id:
            return
        prepared = prepared and self.uri is not None
        self.uri = (database.store_uri if prepared else database.prepare_store)(tracking_folder, self.uri)
        with tracking_errors(f"cannot open the tracking store {redact(self.uri)}"):
            self.client = database.client(self.uri)
        self.experiment = database.experiment_name(self.client, self.experiment)
        self.experiment_id = database.open_experiment(self.client, self.experiment, tracking_folder)

    def _tracking_errors(self, what: str) -> AbstractContextManager[None]:
        command = f"ctxexp upload {shlex.quote(str(self._folder))}"
        advice = f". The results are safe in {self._folder}; when the store answers again, send them with: {command}"
        is_saved = (self._folder / "results.json").exists()
        return tracking_errors(f"cannot {what} in {redact(self.uri or '')}", advice if is_saved else "")

    def log(self, results: Results, folder: Path) -> None:
        """Log curves, counts and files. Logging the same results again changes nothing, since every point carries the
        time of the run's start.

        NaN stays NaN, a gap in the chart. Infinity, which MLflow would store as 1.8e308, becomes NaN as well, and the
        tag ctxexp.infinite names its curves.
        """
        from mlflow.entities import Metric, Param, RunTag

        logged = views.marked_results(results)
        compared = {str(key): logged.by_key[key].value for key in views.keys_to_compare(logged)}
        curves = logged.by_name if self.metrics == "all" else compared
        names, info = views.metric_names(curves), results.info
        infinite = [key for key, values in curves.items() if np.isinf(values).any()]
        texts = {
            "ctxexp.infinite": ", ".join(infinite),
            "ctxexp.encoder": info.model.encoder,
            "ctxexp.version": info.version,
            views.NOTE: views.job_note(results, self.experiment_id, self.run_id),
        }
        tags = [RunTag(key, text[: views.MAX_TAG]) for key, text in texts.items() if text]
        sizes = {"n_layers": info.model.n_layers or None, "dim": info.model.dim or None}
        metrics = [
            Metric(names[key], v if math.isfinite(v) else math.nan, self._began_ms, layer)
            for key, values in curves.items()
            for layer, v in enumerate(values.tolist())
            if not info.model.layers or layer in info.model.layers or not math.isnan(v)
        ]
        with self._tracking_errors("log"):
            self._log_batches(metrics, [Param(k, v) for k, v in views.flat({"model": sizes}).items()], tags)
            data = views.dataset_inputs(info.corpus)
            database.retry_insert(lambda: self.client.log_inputs(self.run_id, datasets=data))
            self.send_files(folder)
            if self._is_alone:  # what a sweep's end gives its runs: a note on them
                note = views.experiment_note("run", [(info.title, results)], self.experiment_id, self.run_id)
                views.set_note(self.client, self.experiment_id, note)
            self.client.set_tag(self.run_id, LOGGED, "true")

    def _log_batches(
        self, metrics: Sequence[Metric] = (), params: Sequence[Param] = (), tags: Sequence[RunTag] = ()
    ) -> None:
        """Log these in one batch, or in as many as the limits of MLflow's HTTP interface need."""
        while metrics or params or tags:
            room = MAX_METRICS - len(params[:MAX_PARAMS]) - len(tags)
            self.client.log_batch(self.run_id, metrics[:room], params[:MAX_PARAMS], tags, synchronous=True)
            metrics, params, tags = metrics[room:], params[MAX_PARAMS:], ()

    @cached_property
    def _can_send_files(self) -> bool:
        """Whether the run's files can be sent; where a server leaves them on this machine, that is said."""
        address = urlsplit(self.client.get_run(self.run_id).info.artifact_uri)
        if not self.client.tracking_uri.startswith("http") or address.scheme not in ("", "file"):
            return True
        place = Path(url2pathname(address.path))  # of this machine, where a server has no proxy for artifacts
        try:
            place.mkdir(parents=True, exist_ok=True)
            can_write = os.access(place, os.W_OK)
        except OSError:
            can_write = False
        _say_where_files_stay(redact(self.uri or ""), str(place.parent.parent), can_write)
        return can_write

    def send_files(self, folder: Path) -> None:
        """Send every file of the folder as an artifact, but none elsewhere that a link leads to: a folder may come from
        anyone, and a store be read by many."""
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and self._can_send_files):
            if path.name == STATE or path.suffix in (".part", ".lock", ".tmp"):
                continue
            if not is_own_file(path, folder):
                _log.warning("warning: not sent: %s leads out of its folder", path)
                continue
            inside = path.parent.relative_to(folder).as_posix()
            self.client.log_artifact(self.run_id, str(path), None if inside == "." else inside)

    def finish(self, status: Status, error: str | None = None) -> None:
        if not self.run_id:  # the run was never created
            return
        with self._tracking_errors("close a run"):
            if error:
                self.client.set_tag(self.run_id, ERROR, views.headline(error))
            if database.CLOSED in self.client.get_run(self.run_id).data.tags:  # it was taken for dead
                self.client.delete_tag(self.run_id, database.CLOSED)
            self.client.set_terminated(self.run_id, status)
            if error and self._can_send_files:
                self.client.log_text(self.run_id, error, "error.txt")

    def metadata(self) -> Mapping[str, str]:
        if not self.run_id:
            return {}
        uri = redact(self.uri or "")
        link = views.run_link(uri, self.experiment_id, self.run_id)
        facts = {"run_id": self.run_id, "link": link, "uri": uri, "experiment": self.experiment or ""}
        return facts if uri.startswith("http") else {**facts, "hint": "after `ctxexp ui`, which serves it"}

    def finish_sweep(self, sweep: Sweep, report: SweepReport, metadata: Sequence[Mapping[str, str]]) -> None:
        """Colour the jobs' runs by their labels, tell namesakes apart, terminate those that are still RUNNING, and
        create the summary run with the comparison."""
        self._folder = sweep.summary
        run_ids = [run.get("run_id", "") for run in metadata]  # empty where a job has none
        errors = [f"{row.label}: {views.headline(row.error)}" for row in report.rows if row.error]
        errors += [report.error] if report.error else []
        end: Status = "FAILED" if report.error and report.status == "FINISHED" else report.status
        what = f"cannot send the comparison of sweep {sweep.id} to {redact(self.uri or '')}"
        try:
            with tracking_errors(what, f". It is in {sweep.summary}"):
                _settle_runs(self, sweep, report, run_ids)
                _send_summary(self, sweep, report, run_ids)
        except TrackingError as error:
            self.finish("FAILED" if end == "FINISHED" else end, "\n".join([*errors, str(error)]))
            raise
        self.finish(end, "\n".join(errors) or None)

    def charts_link(self, sweep: Sweep) -> str:
        uri = self.uri or ""
        if not self.experiment_id or not uri.startswith("http"):  # nothing serves a file yet
            return ""
        return views.sweep_link(uri, self.experiment_id, sweep.id)

    def reuse(self, run: Run, saved: Run) -> None:
        self.send_once(saved)
        if run.sweep:
            with tracking_errors(f"cannot reuse the finished run of {redact(self.uri or '')}"):
                self.client.set_tag(self.run_id, SWEEP, run.sweep)


def _settle_runs(sink: MlflowSink, sweep: Sweep, report: SweepReport, run_ids: Sequence[str]) -> None:
    client = sink.client
    colour = colours([row.label for row in report.rows])
    line_colours = {label: line_colour for label, (line_colour, _) in line_styles(report.compared).items()}
    if len(set(line_colours.values())) == len(line_colours):  # charts have no line styles: all colours must differ
        colour |= line_colours
    query = f"tags.`{SWEEP}` = '{sweep.id}'"
    runs = {run.info.run_id: run for run in client.search_runs([sink.experiment_id], query, max_results=MAX_RUNS)}
    for row, run_id in zip(report.rows, run_ids, strict=True):
        if (run := runs.pop(run_id, None)) is None:
            continue
        client.set_tag(run_id, views.COLOUR, colour[row.label])
        if row.label != run.info.run_name and row.label.startswith(run.info.run_name) and not row.reused:
            client.update_run(run_id, name=row.label)  # its own name is a namesake's too
        if run.info.status == "RUNNING":
            client.set_terminated(run_id, row.status)
    for run_id, run in runs.items():  # of jobs that left nothing on this disk
        if run.info.status == "RUNNING" and run.data.tags.get(KIND) == "job":
            client.set_terminated(run_id, "KILLED")


def _send_summary(sink: MlflowSink, sweep: Sweep, report: SweepReport, run_ids: Sequence[str]) -> None:
    client, experiment_id = sink.client, sink.experiment_id
    link = views.sweep_link(sink.uri or "", experiment_id, sweep.id)
    counts = Counter(row.status for row in report.rows)
    sink.create_run(
        f"comparison of {len(report.compared)} jobs" if report.compared else "comparison (no job finished)",
        {
            **views.source_tags(provenance_tags()),
            KIND: "summary",
            SWEEP: sweep.id,
            views.COLOUR: SUMMARY_COLOUR,
            views.NOTE: views.sweep_note(report, run_ids, link),
            **{f"ctxexp.jobs_{status.lower()}": str(n) for status, n in counts.items()},
        },
        {"jobs": len(report.rows), "labels": [r.label for r in report.rows], "overrides": sweep.overrides},
        int(sweep.began_s * 1000),
    )
    if report.compared:
        note = views.experiment_note("sweep", report.compared, experiment_id, sink.run_id)
        views.set_note(client, experiment_id, note)
    sink.send_files(sweep.summary)
    client.set_tag(sink.run_id, LOGGED, "true")


@dataclass(frozen=True)
class Upload:
    """One folder's run in the store; where `is_new` is false it was there, complete, and nothing was sent."""

    folder: Path
    run_id: str
    link: str
    is_new: bool


def upload(folder: Path | str, *, uri: str | None = None, experiment: str | None = None) -> list[Upload]:
    """Send a job's folder, or each job of a sweep's folder, to a tracking store; sending twice makes no second run.

    `uri` and `experiment` default to those of the original run. A run that was cut short is completed. Raises
    TrackingError if a folder holds no results or the store doesn't answer.
    """
    top = user_path(folder).resolve()
    jobs = [top] if (top / RUN).exists() else sorted(p.parent for p in top.glob(f"*/{RUN}"))
    if not (jobs := [one for one in jobs if one == top or (one / RESULTS_FILE).exists()]):
        raise TrackingError(
            f"{top} holds no results of ctxexp: expected {RUN} and {RESULTS_FILE} there or one folder below"
        )
    return [_upload(one, uri, experiment) for one in jobs]


def _upload(folder: Path, uri: str | None, experiment: str | None) -> Upload:
    above = folder.parents  # <tracking folder>/results/<sweep>/<job>
    store = above[2] if len(above) > 2 and above[1].name == "results" else above[0]
    run, descriptions = load_run(folder, store), read_state(folder).get("sinks", {})
    record = descriptions.get("mlflow", {})
    if not uri and (uri := record.get("uri")) and (path := database.sqlite_file(uri)) and not path.exists():
        uri = None  # the folder was moved, or copied from elsewhere
    sink = MlflowSink(uri=uri, experiment=experiment or record.get("experiment"))
    is_new = sink.send_once(run)
    metadata = sink.metadata()
    descriptions = {**descriptions, "mlflow": dict(metadata)}
    write_state(folder, status="FINISHED", error=None, sinks=descriptions, link=metadata["link"])
    return Upload(folder, metadata["run_id"], metadata["link"], is_new)
