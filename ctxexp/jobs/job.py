"""One job: its folder on disk, its run in the sinks, several of which are as one, and how it ends.

A job's folder holds run.json (what names the run), config.yaml, environment.json, results.json, tables and figures,
and status.json, which says how the job stands without asking any sink.
"""

from __future__ import annotations

import contextlib
import secrets
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxexp.errors import CtxexpError, TrackingError, plugin_call
from ctxexp.files.credentials import map_texts, mask
from ctxexp.files.job_folder import RUN, mark_killed_jobs, try_state, write_json, write_state
from ctxexp.files.process import defer_signals, environment, process_tags, provenance_tags, raise_on_termination
from ctxexp.files.writing import MANIFEST, disk_error_message, is_disk_full, seal_folder, write_text
from ctxexp.results import RESULTS_FILE, Results
from ctxexp.sink import Run, Sink, Status, Sweep, SweepReport


def new_run(
    folder: Path,
    store: Path,
    *,
    name: str,
    key: str,
    params: Mapping[str, object],
    config: str,
    sweep: str | None = None,
) -> Run:
    """A run that begins now, for the job in `folder`; credentials are masked."""
    return Run(
        name=name,
        key=key,
        id=secrets.token_hex(16),
        folder=folder,
        tracking_folder=store,
        began_ms=int(time.time() * 1000),
        params=map_texts(mask, dict(params)),
        config=mask(config),
        source=map_texts(mask, provenance_tags()),
        sweep=sweep,
    )


@dataclass
class Job:
    """A running job: where its files go, and its sinks."""

    run: Run
    sinks: Sinks
    link: str = ""
    is_saved: bool = False

    def save(self, results: Results) -> None:
        """Put the results on disk: from here on nothing is lost."""
        results.save(self.run.folder)
        seal_folder(self.run.folder)
        self.is_saved = True
        write_state(self.run.folder, measured=True)

    def log(self, results: Results) -> None:
        """Send results and folder to the sinks; saves them first where that was not done."""
        if not self.is_saved:
            self.save(results)
        self.sinks.log(results, self.run.folder)
        write_state(self.run.folder, logged=True)


@contextlib.contextmanager
def job(run: Run, sinks: Sinks, *, overrides: Sequence[str] = ()) -> Iterator[Job]:
    """Run the block as one job and record how it ends: FINISHED, FAILED with its error, or KILLED."""
    folder = run.folder
    if run.sweep is None:  # a sweep does it once, before its jobs
        mark_killed_jobs(run.tracking_folder)
    for stale in (MANIFEST, RESULTS_FILE):  # of an earlier job in this place: not this one's results
        (folder / stale).unlink(missing_ok=True)
    own = ("name", "key", "id", "params", "source", "sweep")  # the others are its place and its config
    description = {**{key: vars(run)[key] for key in own}, "began": run.began_ms}
    write_text(folder / "config.yaml", run.config)
    write_json(folder / "environment.json", environment())
    write_json(folder / RUN, {**description, "overrides": list(overrides)})
    write_state(
        folder,
        fresh=True,
        status="RUNNING",
        name=run.name,
        key=run.key,
        overrides=list(overrides),
        process=process_tags(),
    )
    status: Status = "FINISHED"
    error: str | None = None
    with raise_on_termination():
        try:
            sinks.start(run)
            yield Job(run, sinks, describe_sinks(folder, sinks))
        except Exception as raised:
            status, error = "FAILED", describe(raised)
            raise
        except BaseException as raised:
            status, error = "KILLED", f"interrupted ({type(raised).__name__})"
            raise
        finally:
            with defer_signals():
                _finish(sinks, folder, status, error)


def describe_sinks(folder: Path, sinks: Sinks) -> str:
    """Note in status.json how the sinks describe the run; returns the first link to it that needs nothing started
    first; empty if there is none."""
    descriptions = sinks.descriptions()
    first = next((about for about in descriptions.values() if about.get("link")), {})
    write_state(folder, sinks=descriptions, link=first.get("link", ""))
    return "" if first.get("hint") else first.get("link", "")


