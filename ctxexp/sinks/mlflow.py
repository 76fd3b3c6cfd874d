"""MLflow as a sink: a run a job, its curves with the layer as the step, its files; one more run for a whole sweep.

Runs lie flat, not nested: MLflow folds children away, and the charts of folded runs stay empty until one unfolds them.
"""

from __future__ import annotations

import logging
import math
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np

from ctxexp.errors import ConfigError, TrackingError
from ctxexp.files import is_own_file
from ctxexp.files.credentials import redact
from ctxexp.files.environment import provenance_tags
from ctxexp.files.job_folder import STATE
from ctxexp.report.charts import line_styles
from ctxexp.report.style import SUMMARY as SUMMARY_COLOUR
from ctxexp.report.style import colours, family, preferences
from ctxexp.results import Results
from ctxexp.sinks import Run, Sink, Status, Sweep, SweepReport, database, views
from ctxexp.sinks.database import BUNDLE, ERROR, KIND, LOGGED, SWEEP, tracking_errors

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric
    from mlflow.entities import Run as MlflowRun
_log = logging.getLogger("ctxexp")
MAX_METRICS, MAX_PARAMS = 1000, 100  # a batch, over HTTP
LAST_RUNS = 50  # of an experiment, whose colours differ


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
        self.experiment_id = ""  # empty: not connected yet

    def check(self, tracking_folder: Path) -> Mapping[str, str]:
        experiment = self.experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME", "")
        return {"uri": redact(database.checked_uri(tracking_folder, self.uri)), "experiment": experiment}

    def send(self, run: Run, results: Results) -> Mapping[str, str]:
        """Send a run, unless it is there already, whole; one that an interruption cut short is replaced. NaN stays NaN,
        a gap in the chart."""
        with self._errors("send a run", run.folder.parent if run.sweep else run.folder):
            self.connect(run.tracking_folder)
            stored = self._take_whole_run(run.id)
            if stored is None:
                stored = self._log_run(run, results)
            elif run.sweep and stored.data.tags.get(SWEEP) != run.sweep:
                self.client.set_tag(stored.info.run_id, SWEEP, run.sweep)
        return self._description(stored.info.run_id)

    def send_again(self, run: Run, results: Results, sent: Mapping[str, str]) -> Mapping[str, str]:
        return self.send(run, results)

    def send_sweep(self, sweep: Sweep, report: SweepReport, sent: Sequence[Mapping[str, str]]) -> str:
        """Colour the jobs' runs by their labels, tell namesakes apart, and send the comparison as a run of its own."""
        with self._errors(f"send the comparison of sweep {sweep.id}", sweep.results):
            self.connect(sweep.tracking_folder)
            self._label_runs(report, sent)
            link = views.sweep_link(self.uri or "", self.experiment_id, sweep.id)
            self._send_comparison(sweep, report, sent, link)
        return link if (self.uri or "").startswith("http") else ""  # nothing serves a file yet

    def stored_run(self, run: Run) -> MlflowRun | None:
        """The whole run that the store has of this one; what a cut sending left of it is deleted."""
        with self._errors("look for a run", run.folder):
            self.connect(run.tracking_folder)
            return self._take_whole_run(run.id)

    def connect(self, tracking_folder: Path) -> None:
        """Open store and experiment, made if need be, unless they are open. Raises TrackingError."""
        if self.experiment_id:
            return
        self.uri = database.prepare_store(tracking_folder, self.uri)
        self.client = database.client(self.uri)
        self.experiment = database.experiment_name(self.client, self.experiment)
        self.experiment_id = database.open_experiment(self.client, self.experiment, tracking_folder)

    @contextmanager
    def _errors(self, what: str, folder: Path) -> Iterator[None]:
        """Turn what MLflow raises into a TrackingError that says how to send later what lies in the folder."""
        try:
            with tracking_errors(f"cannot {what} to {redact(self.uri or 'the tracking store')}"):
                yield
        except TrackingError as error:
            command = f"ctxexp upload {shlex.quote(str(folder))}"
            raise TrackingError(f"{error}; all is safe on disk, and this sends it later: {command}") from error

    def _take_whole_run(self, bundle: str) -> MlflowRun | None:
        """The run that was sent whole; what is left of a sending that was cut off is deleted."""
        for stored in self.client.search_runs([self.experiment_id], f"tags.`{BUNDLE}` = '{bundle}'"):
            if stored.data.tags.get(LOGGED) == "true":
                return stored
            self.client.delete_run(stored.info.run_id)
        return None

    def _log_run(self, run: Run, results: Results) -> MlflowRun:
        from mlflow.entities import Metric

        curves, names, texts = self._curves(results)
        layers = results.info.model.layers
        metrics = [
            Metric(names[key], v if math.isfinite(v) else math.nan, run.began_ms, layer)
            for key, values in curves.items()
            for layer, v in enumerate(values.tolist())
            # a layer that wasn't measured is left out, and NaN of one that was is a gap
            if not layers or layer in layers or not math.isnan(v)
        ]
        sizes = {"n_layers": results.info.model.n_layers or None, "dim": results.info.model.dim or None}
        params = views.flat(run.params) | views.flat({"model": sizes})
        tags = views.tags_of(run) | texts | {views.COLOUR: self._free_colour(run.name)}
        stored = self._create_run(run.name, tags, params, run.began_ms, metrics)
        run_id = stored.info.run_id
        if results.by_key:
            self._set_tags(run_id, {views.NOTE: views.job_note(results, self.experiment_id, run_id)})
        data = views.dataset_inputs(results.info.corpus)
        database.retry_insert(lambda: self.client.log_inputs(run_id, datasets=data))
        self._send_files(stored, run.folder)
        if not run.sweep and results.by_key:  # what a sweep's end gives its runs
            note = views.experiment_note("run", [(results.info.title, results)], self.experiment_id, run_id)
            views.set_note(self.client, self.experiment_id, note)
        self._close_run(stored, run.status, run.error, run.ended_ms)
        return stored

    def _free_colour(self, name: str) -> str:
        """The colour of the run's model, as its page has it; the next one where another of the experiment's last runs
        has that, since MLflow draws them beside each other."""
        others = self.client.search_runs([self.experiment_id], max_results=LAST_RUNS)
        taken = {run.data.tags.get(views.COLOUR) for run in others}
        return next(colour for colour in preferences(family(name)) if colour not in taken)

    def _curves(self, results: Results) -> tuple[dict[str, np.ndarray], dict[str, str], dict[str, str]]:
        """The curves to log, each (n_layers,), by key; their names in MLflow; and tags on them. Infinity, which MLflow
        would store as 1.8e308, becomes a gap too: the tag ctxexp.infinite names its curves."""
        compared = {str(key): results.by_key[key].value for key in views.keys_to_compare(results)}
        curves = results.by_name if self.metrics == "all" else compared
        texts = {
            "ctxexp.infinite": ", ".join(key for key, values in curves.items() if np.isinf(values).any()),
            "ctxexp.bands": views.marks_of(results),
            "ctxexp.encoder": results.info.model.encoder,
            "ctxexp.version": results.info.version,
        }
        return curves, views.metric_names(curves), {key: text for key, text in texts.items() if text}

    def _create_run(
        self,
        name: str,
        tags: Mapping[str, str],
        params: Mapping[str, str],
        began_ms: int,
        metrics: Sequence[Metric] = (),
    ) -> MlflowRun:
        """An MLflow run with its params and metrics, in one batch or in as many as MLflow's HTTP interface needs."""
        from mlflow.entities import Param

        texts = {key: str(value)[: views.MAX_TAG] for key, value in tags.items()}
        run = self.client.create_run(self.experiment_id, began_ms, texts, name)
        self.client.set_terminated(run.info.run_id, "KILLED")  # what a sending is that never ends
        pairs = [Param(key, value) for key, value in params.items()]
        while metrics or pairs:
            room = MAX_METRICS - len(pairs[:MAX_PARAMS])
            self.client.log_batch(run.info.run_id, metrics[:room], pairs[:MAX_PARAMS], synchronous=True)
            metrics, pairs = metrics[room:], pairs[MAX_PARAMS:]
        return run

    def _set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        entities = [RunTag(key, text[: views.MAX_TAG]) for key, text in tags.items()]
        self.client.log_batch(run_id, tags=entities, synchronous=True)

    def _close_run(self, run: MlflowRun, status: Status, error: str | None, ended_ms: int | None = None) -> None:
        """Close a run; whoever sees the tag LOGGED sees a whole run."""
        run_id = run.info.run_id
        if error and self._can_send_files(run.info.artifact_uri):
            self.client.log_text(run_id, error, "error.txt")
        self.client.set_terminated(run_id, status, ended_ms)
        self._set_tags(run_id, {LOGGED: "true"} | ({ERROR: views.headline(error)} if error else {}))

    def _can_send_files(self, artifact_uri: str) -> bool:
        """Whether files can be sent; where a server leaves them on this machine, that is said."""
        address = urlsplit(artifact_uri)
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

    def _send_files(self, run: MlflowRun, folder: Path) -> None:
        """Send every file of the folder as an artifact, but none elsewhere that a link leads to: a folder may come from
        anyone, and a store be read by many."""
        if not self._can_send_files(run.info.artifact_uri):
            return
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            if path.name == STATE or path.suffix in (".part", ".lock", ".tmp"):
                continue
            if not is_own_file(path, folder):
                _log.warning("warning: not sent: %s leads out of its folder", path)
                continue
            inside = path.parent.relative_to(folder).as_posix()
            self.client.log_artifact(run.info.run_id, str(path), None if inside == "." else inside)

    def _label_runs(self, report: SweepReport, sent: Sequence[Mapping[str, str]]) -> None:
        """Give a sweep's runs colours that differ, and its namesakes their labels as names."""
        colour = colours([row.label for row in report.rows])  # of those that failed too
        colour |= {label: own for label, (own, _) in line_styles(report.compared).items()}
        for row, of_run in zip(report.rows, sent, strict=True):
            if not of_run:
                continue
            self.client.set_tag(of_run["run_id"], views.COLOUR, colour[row.label])
            if row.label != row.name and row.label.startswith(row.name) and not row.reused:
                self.client.update_run(of_run["run_id"], name=row.label)  # its own name is a namesake's too

    def _send_comparison(self, sweep: Sweep, report: SweepReport, sent: Sequence[Mapping[str, str]], link: str) -> None:
        bundle = f"{sweep.id}/summary"
        if self._take_whole_run(bundle):
            return
        name = f"comparison of {len(report.compared)} jobs" if report.compared else "comparison (no job finished)"
        counts = Counter(row.status for row in report.rows)
        tags = {
            **views.source_tags(provenance_tags()),
            KIND: "summary",
            SWEEP: sweep.id,
            BUNDLE: bundle,
            views.COLOUR: SUMMARY_COLOUR,
            views.NOTE: views.sweep_note(report, sent, link),
            **{f"ctxexp.jobs_{status.lower()}": str(n) for status, n in counts.items()},
        }
        params = {"jobs": len(report.rows), "labels": [r.label for r in report.rows], "overrides": sweep.overrides}
        run = self._create_run(name, tags, views.flat(params), int(sweep.began_s * 1000))
        if report.compared:
            note = views.experiment_note("sweep", report.compared, self.experiment_id, run.info.run_id)
            views.set_note(self.client, self.experiment_id, note)
        self._send_files(run, sweep.summary)
        errors = [f"{row.label}: {views.headline(row.error)}" for row in report.rows if row.error]
        errors += [report.error] if report.error else []
        end: Status = "FAILED" if report.error and report.status == "FINISHED" else report.status
        self._close_run(run, end, "\n".join(errors) or None)

    def _description(self, run_id: str) -> dict[str, str]:
        uri = redact(self.uri or "")
        link = views.run_link(uri, self.experiment_id, run_id)
        facts = {"run_id": run_id, "link": link, "uri": uri, "experiment": self.experiment or ""}
        return facts if uri.startswith("http") else {**facts, "hint": "after `ctxexp ui`, which serves it"}
