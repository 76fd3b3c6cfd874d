"""Sweeps under real Hydra launchers: a small application that tracks its jobs as ctxexp does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import pytest

import ctxexp
from ctxexp.errors import ModelError, Terminated
from ctxexp.jobs.ending import note_failure, open_sweep, settle_command
from ctxexp.jobs.sending import send_sweep
from ctxexp.jobs.sweep import close_sweep
from ctxexp.report import colours
from tests.composed import run_command_line
from tests.sample_results import results_with
from tests.tracked import client_of, finish_job, stored_sweep
from tests.warm import Warm

APP = """
import multiprocessing, sys, time
from pathlib import Path
import hydra, numpy as np
from omegaconf import OmegaConf
from ctxexp.jobs import sweep
from ctxexp.jobs.ending import settle_command
from ctxexp.command.job import current_job
from ctxexp.errors import ModelError
from ctxexp.jobs import job, new_run, save
from ctxexp.files.job_folder import new_id
from tests.sample_results import results_with, run_info

@hydra.main(version_base="1.3", config_path=".", config_name="config")
def task(config):
    t = config.tracking
    if config.model == "early":
        raise ModelError("before any run was open")
    if config.model == "swallowed":
        return
    folder, overrides = current_job(t.folder, t.sweep or new_id())
    run = new_run(folder, Path(t.folder), name=config.model, key=config.model, params=OmegaConf.to_container(config),
                  config=OmegaConf.to_yaml(config), sweep=t.sweep)
    with job(run, overrides=overrides):
        if config.model == "broken":
            raise ModelError("no such checkpoint")
        if config.model == "slow":
            Path(t.folder, "slow").touch()
            time.sleep(60)
        layers = 3 if config.model == "elmo" else 5
        curve = np.linspace(0, 1, layers) + config.seed
        info = run_info(title=config.model, n_layers=layers)
        save(results_with({"self_similarity/adjusted": curve}, info=info), folder)

def write_summary(pairs, folder, *args, **links):
    (folder / "comparison.txt").write_text("\\n".join(f"{label} {r.n_layers}" for label, r in pairs))

if __name__ == "__main__":
    sweep.write_summary = write_summary
    with settle_command() as ending:
        task()
    print("workers left:", len(multiprocessing.active_children()))
    sys.exit(ending.status)
"""

CONFIG = """
model: bert
seed: 0
tracking: {folder: store with 'quotes', sweep: null}
sink: {mlflow: {name: mlflow, uri: null, experiment: study}}
hydra:
  job: {name: app}
  callbacks: {sweep: {_target_: ctxexp.command.application.SweepCallback}}
