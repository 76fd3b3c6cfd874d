"""The web interface on a stored sweep, in a real browser, and the same server as a tracking server."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from ctxexp.jobs.sending import send_sweep
from ctxexp.jobs.sweep import close_sweep, report_of
from ctxexp.sinks.mlflow import database
from ctxexp.sinks.ui import last_sweep_link
from tests.browser import headless
from tests.composed import run_command_line
from tests.sample_results import results_with, run_info
from tests.shipped import MlflowSink
from tests.tracked import finish_job, stored_sweep

MODELS = {"bert": 5, "gpt2": 5, "elmo": 3}
HEADLINES = (
    "self_similarity/adjusted",
    "anisotropy/mean_cosine",
    "intra_sentence_similarity/adjusted",
    "max_explainable_variance/adjusted",
)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Any:
    store = tmp_path_factory.mktemp("ui")
    shutil.copy(empty_store / "mlflow.db", store)
    sweep, sinks = stored_sweep(store)
    for number, (name, layers) in enumerate(MODELS.items()):
        curve = np.linspace(0.9, 0.2, layers) - number / 20
        keys = ("word_norm/raw", *HEADLINES, "self_similarity/raw", "self_similarity/sd")
        main = {"anisotropy": {"main": "mean_cosine"}}
        about = run_info(title=name, n_layers=layers, measures=main, encoder=name, corpus="polysemy", fingerprint="0")
        finish_job(sweep, name, number, results_with(dict.fromkeys(keys, curve), info=about))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ctxexp.jobs.sweep.write_summary", lambda *args, **links: None)
        report = close_sweep(sweep)
    assert report.error is None
    assert send_sweep(sweep, report, sinks) == ("", [])
    return sweep


def where(stored: Any) -> str:
    """The store's URI."""
    return database.prepare_store(stored.tracking_folder)


@pytest.fixture(scope="module")
def said(stored: Any) -> Iterator[list[str]]:
    """What `ctxexp ui` says while it serves the store, at another port than it was asked for."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # the system's choice: tests run side by side
        words = ["ui", f"folder={stored.tracking_folder}", "experiment=study", f"port={port}"]
        command = [sys.executable, "-u", "-m", "ctxexp", *words]
        serving = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        said = [serving.stdout.readline().rstrip() for _ in range(4)]
    assert f"port {port} is taken; using" in said[1]
    yield said
    serving.send_signal(signal.SIGINT)
    assert serving.communicate(timeout=30)[0] == "server ended\n"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(said[1].rpartition(" ")[2])))


@pytest.fixture(scope="module")
def address(said: list[str]) -> str:
    return f"http://127.0.0.1:{said[1].rpartition(' ')[2]}"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[object]:
    with headless(tmp_path, "1600,1200") as browser:
        yield browser


@pytest.mark.nightly
def test_the_link_shows_the_overlaid_curves(stored: Any, address: str, browser) -> None:
    link = last_sweep_link(where(stored), "study", address)
    browser.get(str(link))
    curves = """return [...document.querySelectorAll('.js-plotly-plot')].map(plot =>
        [...plot.querySelectorAll('.scatterlayer path.js-line')].map(line => line.style.stroke))"""
    three = {"rgb(31, 119, 180)", "rgb(214, 39, 40)", "rgb(44, 160, 44)"}  # of bert, gpt2, elmo
    deadline = time.monotonic() + 90
    while True:
        found = browser.execute_script(curves)
        text = browser.find_element("tag name", "body").text
        if [strokes for strokes in found if set(strokes) == three]:
            break
        assert time.monotonic() < deadline, f"no chart with three curves: {found}\n{text}"
        time.sleep(0.25)
    assert "Last sweep: " in text
    for measure in ("anisotropy", "self_similarity"):  # sections of charts
        assert measure in text
    assert "comparison" not in text  # the summary run is in no legend


def uploaded(capsys: Any, folder: Path, *words: str) -> list[str]:
    """What the command prints of each run that it sends."""
    assert run_command_line(["upload", str(folder), *words]) == 0
    return str(capsys.readouterr().out).splitlines()


def test_upload_through_the_server(stored: Any, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert database.prepare_store(stored.tracking_folder, address) == address
    for answer in ("sent", "there already"):
        said = uploaded(capsys, stored.results, f"uri={address}", "experiment=sent")
        assert [line.count(f": {answer}, {address}") for line in said] == [1] * 3
    client = database.client(address)
    runs = client.search_runs([client.get_experiment_by_name("sent").experiment_id])
    assert sorted(run.info.run_name for run in runs) == sorted([*MODELS, "comparison of 3 jobs"])
    for run in (run for run in runs if run.info.run_name in MODELS):
        history = client.get_metric_history(run.info.run_id, "self_similarity/raw")
        assert sorted(m.step for m in history) == list(range(MODELS[run.info.run_name]))
        assert "results.json" in [a.path for a in client.list_artifacts(run.info.run_id)]
    assert (
        stored.tracking_folder / "artifacts" / runs[0].info.experiment_id
    ).is_dir()  # and nothing in the working folder
    client.delete_experiment(runs[0].info.experiment_id)


def test_a_server_that_serves_no_files_is_named_and_fails_nothing(
    stored: Any, address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = database.client(address)
    (tmp_path / "file").touch()
    for number, (place, written) in enumerate({"there": True, "file/below": False}.items()):
        caplog.clear()
        made = client.create_experiment(f"no files {number}", artifact_location=str(tmp_path / place))
        assert run_command_line(["upload", str(stored.results), f"uri={address}", f"experiment=no files {number}"]) == 0
        (said,) = [line for line in caplog.messages if "serves no artifacts" in line]
        assert str(tmp_path / place) in said
        assert ("are written to" in said) == written
        whole = "attributes.status = 'FINISHED' AND tags.`ctxexp.logged` = 'true' AND tags.`ctxexp.kind` = 'job'"
        runs = client.search_runs([made], whole)
        assert len(runs) == len(MODELS)
        assert len([*(tmp_path / "there").glob("*/artifacts/results.json")]) == len(MODELS)
        client.delete_experiment(made)


def test_serve_says_where_the_curves_are(stored: Any, said: list[str], address: str) -> None:
    assert said[2].startswith(f"curves: {address}")
    assert stored.id in said[2]
    sink = MlflowSink(uri=address, experiment="study")
    assert send_sweep(stored, report_of(stored), {"mlflow": sink}) == (said[2].partition(": ")[2], [])


def test_the_last_sweep_is_one_that_has_a_finished_run(stored: Any) -> None:
    client = database.client(where(stored))
    (experiment,) = {run.info.experiment_id for run in stored_runs(client)}
    tags = {"ctxexp.kind": "job", "ctxexp.sweep": "unfinished"}
    run = client.create_run(experiment, int(time.time() * 1000) + 10**6, tags)
    try:
        link = last_sweep_link(where(stored), "study", "http://x")
        assert link is not None
        assert stored.id in link
        client.set_terminated(run.info.run_id, "FINISHED")
        assert "unfinished" in str(last_sweep_link(where(stored), "study", "http://x"))
    finally:
        client.delete_run(run.info.run_id)


def stored_runs(client: MlflowClient) -> list[Run]:
    """The runs of the store's experiment."""
    return list(client.search_runs([client.get_experiment_by_name("study").experiment_id]))


