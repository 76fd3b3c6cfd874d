"""Which process works on a run, and whether it still lives."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import platform
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ctxexp.errors import Terminated

HOST, PID, STARTED = "ctxexp.host", "ctxexp.pid", "ctxexp.process_started"


def process_tags() -> dict[str, str]:
    """What finds this process again: host, number, and when it started, since numbers are reused."""
    return {HOST: platform.node(), PID: str(os.getpid()), STARTED: started(os.getpid()) or ""}


def started(pid: int) -> str | None:
    """A text that changes when another process gets the number `pid`; empty if there is none, None if unknown."""
    proc = Path("/proc")
    if (proc / "self" / "stat").exists():  # Linux
        try:
            fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
            boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            return ""
        return "" if fields[0] in "ZX" else f"{boot}:{fields[19]}"  # state; start time in ticks since the boot
    return _started_elsewhere(pid)


def _started_elsewhere(pid: int) -> str | None:
    """macOS, Windows, the BSDs; on Linux psutil's time shifts with the clock, the kernel's ticks don't."""
    import psutil

    try:
        process = psutil.Process(pid)
        return "" if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.0f}"
    except psutil.NoSuchProcess:
        return ""
    except psutil.Error:
        return None


def is_gone(host: str | None, pid: str | None, start: str | None) -> str | None:
    """Why the process cannot be running any more, or None: it may be, or it is another machine's to say."""
    if host != platform.node() or not (pid or "").isdigit():
        return None
    now = started(int(pid or 0))
    if now is None:
        return None
    if now == "":
        return f"process {pid} on {host} is gone"
    return f"process {pid} on {host} is another one now" if start and now != start else None


def _stops() -> list[int]:
    """The signals that ask a process to end: a cluster's, a closed terminal's; not those that it was told to ignore."""
    found = (signal.Signals.__members__.get(name) for name in ("SIGTERM", "SIGHUP"))
    return [number for number in found if number and signal.getsignal(number) not in (signal.SIG_IGN, None)]


@contextlib.contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM, a cluster's way to stop a job, unwinds the block as Ctrl-C does instead of ending the process."""

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
def held_back() -> Iterator[None]:
    """What asks the process to end is answered after the block; who asks again is answered at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def hear(number: int, frame: object) -> None:
        if heard:
            heard.clear()
            answer(number)
        heard.append(number)

    def answer(number: int) -> None:
        restore()
        signal.raise_signal(number)

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
            answer(heard[0])


def end_with_parent() -> None:
    """A worker of joblib whose parent was killed would work on, and then wait, for ever: end it with its job KILLED."""
    worker = multiprocessing.current_process()
    parent = multiprocessing.parent_process()
    name = "end with parent"
    if parent is None or "loky" not in type(worker).__module__ or name in (t.name for t in threading.enumerate()):
        return

    def watch() -> None:
        while os.getppid() == parent.pid:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(20)
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=watch, name=name, daemon=True).start()
