"""MLflow's web interface, started lean and opened where the curves are."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator

from ctxexp.errors import TrackingError
from ctxexp.files.credentials import mask, redact
from ctxexp.files.process import raise_on_termination
from ctxexp.sinks import database
from ctxexp.sinks.views import base, run_link, sweep_link

START_TIMEOUT = 120.0  # seconds; 8 on an idle machine


def last_sweep_link(uri: str, experiment: str, address: str | None = None) -> str | None:
    """The charts of the experiment's last sweep, or its last run if that was alone; None if there is no run yet. The
    last is one that finished, where any did: a sweep without a finished run has no charts.

    `address` is where the UI is served, for a store that is not itself a server.
    """
    client, where = database.client(uri), address or uri
    query, newest = f"tags.`{database.KIND}` = 'job'", ["attributes.start_time DESC"]
    with database.tracking_errors(f"cannot read {redact(uri)}"):
        if (entity := client.get_experiment_by_name(experiment)) is None:
            return None
        number = entity.experiment_id
        for each in (f"{query} AND attributes.status = 'FINISHED'", query):
            for run in client.search_runs([number], each, max_results=1, order_by=newest):
                run_id, last_sweep = run.info.run_id, run.data.tags.get(database.SWEEP)
                if last_sweep:
                    return sweep_link(where, number, last_sweep)
                return run_link(where, number, f"{run_id}/model-metrics")
    return None


@contextlib.contextmanager
def server(uri: str, port: int) -> Iterator[str]:
    """MLflow's web server of a store while the block runs; its address, once it answers.

    A taken port moves on to the next free one of 20. One worker and no job runner: a third of the time and memory of
    MLflow's defaults. Whatever it started is ended with it.
    """
    import psutil

    port = free_port(port)
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    if path := database.sqlite_file(uri):  # else runs that are sent to it leave `mlartifacts` in the working folder
        command += ["--artifacts-destination", database.artifact_root(path.parent)]
    own = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    environ = {**own, **os.environ, "MLFLOW_BACKEND_STORE_URI": uri}  # not in the command, which everyone can see
    environ.pop("MLFLOW_TRACKING_URI", None)
    with tempfile.TemporaryFile() as log:
        process = psutil.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environ,
            start_new_session=True,  # Ctrl-C reaches us alone
        )
        try:
            deadline = time.monotonic() + START_TIMEOUT
            while not _answers(address):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    tail = mask("\n".join(log.read().decode(errors="replace").splitlines()[-15:]))
                    raise TrackingError(f"MLflow's server did not start on port {port}. It said:\n{tail}")
                time.sleep(0.2)
            yield address
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                started = [process, *process.children(recursive=True)]
                for each in started:
                    each.terminate()
                for each in psutil.wait_procs(started, timeout=10)[1]:
                    each.kill()


def serve(uri: str, experiment: str | None, port: int) -> None:
    """Serve a store until Ctrl-C, printing the link that opens on the last sweep's charts."""
    experiment = database.experiment_name(database.client(uri), experiment)
    if uri.startswith("http"):
        print(last_sweep_link(uri, experiment) or f"{base(uri)} (no run in experiment {experiment!r} yet)")
        return
    print("starting MLflow's server, some ten seconds ...")
    try:
        with raise_on_termination(), server(uri, port) as address:
            if not address.endswith(f":{port}"):
                print(f"port {port} is taken; using {address.rpartition(':')[2]}")
            link = last_sweep_link(uri, experiment, address)
            print(f"curves: {link}" if link else f"no run in experiment {experiment!r} yet; front page: {address}")
            print("Ctrl-C ends the server")
            while True:
                time.sleep(0.2)
    except KeyboardInterrupt:
        print("server ended")


def free_port(port: int) -> int:
    """`port`, or the next one of 20 that nothing listens on."""
    for candidate in range(port, port + 20):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", candidate)) as probe:
            return int(probe.getsockname()[1])
    raise TrackingError(f"ports {port} to {port + 19} are all taken; choose another with port=")


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False
