"""Several sinks of one job: each gets everything, whatever becomes of the others, and nothing on disk is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ctxexp import Results, Run, Sink
from ctxexp.errors import MetricError, TrackingError
from ctxexp.files.job_folder import read_state
from ctxexp.jobs import finished_on_disk, reuse
from ctxexp.jobs.sending import send_sweep
from ctxexp.jobs.sweep import close_sweep
from ctxexp.sinks import Sweep
from tests.memory_sink import MemorySink
from tests.sample_results import results_with, run_info
from tests.tracked import run_of as tracked_run
from tests.tracked import tracked


def results() -> Results:
    raw = np.linspace(0.9, 0.3, 4)
    raw[2] = np.nan
    return results_with({"self_similarity/raw": raw}, {"sts.last2/all": 1 / 3}, info=run_info(title="bert", n_layers=4))


def run_of(store: Path, name: str = "bert", *, sweep: str | None = None) -> Run:
    folder = store / "results" / (sweep or "single") / name
    return tracked_run(folder, store, name, key=f"key of {name}", params={"seed": 0}, config="seed: 0\n", sweep=sweep)


class Failing(MemorySink):
    """Fails at sending."""

    def send(self, run: Run, results: Results) -> Mapping[str, str]:
        raise ConnectionError("the line is cut")


class Named(MemorySink):
    """Says what it calls a run."""

    def send(self, run: Run, results: Results) -> Mapping[str, str]:
        super().send(run, results)
        return {"link": f"https://there/{run.name}"}


def test_a_failing_sink_is_told_and_loses_nothing(tmp_path: Path) -> None:
    good, run = MemorySink(), run_of(tmp_path)
    with pytest.raises(TrackingError) as caught, tracked(run, bad=Failing(), good=good) as running:
        running.save(results())
    says = f"sink 'bad' can't take the run, which is safe in {run.folder}: the same command with resume=true sends it: "
    assert str(caught.value).startswith(f"{says}ConnectionError: the line is cut")
    state = read_state(run.folder)
    assert (state["status"], list(state["meant"]), list(state["sinks"])) == ("FINISHED", ["bad", "good"], ["good"])
    assert good.results is not None
    assert Results.load(run.folder).frame.equals(results().frame)
    assert good.results.frame.equals(results().frame)
    assert finished_on_disk(tmp_path, run.key) == run.folder


def test_a_sink_that_can_not_be_used_stops_the_run_before_it_begins(tmp_path: Path) -> None:
    class Unusable(Sink):
        def check(self, tracking_folder: Path) -> Mapping[str, str]:
            raise TrackingError("no library")

    run = run_of(tmp_path)
    with pytest.raises(TrackingError, match="no library"), tracked(run, bad=Unusable()):
        raise AssertionError
    assert not run.folder.exists()


def test_a_sink_that_exits_does_not_end_the_command(tmp_path: Path) -> None:
    class Exits(Sink):
        def send(self, run: Run, results: Results) -> Mapping[str, str]:
            raise SystemExit(3)

    with pytest.raises(TrackingError, match=r"it called sys\.exit\(3\)"), tracked(run_of(tmp_path), x=Exits()) as job:
        job.save(results())


@pytest.mark.parametrize(("error", "status"), [(MetricError("no rows"), "FAILED"), (KeyboardInterrupt(), "KILLED")])
def test_a_sink_gets_what_failed_too(tmp_path: Path, error: BaseException, status: str) -> None:
    sink = MemorySink()
    with pytest.raises(type(error)), tracked(run_of(tmp_path), one=sink):
        raise error
    assert sink.run is not None
    assert (sink.run.status, sink.run.error is None, sink.results.measures()) == (status, False, [])


def test_without_sinks_all_is_on_disk_and_a_sweep_takes_it_over(tmp_path: Path, no_summary: None) -> None:
    run = run_of(tmp_path)
    with tracked(run) as running:
        running.save(results())
    assert finished_on_disk(tmp_path, run.key) == run.folder
    assert reuse(run_of(tmp_path, sweep="again")) == run.folder
    assert reuse(run_of(tmp_path, "gpt2")) is None
    sweep = Sweep("again", tmp_path, 0.0)
    report = close_sweep(sweep)
    assert (report.status, report.error, [label for label, _ in report.compared]) == ("FINISHED", None, ["bert"])
    assert (sweep.summary / "jobs.json").exists()
    assert send_sweep(sweep, report, {}) == ("", [])
    sink = Named()
    for _ in range(2):  # the second time the sink has it
        assert send_sweep(sweep, report, {"one": sink}) == ("", [])
        assert sink.run is not None
        assert (sink.run.sweep, sink.run.folder) == ("again", run.folder)
        sink.run = replace(sink.run, name="not sent again")
    assert read_state(run.folder)["sinks"] == {"one": {"link": "https://there/bert"}}
    assert read_state(tmp_path / "results" / "again" / "bert")["link"] == "https://there/bert"


def test_a_sweeps_sinks_get_their_own_words_back_and_one_that_fails_is_asked_once(
    tmp_path: Path, no_summary: None
) -> None:
    got = []

    class Charts(Named):
        def send_sweep(self, sweep: Sweep, report: Any, sent: Any) -> str:
            got.append([dict(each) for each in sent])
            return f"https://there/{sweep.id}"

    class Counting(Failing):
        calls = 0

        def send(self, run: Run, results: Results) -> Mapping[str, str]:
            self.calls += 1
            return super().send(run, results)

    for name in ("a", "b"):
        with tracked(run_of(tmp_path, name, sweep="s")) as running:
            running.save(results())
    sweep, bad = Sweep("s", tmp_path, 0.0), Counting()
    report = close_sweep(sweep)
    link, problems = send_sweep(sweep, report, {"bad": bad, "one": Charts()})
    assert (link, len(problems), bad.calls) == ("https://there/s", 1, 1)
    assert got == [[{"link": "https://there/a"}, {"link": "https://there/b"}]]
