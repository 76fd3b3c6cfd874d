"""A job's folder and its JSON files, of which a reader sees the old or the new one, never half of one; the process
that works on it, and whether it still lives; and the environment that it runs in: packages, interpreter, commit,
hardware, user, command.
"""

from __future__ import annotations

import contextlib
import functools
import getpass
import json
import os
import platform
import re
import secrets
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, TypedDict, cast

from ctxexp.errors import DiskError, Terminated
from ctxexp.files import clear_parts, user_path, write_file
from ctxexp.files.code_version import PACKAGE
from ctxexp.files.credentials import map_texts, mask

STATE = "status.json"  # what the job is doing: changes, so it is no artifact
RUN = "run.json"  # what names the job
HOST, PID, STARTED = "ctxexp.host", "ctxexp.pid", "ctxexp.process_started"


class State(TypedDict, total=False):
    """The contents of status.json: a job's latest state, and its own and its sinks' descriptions of it."""

    status: str
    name: str
    key: str
    results: str  # the folder that they are in, where it is an earlier job's
    error: str
    link: str
    overrides: list[str]
    process: dict[str, str]
    sinks: dict[str, dict[str, str]]
    reused: bool


def new_id() -> str:
    """A name for a sweep or a single run: readable, sortable, and no two alike within a second."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"


def job_folder(folder: Path | str, group: str, number: int | None = None, overrides: Sequence[str] = ()) -> Path:
    """`<folder>/results/<sweep or single id>/<number and overrides>`: the same path from the same arguments."""
    text = "_".join(o for o in overrides if not o.lstrip("+~").startswith(("tracking.", "sink", "plugins=")))
    label = re.sub(r"[^\w.=+-]+", "_", text)[:80].strip("_")
    name = "_".join(part for part in ("" if number is None else f"{number:03d}", label) if part)
    return user_path(folder).resolve() / "results" / group / (name or "run")


def write_json(path: Path, document: object) -> None:
    """Atomic: a reader sees the old file or the new one. Credentials are left out."""
    write_file(path, json.dumps(map_texts(mask, document), indent=1, ensure_ascii=False, default=str))


def read_json(path: Path) -> dict[str, Any]:
    """The file's object; empty if there is none or it is damaged."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def write_state(folder: Path, *, fresh: bool = False, **changes: object) -> None:
    """Update status.json; `fresh` forgets what it said."""
    write_json(folder / STATE, {**({} if fresh else read_json(folder / STATE)), **changes})


def try_state(folder: Path, *, fresh: bool = False, **changes: object) -> None:
    """Update status.json where a more important error is being reported: a full disk is ignored."""
    with suppress(DiskError):
        write_state(folder, fresh=fresh, **changes)


def read_state(folder: Path) -> State:
    """The contents of status.json; entries of another type than we write are left out."""
    texts = ("results", "status", "key", "name", "error", "link")
    types = dict.fromkeys(texts, str) | {"overrides": list, "process": dict, "sinks": dict}
    return cast(State, {k: v for k, v in read_json(folder / STATE).items() if isinstance(v, types.get(k, object))})


def mark_killed_jobs(store: Path) -> None:
    """Write KILLED to the status.json of jobs under `<store>/results` whose process is gone.

    What a killed job's process was writing a minute ago, there or in a sweep's summary, is removed.
    """
    closed: list[Path] = []
    for path in sorted((store / "results").glob(f"*/*/{STATE}")):
        state = read_state(path.parent)
        why = state.get("status") == "RUNNING" and why_gone(state.get("process", {}))
        if why:
            write_state(path.parent, status="KILLED", error=why)
        if why or state.get("status") == "KILLED":  # by its sweep's end, while a worker wrote
            closed.append(path.parent)
    for place in (*closed, *(store / "results").glob("*/summary")):
        clear_parts(place, "**/*")


def process_tags() -> dict[str, str]:
    """Tags that identify this process: host, process id, and the start of the process, since ids are reused."""
    return {HOST: platform.node(), PID: str(os.getpid()), STARTED: process_identity(os.getpid()) or ""}


def process_identity(pid: int) -> str | None:
    """A text that changes when another process gets the id `pid`; empty if there is no such process, None if
    unknown."""
    import psutil

    try:
        process = psutil.Process(pid)
        boot = psutil.boot_time() if psutil.LINUX else 0.0  # there psutil's times shift with the clock
        return "" if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time() - boot:.2f}"
    except psutil.NoSuchProcess:
        return ""
    except psutil.Error:
        return None


def why_gone(tags: Mapping[str, str]) -> str | None:
    """The reason why the process of these `process_tags` can't be running any more; None if it may be, or runs on
    another machine."""
    host, pid, start = (str(tags.get(name, "")) for name in (HOST, PID, STARTED))
    if host != platform.node() or not pid.isdigit():
        return None
    now = process_identity(int(pid))
    if now == "":
        return f"process {pid} on {host} is gone"
    return f"process {pid} on {host} is another one now" if start and now and now != start else None


