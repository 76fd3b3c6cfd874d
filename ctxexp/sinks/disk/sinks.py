"""Several sinks as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ctxexp.errors import CtxexpError, TrackingError, said, stranger
from ctxexp.results import Results
from ctxexp.sink import Run, Sink, Status, Sweep, SweepReport
from ctxexp.sinks.disk.credentials import mask


class Sinks(Sink):
    """Each sink gets everything, whatever becomes of the others; then the first failure is raised, as TrackingError.

    `sinks` by label; `of` says whose a label's sink is, where it is a plugin's.
    """

    def __init__(self, sinks: Mapping[str, Sink], of: Mapping[str, str] | None = None) -> None:
        self.sinks, self.of = sinks, of or {}

    def start(self, run: Run) -> None:
        self._each("start the run", lambda _, sink: sink.start(run))

    def log(self, results: Results, folder: Path) -> None:
        self._each(f"take the results, which are safe in {folder}", lambda _, sink: sink.log(results, folder))

    def finish(self, status: Status, error: str | None = None) -> None:
        self._each("close the run", lambda _, sink: sink.finish(status, error))

    def described(self) -> dict[str, dict[str, str]]:
        """What each sink says of its run, by label; those that say nothing are left out."""
        found: dict[str, dict[str, str]] = {}
        self._each("say what it calls the run", lambda label, sink: found.update({label: dict(sink.about())}))
        return {label: about for label, about in found.items() if about}

    def prepared(self, store: Path) -> dict[str, dict[str, object]]:
        """The arguments that the jobs' sinks get in place of their own, by label."""
        found: dict[str, dict[str, object]] = {}
        self._each("be prepared", lambda label, sink: found.update({label: dict(sink.prepare(store))}))
        return found

    def close(self, sweep: Sweep, report: SweepReport, about: Sequence[Mapping[str, str]] = ()) -> None:
        def close(label: str, sink: Sink) -> None:
            sink.close(sweep, report, [row.sinks.get(label, {}) for row in report.rows])

        self._each(f"settle the sweep, whose comparison is in {sweep.summary}", close)

    def charts(self, sweep: Sweep) -> str:
        found: list[str] = []
        self._each("say where the curves are", lambda _, sink: found.append(sink.charts(sweep)))
        return next(filter(None, found), "")

    def fetch(self, run: Run, folder: Path) -> bool:
        """Whether one of them had it; a failure is raised where none had."""
        found: list[bool] = []
        try:
            self._each("give a finished run", lambda _, sink: found.append(any(found) or sink.fetch(run, folder)))
        except TrackingError:
            if not any(found):
                raise
        return any(found)

    def adopt(self, run: Run, saved: Run) -> None:
        self._each("take over a finished run", lambda _, sink: sink.adopt(run, saved))

    def _each(self, what: str, call: Callable[[str, Sink], object]) -> None:
        failed: TrackingError | None = None
        for label, sink in self.sinks.items():
            try:
                with stranger():
                    call(label, sink)
            except Exception as error:  # a sink may be anyone's code
                own = isinstance(error, CtxexpError)
                words = str(error) if own else f"sink {label!r} can't {what}: {mask(said(error))}"
                whose = f" [sink {label!r} is of {self.of[label]}]" if label in self.of else ""
                if failed is None:
                    failed = TrackingError(words + whose)
                    failed.__cause__ = error
        if failed:
            raise failed
