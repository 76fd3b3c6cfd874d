"""Several sinks as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ctxexp.errors import CtxexpError, TrackingError, plugin_call
from ctxexp.files.credentials import map_texts, mask
from ctxexp.results import Results
from ctxexp.sink import Run, Sink, Status, Sweep, SweepReport


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
