"""The tracking store, the sink, jobs, resume, upload and the doctor, against real MLflow stores."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ctxexp import Results
from ctxexp.errors import MetricError, Terminated, TrackingError
from ctxexp.files.job_folder import job_folder
from ctxexp.files.process import HOST, PID, STARTED, defer_signals, process_tags, raise_on_termination, why_gone
from ctxexp.jobs import finished_on_disk, reuse
from ctxexp.jobs.sending import check_sinks, send_runs
from ctxexp.jobs.uploading import upload
from ctxexp.sinks import load_run
from ctxexp.sinks.mlflow import database
from ctxexp.sinks.views import metric_names
from tests.sample_results import results_with, run_info, with_value
from tests.shipped import MlflowSink
from tests.tracked import client_of, run_of, tracked

LAYERS = 5
PROCESSES = multiprocessing.get_context("forkserver")  # real processes that import mlflow once between them
PROCESSES.set_forkserver_preload(["mlflow.store.tracking.sqlalchemy_store", "alembic.command", "ctxexp.sinks"])


def fork(target: Callable, *args: object) -> BaseProcess:
    child = PROCESSES.Process(target=target, args=args)
    child.start()
    return child


def results(label: str = "bert", layers: int = LAYERS) -> Results:
    rng = np.random.default_rng(len(label))
    raw = np.linspace(0.9, 0.3, layers) + rng.normal(0, 0.01, layers)
    curves = {"self_similarity/raw": raw, "self_similarity/adjusted": raw - 0.2, "anisotropy/mean_cosine": 1 - raw}
    curves["self_similarity/adjusted"][1] = np.nan
    info = run_info(
        title=label,
        encoder=f"{label}-mini@0",
        n_layers=layers,
        corpus="polysemy",
        fingerprint="f" * 64,
        n_sentences=1200,
        details={"pooling": "mean"},
        measures={"anisotropy": {"main": "mean_cosine"}},
    )
    return results_with(curves, tables={"words": pd.DataFrame({"word": ["bank"], "raw": [0.5]})}, info=info)


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("CTXEXP_TRACKING_URI", "")  # so that it is forgotten after the test


@pytest.fixture
def store(tmp_path: Path, empty_store: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    shutil.copy(empty_store / "mlflow.db", folder)
    database.prepare_store(folder)
    return folder


def sinks() -> dict[str, MlflowSink]:
    return {"mlflow": MlflowSink(experiment="study")}


def run_job(
    store: Path, name: str = "bert", *, number: int = 0, group: str = "single", body: Callable | None = None, **params
) -> Path:
    folder = job_folder(store, group, number, [f"model={name}"])
    params, config = params or {"seed": 0}, f"model: {name}\n"
    run = run_of(folder, store, name, key=f"key of {name}", params=params, config=config)
    to = sinks()
    check_sinks(to, store)
    with tracked(run, **to) as running:
        (body or (lambda running: running.save(results(name))))(running)
    return folder


def runs(store: Path) -> list:
    client = client_of(store)
    return list(client.search_runs([database.open_experiment(client, "study", store)]))


def history(store: Path, run_id: str, key: str) -> list[tuple[int, float]]:
    client = client_of(store)
    return sorted((m.step, m.value) for m in client.get_metric_history(run_id, key))


# the store


def test_default_store_is_one_absolute_wal_file(empty_store: Path) -> None:
    uri = database.prepare_store(empty_store)
    assert uri == f"sqlite:///{(empty_store / 'mlflow.db').as_posix()}"
    with sqlite3.connect(empty_store / "mlflow.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert not list(empty_store.glob(".*.tmp*"))


def test_relative_uri_becomes_absolute(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store.parent)
    assert database.prepare_store(store, "sqlite:///store/mlflow.db") == f"sqlite:///{store / 'mlflow.db'}"


def _prepare_in_child(folder: str, spelling: str) -> tuple[str, str]:
    uri = database.prepare_store(Path(folder + spelling))
    return uri, database.open_experiment(database.client(uri), "study", Path(folder))


def test_an_interrupted_start_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "a store's #1, 100%"
    folder.mkdir()
    (folder / ".mlflow.db.1.0.tmp").write_bytes(b"half a migration")  # what a killed start leaves
    (folder / "mlflow.db").touch()
    uri, _ = _prepare_in_child(str(folder), "/../" + folder.name)
    assert uri == _prepare_in_child(str(folder), "")[0]
    assert not list(folder.glob(".*.tmp*"))
    assert database.client(uri).get_experiment_by_name("study").artifact_location == (folder / "artifacts").as_uri()


def test_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(TrackingError, match=r"does not answer: DatabaseError: file is not a database"):
        database.prepare_store(tmp_path)


def test_store_that_was_cut_is_named(store: Path) -> None:
    os.truncate(store / "mlflow.db", 100_000)
    with pytest.raises(TrackingError, match="malformed"):
        database.prepare_store(store)


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_server_that_is_down_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    began = time.monotonic()
    port = closed_port()
    with pytest.raises(
        TrackingError, match=rf"http://127.0.0.1:{port} does not answer: ConnectionRefusedError: .* refused; start it"
    ) as error:
        database.prepare_store(tmp_path, f"http://me:secret@127.0.0.1:{port}")
    assert time.monotonic() - began < 10
    assert "secret" not in str(error.value)


# the sink


def test_the_experiment_is_the_one_that_mlflows_variables_name(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(store)
    number = client.create_experiment("by number")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", number)
    run = load_run(run_job(store), store)
    assert MlflowSink().send(run, results())["experiment"] == "by number"
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "by name")
    assert MlflowSink().send(run, results())["experiment"] == "by name" == MlflowSink().check(store)["experiment"]
    assert MlflowSink(experiment="typed").check(store)["experiment"] == "typed"
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "31415")
    with pytest.raises(TrackingError, match="MLFLOW_EXPERIMENT_ID=31415"):
        MlflowSink().send(run, results())


def test_every_curve_reads_back_by_layer(store: Path) -> None:
    folder = run_job(store, model={"name": "bert", "layers": None}, device="cpu")
    [run] = runs(store)
    assert run.info.status == "FINISHED"
    for key in results().by_key:
        curve, read = results().by_key[key].value, history(store, run.info.run_id, str(key))
        assert [step for step, _ in read] == list(range(LAYERS))
        np.testing.assert_array_equal([value for _, value in read], curve)  # NaN included: a gap in the chart
    assert all("/" in name for name in run.data.metrics)
    assert run.data.params == {"model.name": "bert", "device": "cpu", "model.n_layers": str(LAYERS)}
    [data] = run.inputs.dataset_inputs
    assert (data.dataset.name, data.dataset.digest) == ("polysemy", "f" * 36)
    tags = run.data.tags
    assert tags["mlflow.runColor"] == "#1f77b4"
    assert tags["ctxexp.kind"] == "job"
    assert tags["ctxexp.encoder"] == "bert-mini@0"
    assert tags["mlflow.user"]
    assert tags["mlflow.source.name"]
    client = client_of(store)
    names = {artifact.path for artifact in client.list_artifacts(run.info.run_id)}
    assert names == {
        "config.yaml",
        "environment.json",
        "files.json",
        "findings.json",
        "results.json",
        "results.parquet",
        "run.json",
        "words.csv",
    }
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["packages"]["mlflow"]
    assert environment["python"] == ".".join(map(str, sys.version_info[:3]))


def test_metrics_are_what_people_compare_or_all(store: Path) -> None:
    curve = np.linspace(1, 2, 3)
    kept = ["m/raw", "m/adjusted", "m/baseline", "sts/STS12/all", "own/slope", "own/width"]
    info = run_info(title="bert", n_layers=3, measures={"sts": {"main": "all"}})
    found = results_with(
        dict.fromkeys([*kept, "m/n", "m/sd", "m/undefined", "own/n", "sts/STS12/mean"], curve), info=info
    )
    run = run_job(store, body=lambda job: job.save(found))
    sent = {key for key in runs(store)[0].data.metrics if "/" in key and " " not in key}
    assert sent == set(kept)
    sink = MlflowSink(uri=f"sqlite:///{store / 'mlflow.db'}", experiment="all", metrics="all")
    run_id = sink.send(load_run(run, store), found)["run_id"]
    sent = sink.client.get_run(run_id).data.metrics
    assert {key for key in sent if "/" in key and " " not in key} == set(found.by_name)


def test_infinity_is_a_gap_that_a_tag_names(store: Path) -> None:
    found = with_value(results(), "self_similarity", "raw", 2, math.inf)
    run_job(store, body=lambda job: job.save(found))
    [run] = runs(store)
    values = [value for _, value in history(store, run.info.run_id, "self_similarity/raw")]
    assert math.isnan(values[2])
    assert np.isfinite(np.delete(values, 2)).all()
    assert run.data.tags["ctxexp.infinite"] == "self_similarity/raw"


def test_more_metrics_and_params_than_a_batch(store: Path) -> None:
    curves = {f"measure_{i}/raw": np.arange(40) + i / 64 for i in range(30)}
    nested = {"a": {"b": [1, 2], "c": True, "e": {"f": 1, "g": None}, "h": None}, "d": "yes", "i": {}}
    many = {f"word_{i}": i for i in range(250)} | {"long": "x" * 10_000} | nested
    run_job(store, **many, body=lambda job: job.save(results_with(curves)))
    [run] = runs(store)
    assert [v for _, v in history(store, run.info.run_id, "measure_29/raw")] == (np.arange(40) + 29 / 64).tolist()
    assert len(run.data.params) == 255
    assert run.data.params.items() >= {"a.b": "[1, 2]", "a.c": "true", "a.e": '{"f": 1, "g": null}', "d": "yes"}.items()
    assert run.data.params["long"] == "x" * 6000


def test_names_that_mlflow_refuses() -> None:
    plain, hard = "self_similarity/adjusted_ci_low", "/recall@5 (é)//x/.."
    assert metric_names([plain, hard]) == {plain: plain, hard: "recall_5 _é_/x/_"}
    odd = ["sts/A (x)/all", "sts/A [x]/all", "sts/A _x_/all", "y" * 300, "y" * 301]
    named = metric_names(odd)
    assert len(set(named.values())) == len(odd)
    assert (named["sts/A (x)/all"], named["sts/A [x]/all"]) == ("sts/A _x_/all", "sts/A _x_/all 2")
    assert max(map(len, named.values())) <= 250


# how jobs end


def fail(error: BaseException) -> Callable:
    def body(job: Any) -> None:
        raise error

    return body


def ended_in_an_import(job: Any) -> None:
    """A library makes an error of its own of the signal."""
    try:
        signal.raise_signal(signal.SIGTERM)
    except Terminated:
        raise AttributeError("partially initialized module") from None


@pytest.mark.parametrize("around", [nullcontext, raise_on_termination])  # a lone job, and one of a sweep
def test_a_signal_that_becomes_a_librarys_error_kills_the_job(store: Path, around: Callable) -> None:
    with pytest.raises(Terminated), around():
        run_job(store, body=ended_in_an_import)
    assert state(job_folder(store, "single", 0, ["model=bert"]))["status"] == "KILLED"
    with pytest.raises(AttributeError), raise_on_termination():  # a later error is no signal's
        raise AttributeError


def state(folder: Path) -> dict:
    return json.loads((folder / "status.json").read_text())


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (MetricError("no rows"), "FAILED", "no rows"),
        (ZeroDivisionError("in a plugin"), "FAILED", "ZeroDivisionError: in a plugin"),
        (KeyboardInterrupt(), "KILLED", "interrupted (KeyboardInterrupt)"),
    ],
)
def test_a_jobs_ending_is_on_disk_and_in_mlflow(store: Path, error: BaseException, status: str, words: str) -> None:
    with pytest.raises(type(error)):
        run_job(store, body=fail(error))
    [run] = runs(store)
    assert run.info.status == status
    assert run.data.tags["ctxexp.error"] == words
    found = state(job_folder(store, "single", 0, ["model=bert"]))
    assert found["status"] == status
    assert words in found["error"]
    assert isinstance(error, ZeroDivisionError) == ("Traceback" in found["error"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_of_the_closing_is_answered_after_it(number: int) -> None:
    closed = []

    def close(times: int) -> None:
        with raise_on_termination(), defer_signals():
            for _ in range(times):
                signal.raise_signal(number)
            closed.append(times)

    for times in (1, 2):  # who asks twice means it
        with pytest.raises((KeyboardInterrupt, Terminated)):
            close(times)
    assert closed == [1]


def _run_for_ever(store: Path) -> None:
    run_job(store, body=lambda job: (Path(store, "running").touch(), time.sleep(60)))


def start_child(store: Path) -> BaseProcess:
    child = fork(_run_for_ever, store)
    while not (store / "running").exists():
        assert child.is_alive()
        time.sleep(0.02)
    return child


def test_a_killed_process_leaves_nothing_running_after_the_next_start(store: Path) -> None:
    child = start_child(store)
    folder = job_folder(store, "single", 0, ["model=bert"])
    check_sinks({}, store)
    assert state(folder)["status"] == "RUNNING"  # it lives
    child.kill()
    child.join(30)
    for pid in (child.pid, os.getpid()):  # half-written files, of it and of a process that lives
        part = folder / f"a.png.{pid}.part"
        part.touch()
        os.utime(part, (1, 1))
    run_job(store, "gpt2", number=1)
    assert [path.name for path in folder.rglob("*.part")] == [f"a.png.{os.getpid()}.part"]
    assert {run.info.run_name: run.info.status for run in runs(store)} == {"gpt2": "FINISHED"}
    why = f"process {child.pid} on {process_tags()[HOST]} is gone"
    assert (state(folder)["status"], state(folder)["error"]) == ("KILLED", why)


def test_a_reused_process_number_is_another_process() -> None:
    tags = process_tags()
    host, pid = tags[HOST], tags[PID]
    assert why_gone(tags) is None
    other = {**tags, STARTED: "long ago"}
    assert why_gone(other) == f"process {pid} on {host} is another one now"
    assert why_gone({**other, HOST: "another machine"}) is None
    assert why_gone({}) is None
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert why_gone({**tags, PID: str(child.pid)}) == f"process {child.pid} on {host} is gone"  # zombie
    child.wait()


# resume and upload


def break_store(store: Path) -> None:
    with sqlite3.connect(store / "mlflow.db") as connection:
        connection.execute("ALTER TABLE metrics RENAME TO metrics_away")


def mend_store(store: Path) -> None:
    with sqlite3.connect(store / "mlflow.db") as connection:
        connection.execute("ALTER TABLE metrics_away RENAME TO metrics")


@pytest.mark.parametrize("left", ["nothing", "half a run"])
def test_results_survive_a_store_that_breaks_and_upload_once(store: Path, left: str) -> None:
    if left == "nothing":
        content = (store / "mlflow.db").read_bytes()
        (store / "mlflow.db").write_bytes(b"not a database at all" * 100)
    else:
        break_store(store)
    with pytest.raises(TrackingError, match=r"all is safe on disk, and this sends it later: ctxexp upload '?/"):
        run_job(store)
    folder = job_folder(store, "single", 0, ["model=bert"])
    assert (state(folder)["status"], state(folder).get("sinks")) == ("FINISHED", None)
    assert finished_on_disk(store, "key of bert") == folder
    if left == "nothing":
        (store / "mlflow.db").write_bytes(content)
    else:
        mend_store(store)
        assert [run.info.status for run in runs(store)] == ["KILLED"]
    [sent] = upload(folder)
    [again] = upload(folder.parent)  # the folder above serves as well
    assert sent.is_new
    assert not again.is_new
    [run] = runs(store)  # the broken run was replaced
    assert run.info.run_id == sent.run_id == again.run_id
    assert run.info.status == "FINISHED"
    assert run.info.end_time == state(folder)["ended"]  # of the measuring, not of the sending
    assert len(history(store, run.info.run_id, "self_similarity/raw")) == LAYERS
    assert state(folder)["sinks"]["mlflow"]["run_id"] == sent.run_id


def test_upload_sends_to_the_store_that_was_meant(store: Path, tmp_path: Path, empty_store: Path) -> None:
    other = tmp_path / "other.db"
    other.write_bytes(b"not a database at all" * 100)
    run = run_of(store / "results" / "single" / "0", store)
    sink = MlflowSink(uri=f"sqlite:///{other}", experiment="theirs")
    with pytest.raises(TrackingError, match="ctxexp upload"), tracked(run, mlflow=sink) as running:
        running.save(results())
    shutil.copy(empty_store / "mlflow.db", other)
    [sent] = upload(run.folder)
    assert sent.is_new
    client = database.client(f"sqlite:///{other}")
    experiment = client.get_experiment_by_name("theirs").experiment_id
    assert [each.info.run_id for each in client.search_runs([experiment])] == [sent.run_id]
    assert runs(store) == []


def resume(store: Path, group: str, name: str = "bert") -> Path | None:
    """What a job of a sweep `group` takes over."""
    folder = job_folder(store, group, 0)
    earlier = reuse(run_of(folder, store, name, key=f"key of {name}", sweep=group))
    assert not earlier or not send_runs({folder: None}, sinks(), store, sweep=group)
    return earlier


def test_resume_skips_what_finished_and_nothing_else(store: Path) -> None:
    folder = run_job(store)
    with pytest.raises(MetricError):
        run_job(store, "gpt2", number=1, body=fail(MetricError("x")))
    uri = database.prepare_store(store)
    client = database.client(uri)
    [run] = [r for r in runs(store) if r.info.run_name == "bert"]
    assert finished_on_disk(store, "key of bert") == folder
    assert finished_on_disk(store, "key of gpt2") is None

    assert resume(store, "second", "gpt2") is None
    client.update_run(run.info.run_id, name="bert seed=0")  # as a sweep's end names it beside another bert
    assert resume(store, "second") == folder
    assert state(job_folder(store, "second", 0))["name"] == "bert"
    assert client.get_run(run.info.run_id).data.tags["ctxexp.sweep"] == "second"
    client.delete_run(run.info.run_id)
    assert resume(store, "third") == folder
    [sent] = [each for each in runs(store) if each.info.run_name == "bert"]  # anew, from the disk
    assert (sent.info.status, sent.data.tags["ctxexp.sweep"]) == ("FINISHED", "third")


def flip(path: Path) -> None:
    """One digit of a number, so that it is a results file still."""
    path.write_text(path.read_text().replace("0.", "1.", 1))


@pytest.mark.parametrize("damage", [flip, Path.unlink])
def test_resume_computes_again_what_was_damaged(store: Path, damage: Callable[[Path], None]) -> None:
    folder = run_job(store)
    damage(folder / "results.json")
    assert resume(store, "second") is None