def _stops() -> list[int]:
    """The signals that ask a process to end: a cluster's, a closed terminal's; not those that it was told to ignore."""
    signals = (signal.Signals.__members__.get(name) for name in ("SIGTERM", "SIGHUP"))
    return [number for number in signals if number and signal.getsignal(number) not in (signal.SIG_IGN, None)]


@contextlib.contextmanager
def raise_on_termination() -> Iterator[None]:
    """Raise `Terminated` in the block on SIGTERM, a cluster's way to stop a job, or SIGHUP: it is unwound as by
    Ctrl-C."""

    def stop(number: int, frame: object) -> None:
        raise Terminated(128 + number)

    main = threading.current_thread() is threading.main_thread()
    ours = [number for number in _stops() if main and signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def defer_signals() -> Iterator[None]:
    """Defer the signal that asks the process to end until the block is over; a second one takes effect at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def hear(number: int, frame: object) -> None:
        heard.append(number)
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    interrupts = [] if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None) else [signal.SIGINT]
    before = {number: signal.getsignal(number) for number in (*interrupts, *_stops())}
    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        restore()
        if heard:
            signal.raise_signal(heard[0])


def watch_parent(parent: int) -> None:
    """Start a thread that ends this worker once the process that started it is gone; its job's status is then
    KILLED."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(20)
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=watch, name="watch parent", daemon=True).start()


def watch_parent_in_workers() -> None:
    """Let joblib's workers watch their parent from their start: one without a job would outlive it by five minutes."""
    from joblib.parallel import LokyBackend, register_parallel_backend

    class Workers(LokyBackend):  # type: ignore[misc]
        def configure(self, *args: object, **kwargs: object) -> int:
            own = {"initializer": watch_parent, "initargs": (os.getpid(),)}
            return int(super().configure(*args, **{**own, **kwargs}))

    register_parallel_backend("loky", Workers)


def end_workers() -> None:
    """End joblib's idle workers: otherwise the interpreter does so at its exit, which an interrupt delays by five
    minutes."""
    if "joblib.externals.loky.reusable_executor" in sys.modules:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)


@functools.cache
def _commit_of(folder: Path) -> dict[str, object] | None:
    def git(*args: str) -> str | None:
        command = ["git", "--no-optional-locks", "-C", str(folder), *args]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return None

    commit, changes = git("rev-parse", "HEAD"), git("status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)} if commit else None


def current_commit() -> dict[str, object] | None:
    """Commit of the checkout that ctxexp runs from, else of the working folder, and whether tracked files differ from
    it (`dirty`; None: git didn't answer, or not in time); None outside any repository."""
    source = PACKAGE.resolve().parent
    return _commit_of(source if (source / ".git").exists() else Path.cwd())


def user() -> str:
    """The login name, or the user id if the account has no name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return str(os.getuid()) if os.name == "posix" else "unknown"


def command() -> str:
    """The command line that started this process, as one would type it, without credentials."""
    program = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path(sys.executable)
    args = ["python", "-m", program.parent.name] if program.name == "__main__.py" else [program.name]
    return mask(shlex.join([*args, *sys.argv[1:]]))


def provenance_tags() -> dict[str, str]:
    """The user, command line and commit of this process, for a run's metadata."""
    known = {key: value for key, value in (current_commit() or {}).items() if value is not None}
    return {"user": user(), "command": command(), **{key: str(value).lower() for key, value in known.items()}}


def _processor() -> str:
    with suppress(OSError, AttributeError):
        return re.search(r"(?m)^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(errors="replace"))[1]  # type: ignore[index]
    return platform.processor() or platform.machine()


def _gpus() -> list[str]:
    """Names of GPUs, where the run needed torch: importing it takes seconds."""
    if not sys.modules.get("torch"):
        return []
    import torch

    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return [*names, "Apple MPS"] if torch.backends.mps.is_available() else names


def _package(distribution: Distribution) -> tuple[str, str] | None:
    """Name and version of an installed distribution, from the first lines of its metadata: parsing all of it would take
    a tenth of a run's start-up time."""
    text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
    fields = dict(re.findall(r"^(Name|Version): *(.*\S)", text.partition("\n\n")[0], re.M))
    return (fields["Name"], fields["Version"]) if len(fields) == 2 else None


def environment() -> dict[str, object]:
    """The machine and software that compute the numbers, in JSON types; environment variables stay out, since they hold
    secrets."""
    packages = dict(filter(None, map(_package, distributions())))
    return {
        "command": command(),
        "user": user(),
        "host": platform.node(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "gpus": _gpus(),
        "git": current_commit(),
        "packages": dict(sorted(packages.items(), key=lambda item: item[0].lower())),
    }