"""


@pytest.fixture
def app(tmp_path: Path, empty_store: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "config.yaml").write_text(CONFIG)
    store = tmp_path / "store with 'quotes'"
    store.mkdir()
    shutil.copy(empty_store / "mlflow.db", store)
    return tmp_path


def start(app: Path, *words: str, python: str | Path = sys.executable) -> subprocess.Popen:
    ours = (
        "MLFLOW_TRACKING_URI",
        "HYDRA_FULL_ERROR",
    )  # the second is set by tests that run the command in this process
    environ = {k: v for k, v in os.environ.items() if k not in ours}
    environ["PYTHONPATH"] = os.pathsep.join([str(Path(ctxexp.__file__).parents[1]), environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [python, "app.py", "-m", *words],
        cwd=app,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def runs(app: Path) -> dict[str, object]:
    store = app / "store with 'quotes'"
    client = client_of(store)
    found = client.search_runs([client.get_experiment_by_name("study").experiment_id])
    by_name = {run.info.run_name: run for run in found}
    assert len(by_name) == len(found)
    return by_name


def test_one_failing_job_does_not_stop_the_sweep(app: Path, warm: Warm) -> None:
    process = start(app, "model=bert,broken,early,swallowed,elmo", python=warm.python)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1, err
    found = runs(app)
    assert len({run.data.tags["ctxexp.sweep"] for run in found.values()}) == 1
    assert {name: run.info.status for name, run in found.items()} == {
        "bert": "FINISHED",
        "broken": "FAILED",
        "elmo": "FINISHED",
        "comparison of 2 jobs": "FAILED",
    }
    assert found["broken"].data.tags["ctxexp.error"] == "no such checkpoint"
    summary = found["comparison of 2 jobs"]
    assert summary.data.tags["ctxexp.kind"] == "summary"
    assert not summary.data.metrics  # else it would stand in every chart
    assert "| broken | FAILED |" in summary.data.tags["mlflow.note.content"]
    client = client_of(app / "store with 'quotes'")
    text = Path(client.download_artifacts(summary.info.run_id, "comparison.txt", str(app))).read_text()
    assert text == "bert 5\nelmo 3"
    expected = colours(["bert", "broken", "elmo"])
    for name, colour in expected.items():
        assert found[name].data.tags["mlflow.runColor"] == colour
    assert len(set(expected.values())) == 3
    assert "model=early: failed, before any run was open\n" in out
    assert "model=swallowed: failed, it ended before its run began; its output says why\n" in out
    assert "http" not in out  # nothing serves the store
    assert not list(app.glob("mlruns"))
    assert not (app / "mlflow.db").exists()


@pytest.mark.slow
def test_a_parallel_sweep_that_is_ended_leaves_killed_runs_and_no_process(app: Path) -> None:
    process = start(app, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "model=bert,slow")
    deadline = time.monotonic() + 120
    while not (app / "store with 'quotes'" / "slow").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.terminate()
    out, err = process.communicate(timeout=80)
    assert process.returncode == 128 + signal.SIGTERM, err
    found = runs(app)
    assert found["slow"].info.status == "KILLED"
    [summary] = [run for name, run in found.items() if name.startswith("comparison")]
    assert summary.info.status == "KILLED"
    assert "slow: killed" in out
    assert (
        app / "store with 'quotes'" / "results" / summary.data.tags["ctxexp.sweep"] / "summary" / "jobs.json"
    ).exists()
    while True:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            break
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_an_unopenable_store_stops_the_sweep_before_any_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = str(run_command_line(["-m", "model=bert,gpt2", "sink.mlflow.uri=./mlruns"]))
    assert said.startswith("error: tracking uri './mlruns' is a folder")
    assert not (tmp_path / "mlruns" / "results").exists()


FLAT = results_with({"self_similarity/raw": np.ones(2)})


def asked_in_an_import() -> None:
    """A library makes an error of its own of the signal."""
    try:
        signal.raise_signal(signal.SIGTERM)
    except Terminated:
        raise AttributeError("partially initialized module") from None


@pytest.mark.parametrize("ask", [lambda: signal.raise_signal(signal.SIGTERM), asked_in_an_import])
def test_a_sweep_ended_between_its_jobs_is_killed(
    app: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ask: Callable[[], None]
) -> None:
    found, sinks = stored_sweep(app / "store with 'quotes'", "model=a,b")
    compared: list[str] = []

    def application() -> None:
        open_sweep(found, sinks)
        finish_job(found, "bert", 0, FLAT)
        ask()
        finish_job(found, "elmo", 1, FLAT)

    def write_summary(pairs: list, *args: object, **links: object) -> None:
        signal.raise_signal(signal.SIGTERM)  # in the closing: answered after it
        compared.extend(label for label, _ in pairs)

    monkeypatch.setattr("ctxexp.jobs.sweep.write_summary", write_summary)
    with pytest.raises(Terminated), settle_command():
        application()
    assert compared == ["bert"]
    assert {n: run.info.status for n, run in runs(app).items()} == {
        "bert": "FINISHED",
        "comparison of 1 jobs": "KILLED",
    }
    assert runs(app)["comparison of 1 jobs"].data.tags["ctxexp.error"] == "ended by SIGTERM"
    assert "ended by SIGTERM: the runs that were under way are KILLED" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_earlier_commands_failed_job_is_no_part_of_this_one() -> None:
    with settle_command() as ending:
        note_failure(ModelError("no such checkpoint"))
    assert ending.status == 1
    with pytest.raises(ZeroDivisionError), settle_command():
        _ = 1 / 0
    with settle_command() as ending:
        pass
    assert ending.status == 0


def test_a_worker_that_the_system_kills_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    dies = joblib.delayed(exec)("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    with settle_command() as ending:
        joblib.Parallel(n_jobs=2)([dies, dies])
    assert ending.status == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "error: a worker process was killed (SIGKILL), most often for want of memory: have fewer at a"
    )


def test_one_bad_row_does_not_stop_the_comparison(
    app: Path, capsys: pytest.CaptureFixture[str], no_summary: None
) -> None:
    found, _ = stored_sweep(app / "store with 'quotes'", "model=a,b")
    bad, good = finish_job(found, "bert", 0, FLAT), finish_job(found, "elmo", 1, FLAT)
    (bad / "results.json").write_bytes((good / "results.json").read_bytes()[:-9])
    report = close_sweep(found)
    assert [label for label, _ in report.compared] == ["elmo"]
    assert report.error.startswith(f"bert is left out of the comparison: {bad / 'results.json'} is not a results file")
    assert report.error.count("\n") == 0
    assert len(ctxexp.runs(found.tracking_folder)) == 1  # nor what reads runs
    assert "warning: left out: " in capsys.readouterr().err


def test_summary_that_fails_hides_no_job(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, sinks = stored_sweep(app / "store with 'quotes'", "model=a,b")
    finish_job(found, "bert", 0, FLAT)

    def write_summary(*args: object, **links: object) -> None:
        raise RuntimeError("no font")

    monkeypatch.setattr("ctxexp.jobs.sweep.write_summary", write_summary)
    report = close_sweep(found)
    assert send_sweep(found, report, sinks) == ("", [])
    assert [row.status for row in report.rows] == ["FINISHED"]
    assert report.error.startswith("the comparison failed: Traceback")
    assert runs(app)["comparison of 1 jobs"].info.status == "FAILED"
    shutil.rmtree(found.tracking_folder / "results")
    assert close_sweep(found).rows == []  # nothing ran: no summary either
    assert len(runs(app)) == 2
