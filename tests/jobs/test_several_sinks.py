"""Several sinks of one job: each gets everything, whatever becomes of the others, and nothing on disk is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ctxexp import Results, Run, Sink
from ctxexp.errors import TrackingError
from ctxexp.jobs import Sinks, finished_on_disk, job, reuse
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
    """Fails in one of its methods."""

    def __init__(self, method: str) -> None:
        self.method = method

    def __getattribute__(self, name: str) -> Any:
        if name == object.__getattribute__(self, "method"):
            raise ConnectionError("the line is cut")
        return object.__getattribute__(self, name)


def state(store: Path, name: str = "bert", group: str = "single") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((store / "results" / group / name / "status.json").read_text())
    return found


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("start", "sink 'bad' can't start the run: ConnectionError: the line is cut"),
        ("log", "sink 'bad' can't take the results, which are safe in {folder}: ConnectionError: the line is cut"),
        ("finish", "sink 'bad' can't close the run: ConnectionError: the line is cut"),
        ("metadata", "sink 'bad' can't say what it calls the run: ConnectionError"),
    ],
)
def test_a_failing_sink_is_told_and_loses_nothing(tmp_path: Path, method: str, says: str) -> None:
    good, run = MemorySink(), run_of(tmp_path)
    sinks = Sinks({"bad": Failing(method), "good": good})
    with pytest.raises(TrackingError) as caught, job(run, sinks) as running:
        running.log(results())
    words = f"{says.format(folder=run.folder)}"
    assert str(caught.value).startswith(words)
    assert state(tmp_path)["status"] == "FAILED"
    assert state(tmp_path)["error"] == str(caught.value)
    assert good.run is run
    assert good.status == ("FINISHED" if method == "finish" else "FAILED")
    if method in ("log", "finish"):
        assert Results.load(run.folder).frame.equals(results().frame)
        assert good.results is not None


def test_a_sink_that_exits_does_not_end_the_command(tmp_path: Path) -> None:
    class Exits(Sink):
        def log(self, results: Results, folder: Path) -> None:
            raise SystemExit(3)

    with (
        pytest.raises(TrackingError, match=r"it called sys\.exit\(3\)"),
        tracked(run_of(tmp_path), x=Exits()) as r,
    ):
        r.log(results())


def test_without_sinks_all_is_on_disk(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    with tracked(run) as running:
        running.log(results())
    assert state(tmp_path)["status"] == "FINISHED"
    assert running.link == ""
    assert Results.load(run.folder).frame.equals(results().frame)
    assert finished_on_disk(tmp_path, run.key) == run.folder
    again = run_of(tmp_path, sweep="again")
    assert reuse(again, Sinks({})) == run.folder
    assert reuse(run_of(tmp_path, "gpt2"), Sinks({})) is None
    sweep, compared = Sweep("again", tmp_path, 0.0), []
    report = close_sweep(sweep, Sinks({}), lambda pairs, folder: compared.extend(label for label, _ in pairs) or [])
    assert (report.status, report.error, compared) == ("FINISHED", None, ["bert"])
    assert (sweep.summary / "jobs.json").exists()
    assert Sinks({}).charts_link(sweep) == ""


def test_status_says_what_each_sink_calls_the_run(tmp_path: Path) -> None:
    class Named(MemorySink):
        def metadata(self) -> dict[str, str]:
            return {"link": "https://there/1", "id": "1"}

    with tracked(run_of(tmp_path), silent=MemorySink(), named=Named()) as running:
        running.log(results())
    assert running.link == "https://there/1"
    assert state(tmp_path)["sinks"] == {"named": {"link": "https://there/1", "id": "1"}}


def test_a_sweep_s_sinks_get_their_own_words_back(tmp_path: Path) -> None:
    closed = []

    class Named(MemorySink):
        def metadata(self) -> dict[str, str]:
            return {"id": str(self.run.key if self.run else "")}

        def finish_sweep(self, sweep: Sweep, report: Any, metadata: Any) -> None:
            closed.append([dict(one) for one in metadata])

        def charts_link(self, sweep: Sweep) -> str:
            return f"https://there/{sweep.id}"

    for name in ("a", "b"):
        with tracked(run_of(tmp_path, name, sweep="s"), one=Named(), bad=MemorySink()) as running:
            running.log(results())
    sweep, sinks = Sweep("s", tmp_path, 0.0), Sinks({"bad": Failing("finish_sweep"), "one": Named()})
    report = close_sweep(sweep, sinks, lambda pairs, folder: [])
    assert closed == [[{"id": "key of a"}, {"id": "key of b"}]]
    settle = f"settle the sweep, whose comparison is in {sweep.summary}"
    assert report.error == f"sink 'bad' can't {settle}: ConnectionError: the line is cut"
    assert [row.status for row in report.rows] == ["FINISHED", "FINISHED"]
    assert sinks.charts_link(sweep) == "https://there/s"
