"""Which process works on a run, and whether it still lives."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

from ctxexp.errors import Terminated

HOST, PID, STARTED = "ctxexp.host", "ctxexp.pid", "ctxexp.process_started"


def process_tags(pid: int | None = None) -> dict[str, str]:
    """What finds a run's process again: host, number, and when it started, since numbers are reused."""
    pid = os.getpid() if pid is None else pid
    return {HOST: platform.node(), PID: str(pid), STARTED: started(pid) or ""}


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


@contextlib.contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM, a cluster's way to stop a job, unwinds the block as Ctrl-C does instead of ending the process."""

    def stop(number: int, frame: object) -> None:
        raise Terminated(128 + number)

    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
