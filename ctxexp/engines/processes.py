"""Processes of this machine that work on items one by one, and end with the process that started them.

The standard library's pool doesn't say which item killed a worker, ends all workers when one dies, and leaves them
behind when its own process is killed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context, get_start_method, set_start_method, util
from multiprocessing.connection import Connection, wait
from typing import Any, Literal, NamedTuple

from cloudpickle import dumps, loads

_DEATH_SIGNAL = 1  # Linux's PR_SET_PDEATHSIG

Outcome = Literal["ready", "done", "failed", "dead"]


class Answer(NamedTuple):
    """A worker's answer: the outcome of its item, or `ready` when it has just started."""

    worker: LocalWorker
    outcome: Outcome
    value: Any = None  # the result, or the exception that was raised


class _Workers:
    """The living workers of this process, which end before it does; after that none is begun, whoever asks."""

    def __init__(self) -> None:
        self.lock, self.living, self.is_exiting = threading.Lock(), set[LocalWorker](), False
        # The standard library's own exit waits for all processes: a Finalize of this kind is called before it does.
        util.Finalize(None, self.end_all, exitpriority=10)

    @contextmanager
    def beginning(self, worker: LocalWorker) -> Iterator[None]:
        """The block begins the worker. A thread that goes on while the process exits ends here, without a word."""
        with self.lock:
            self.end_thread_at_exit()
            yield
            self.living.add(worker)

    def end_thread_at_exit(self) -> None:
        """Raise SystemExit, which ends a thread without a word, where this process is exiting."""
        if self.is_exiting or util.is_exiting():
            raise SystemExit

    def end_all(self) -> None:
        """End every worker at the exit of this process. Their pipes are left to the thread that may wait for them."""
        with self.lock:
            self.is_exiting = True
        for worker in list(self.living):
            worker.process.kill()
            worker.process.join()


class LocalWorker:
    """A process that builds a function once, from the pickled factory `work`, and applies it to one item at a time.

    Raises SystemExit where this process is exiting.
    """

    def __init__(self, work: bytes) -> None:
        context = get_context("spawn")
        self.item: tuple[int, Any] | None = None  # (number, item) in progress
        self.pipe, theirs = context.Pipe()
        main = threading.current_thread() is threading.main_thread()
        self.process = context.Process(target=_serve, args=(theirs, work, os.getpid(), main))
        with _WORKERS.beginning(self), _known_start_method():
            self.process.start()
        theirs.close()  # so that the pipe ends with the worker

    def give(self, item: tuple[int, object]) -> None:
        """Send the worker an item. If it has died meanwhile, its next answer says so."""
        self.item = item
        with suppress(OSError):
            self.pipe.send_bytes(dumps(item[1]))

    def answer(self) -> Answer:
        """Read the worker's answer, once its pipe or its process is ready; `dead` if it died."""
        try:
            if self.pipe.poll():
                outcome, value = loads(self.pipe.recv_bytes())
                return Answer(self, outcome, value)
        except (EOFError, OSError):
            pass
        _WORKERS.end_thread_at_exit()
        self.kill()
        return Answer(self, "dead")

    def kill(self) -> None:
        """Kill the worker at once; that is safe, since its files are written atomically."""
        _WORKERS.living.discard(self)
        self.pipe.close()
        self.process.kill()
        self.process.join()


_WORKERS = _Workers()


@contextmanager
def _known_start_method() -> Iterator[None]:
    """Use a start method of the standard library inside a joblib worker, whose own method a new process doesn't
    know."""
    before = get_start_method(allow_none=True)
    if before in (None, "spawn", "fork", "forkserver"):
        yield
        return
    set_start_method("spawn", force=True)
    try:
        yield
    finally:
        set_start_method(before, force=True)


def answers(workers: list[LocalWorker]) -> Iterator[Answer]:
    """The answers of those workers that have one, at least one; waits for it."""
    by_handle = {handle: worker for worker in workers for handle in (worker.pipe, worker.process.sentinel)}
    for worker in dict.fromkeys(by_handle[handle] for handle in wait(list(by_handle))):  # type: ignore[index]
        yield worker.answer()


def _serve(pipe: Connection, work: bytes, parent: int, started_by_main_thread: bool) -> None:
    """The main loop of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches all: the driver ends its workers
    end_with_parent(parent, started_by_main_thread)
    function: Callable[[object], object] | None = None
    with suppress(EOFError, OSError):  # the parent has closed the pipe or is gone
        pipe.send_bytes(dumps(("ready", None)))
        while True:
            item = loads(pipe.recv_bytes())
            try:
                function = function or loads(work)()
                answer = dumps(("done", function(item)))
            except Exception as error:
                answer = _failure(error)
            pipe.send_bytes(answer)


def _failure(error: Exception) -> bytes:
    """The error as bytes; of one that can't be pickled, its message."""
    error.add_note(f"in a worker:\n{''.join(traceback.format_exception(error))}")
    try:
        answer: bytes = dumps(("failed", error))
        loads(answer)
    except Exception:
        answer = dumps(("failed", RuntimeError(f"{type(error).__name__}: {error}")))
    return answer


def end_with_parent(parent: int, started_by_main_thread: bool) -> None:
    """End this process when its parent, the process with id `parent`, ends for any reason.

    A thread watches the parent; on Linux the kernel does too, for work that never lets Python's threads run. The
    kernel's watch ends with the *thread* that began the process, so it is asked for a main thread only.
    """
    from multiprocessing import parent_process

    if started_by_main_thread and sys.platform == "linux":
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    sentinel = [began.sentinel] if (began := parent_process()) else []

    def watch() -> None:
        # the sentinel is a pipe's end on POSIX, which a child that the parent forked may hold open: hence both
        while os.getppid() == parent and not wait(sentinel, timeout=1):
            pass
        os._exit(1)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()