def test_link_of_an_empty_store(stored: Any) -> None:
    assert last_sweep_link(where(stored), "nothing here") is None


def test_passwords_are_in_no_file_store_or_message(
    stored: Any,
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    password, token = "pa/ss@w0rd", "hunter22"
    uri = address.replace("://", f"://someone:{quote(password, safe='')}@")
    (tmp_path / "vectors.txt").write_text("bank 1 0\nriver 0 1\nmoney 1 1\n")
    (tmp_path / "text.txt").write_text("bank river money\nmoney bank river\nriver money bank\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STORE", uri)
    monkeypatch.setenv("TOKEN", token)
    command = [
        "dataset=text",
        "dataset.path=text.txt",
        "model=word_vectors",
        "model.path=vectors.txt",
        "metric=word_norm",
    ]
    command += ["min_contexts=2", "cache.folder=cache-${oc.env:TOKEN}", "sink.mlflow.uri=${oc.env:STORE}"]
    assert not run_command_line(["-m", "seed=0,1", *command]), capfd.readouterr().err
    client = database.client(address)
    runs = client.search_runs([client.get_experiment_by_name("ctxexp").experiment_id])
    assert [run.info.status for run in runs] == ["FINISHED"] * 3
    [folder, *_] = tmp_path.glob("mlruns/results/*/*seed=0*")
    assert "uri: ${oc.env:STORE}" in (folder / "config.yaml").read_text()
    assert "cache-${oc.env:TOKEN}" in (folder / "config.yaml").read_text()
    assert run_command_line(["upload", str(folder)]) == 0  # to the same server
    shutil.rmtree(tmp_path / f"cache-{token}")
    secrets = [text.encode() for text in (password, quote(password, safe=""), "ss@w0rd", "w0rd", "someone", token)]
    for path in (*tmp_path.rglob("*"), *stored.tracking_folder.rglob("*")):
        held = path.read_bytes() if path.is_file() else b""
        assert not [s for s in secrets if s in held or s in str(path).encode()], path
    said = "".join(capfd.readouterr())
    assert not [s for s in secrets if s.decode() in said]
