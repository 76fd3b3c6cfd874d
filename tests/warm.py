"""`python -m ctxexp ...` as a process of its own, without the seconds that importing torch and MLflow takes each time.

A server imports the libraries once and forks for every command: the child takes over the caller's arguments, folder,
environment and streams, runs the module as `python -m` would, and ends as any interpreter does. `Warm.folder` is for
the front of a PATH: its `ctxexp` asks the server, and its `python` where ctxexp or a script is meant; else that is the
interpreter itself.
What has to be seen to start from nothing is run without it.
"""

from __future__ import annotations

import array
import atexit
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import NoReturn

LIBRARIES = (
    "torch transformers transformers.modeling_utils transformers.models.bert.modeling_bert "
    "transformers.models.gpt2.modeling_gpt2 torch._dynamo accelerate mlflow mlflow.store.db.utils "
    "mlflow.store.tracking.sqlalchemy_store alembic.command matplotlib.figure matplotlib.backends.backend_agg "
    "matplotlib.backends.backend_svg fontTools.subset mpl_toolkits.mplot3d plotly.graph_objects scipy.stats sklearn "
    "pandas pyarrow.pandas_compat pyarrow.dataset pyarrow.parquet h5py joblib hydra.main "
    "hydra.core.override_parser.overrides_parser hydra._internal.hydra rich.console "
    "mlflow.store.tracking.sqlalchemy_workspace_store alembic.config sqlalchemy.dialects.sqlite"
)
TEXT = "TESTS_TEXT"
"""The variable that names a folder with a text in the place of the embedded one, of the same form."""
CLIENT = """
    import array, json, os, socket, sys
    words = sys.argv[1:]
    ours = words[:1] == ["-m"] and words[1].partition(".")[0] in ("ctxexp", "ipykernel_launcher")
    if not ours and not (words and words[0].endswith(".py")):
        os.execv({python!r}, [{python!r}, *words])
    with socket.socket(socket.AF_UNIX) as server:
        server.connect({address!r})
        asked = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
        streams = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))
        server.sendmsg([len(asked).to_bytes(4, "big")], [streams])
        server.sendall(asked)
        os._exit(server.recv(1)[0])
"""


class Warm:
    """A server in a process of its own; `folder` is what a PATH begins with to use it.

    One server serves all that name a folder: the first one starts it, and it ends when the process `session` has.
    """

    def __init__(self, folder: Path, session: int) -> None:
        self.folder = folder
        self.python = folder / "python"
        self._address = folder / "socket"
        try:
            folder.mkdir()
        except FileExistsError:
            self._wait()
            return
        self._write_commands()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "HYDRA_"))}
        env = {**kept, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        self._server = subprocess.Popen(
            [sys.executable, __file__, self._address, str(session)], env=env, stdout=subprocess.PIPE
        )
        self._wait()

    def _wait(self) -> None:
        """Until the server answers, which takes seconds."""
        for _ in range(1200):
            if self._address.exists():
                return
            time.sleep(0.1)
        raise TimeoutError("the server of warm processes didn't start")

    def _write_commands(self) -> None:
        client = textwrap.dedent(CLIENT).format(python=sys.executable, address=str(self._address))
        script = self.folder / "client.py"
        script.write_text(client)
        # A `#!` line ends at its first space and at 127 characters: the interpreter may lie anywhere, a shell doesn't.
        self.python.write_text(f'#!/bin/sh\nexec {quote(sys.executable)} -SE {quote(str(script))} "$@"\n')
        self.python.chmod(0o755)
        command = self.folder / "ctxexp"
        command.write_text(f'#!/bin/sh\nexec {quote(str(self.python))} -m ctxexp "$@"\n')
        command.chmod(0o755)

    def run(self, *words: str, cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """What `python WORDS` answers."""
        return subprocess.run([self.python, *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=400)


def load() -> None:
    """Import what commands import, ctxexp's tracking first, since it settles how MLflow behaves."""
    import_module("ctxexp.sinks")
    for name in LIBRARIES.split():
        import_module(name)
    for package in ("ctxexp", "ctxexp_compare", "ctxexp_hub", "ctxexp_lab", "ctxexp_measures", "ctxexp_papers"):
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                import_module(module.name)
    assert threading.active_count() == 1, f"a process with threads can't be forked: {threading.enumerate()}"


def serve(address: str, session: int) -> tuple[list[str], str, dict[str, str]]:
    """Answers while the process `session` lives, and returns in each child: what it is to run, where, under which
    environment."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{address}.new")
        listening.listen(16)
        Path(f"{address}.new").rename(address)  # where it is, it answers
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system buries children
        while True:
            if not select.select([listening], [], [], 1)[0]:
                end_with(session)
                continue
            asking, _ = listening.accept()
            if os.fork() == 0:
                break
            asking.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    asked, streams = _read(asking)
    if child := os.fork():
        _, status = os.waitpid(child, 0)
        with suppress(BrokenPipeError):  # a kernel that is asked to end is no longer waited for
            asking.sendall(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))
        os._exit(0)
    asking.close()
    for n, stream in enumerate(streams):
        os.dup2(stream, n)
        os.close(stream)
    words, folder, environment = json.loads(asked)
    return words, folder, environment


def end_with(session: int) -> None:
    """End this process if that one has ended."""
    try:
        os.kill(session, 0)
    except ProcessLookupError:
        os._exit(0)


def _read(asking: socket.socket) -> tuple[bytes, array.array[int]]:
    streams = array.array("i")
    size, extra, *_ = asking.recvmsg(4, socket.CMSG_SPACE(3 * streams.itemsize))
    streams.frombytes(extra[0][2])
    asked = b""
    while len(asked) < int.from_bytes(size, "big"):
        asked += asking.recv(1 << 20)
    return asked, streams


def run(words: list[str], folder: str, environment: dict[str, str]) -> None:
    """As `python WORDS` does."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if text := os.environ.pop(TEXT, ""):
        vars(import_module("ctxexp.datasets"))["DATA"] = Path(text)
    module = words[1] if words[0] == "-m" else None
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:1] = [folder if module else str(Path(words[0]).resolve().parent), *paths]
    sys.argv = words[bool(module) :]
    if module:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(words[0], run_name="__main__")


def end(code: object) -> NoReturn:
    """What an interpreter does at its end, but for taking apart every module that was ever imported."""
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as an interpreter does
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    gc.disable()  # while libraries make what stays
    load()
    gc.enable()
    gc.freeze()  # what is shared stays shared
    asked = serve(sys.argv[1], int(sys.argv[2]))
    try:
        run(*asked)
    except SystemExit as stop:
        end(stop.code)
    except BaseException:
        traceback.print_exc()
        end(1)
    end(0)