def _finish(sinks: Sinks, folder: Path, status: Status, error: str | None) -> None:
    """Close the run and say on disk how the job ended."""
    try:
        sinks.finish(status, error)
    except TrackingError as refused:
        if error is None:
            status, error = "FAILED", str(refused)
            raise
    finally:
        (try_state if error else write_state)(folder, status=status, error=error)


def describe(error: BaseException) -> str:
    """The message of an error that ctxexp raises on purpose, or that a full disk raises; else the whole traceback."""
    if isinstance(error, OSError) and is_disk_full(error):
        return disk_error_message(error)
    return mask(str(error) if isinstance(error, CtxexpError) else "".join(traceback.format_exception(error)))


class Sinks(Sink):
    """Calls every sink, whether or not others fail; then raises the first failure as TrackingError.

    `sinks` by label; `plugin_of`: label of a sink to the plugin that supplied it.
    """

    def __init__(self, sinks: Mapping[str, Sink], plugin_of: Mapping[str, str] | None = None) -> None:
        self.sinks, self.plugin_of = sinks, plugin_of or {}

    def start(self, run: Run) -> None:
        self._each("start the run", lambda _, sink: sink.start(run))

    def log(self, results: Results, folder: Path) -> None:
        self._each(f"take the results, which are safe in {folder}", lambda _, sink: sink.log(results, folder))

    def finish(self, status: Status, error: str | None = None) -> None:
        self._each("close the run", lambda _, sink: sink.finish(status, error))

    def descriptions(self) -> dict[str, dict[str, str]]:
        """Each sink's description of its run, by label, credentials masked; empty ones are left out."""
        by_label: dict[str, dict[str, str]] = {}
        self._each("say what it calls the run", lambda label, sink: by_label.update({label: dict(sink.metadata())}))
        return {label: map_texts(mask, metadata) for label, metadata in by_label.items() if metadata}

    def prepare_all(self, store: Path) -> dict[str, dict[str, object]]:
        """Call `prepare_jobs` of every sink, once per command; returns by label the arguments that the jobs' sinks get
        in place of their own."""
        by_label: dict[str, dict[str, object]] = {}
        self._each("be prepared", lambda label, sink: by_label.update({label: dict(sink.prepare_jobs(store))}))
        return by_label

    def finish_sweep(self, sweep: Sweep, report: SweepReport, metadata: Sequence[Mapping[str, str]] = ()) -> None:
        def finish(label: str, sink: Sink) -> None:
            sink.finish_sweep(sweep, report, [row.sinks.get(label, {}) for row in report.rows])

        self._each(f"settle the sweep, whose comparison is in {sweep.summary}", finish)

    def charts_link(self, sweep: Sweep) -> str:
        links: list[str] = []
        self._each("say where the curves are", lambda _, sink: links.append(sink.charts_link(sweep)))
        return mask(next(filter(None, links), ""))

    def fetch(self, run: Run, folder: Path) -> bool:
        """Whether a sink had the run's files; a failure is raised where none had."""
        answers: list[bool] = []
        try:
            self._each("give a finished run", lambda _, sink: answers.append(any(answers) or sink.fetch(run, folder)))
        except TrackingError:
            if not any(answers):
                raise
        return any(answers)

    def reuse(self, run: Run, saved: Run) -> None:
        self._each("take over a finished run", lambda _, sink: sink.reuse(run, saved))

    def _each(self, what: str, call: Callable[[str, Sink], object]) -> None:
        failed: TrackingError | None = None
        for label, sink in self.sinks.items():
            try:
                with plugin_call("sink", label, f"can't {what}"):
                    call(label, sink)
            except CtxexpError as error:
                supplier = f" [sink {label!r} is of {self.plugin_of[label]}]" if label in self.plugin_of else ""
                if failed is None:
                    failed = TrackingError(mask(str(error)) + supplier)
                    failed.__cause__ = error
        if failed:
            raise failed
