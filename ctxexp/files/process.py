"""The process that works on a job: whether it still lives, the signals that end it, and its workers."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping

from ctxexp.errors import Terminated

HOST, PID, STARTED = "ctxexp.host", "ctxexp.pid", "ctxexp.process_started"


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


_heard: list[int] = []  # signals that came in the outermost block, which hears them for those in it


@contextlib.contextmanager
def raise_on_termination() -> Iterator[list[int]]:
    """Raise `Terminated` in the block on SIGTERM, a cluster's way to stop a job, or SIGHUP: it is unwound as by Ctrl-C.

    The list holds the signals that came: a library that one interrupts, as in an import, may make an error of its own
    of it."""

    def stop(number: int, frame: object) -> None:
        _heard.append(number)
        raise Terminated(128 + number)

    main = threading.current_thread() is threading.main_thread()
    ours = [number for number in _stops() if main and signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, stop)
    try:
        yield _heard
    except Exception as error:
        if _heard:
            raise Terminated(128 + _heard[0]) from error
        raise
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if ours:
            _heard.clear()


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
