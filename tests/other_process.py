"""Another process of this program, which works when it is told to."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Child:
    """Another process of this program, which does `work` when it is told to and says how that ended."""

    def __init__(self, *works: Callable[[], object]) -> None:
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self.commands)
            for work in works:
                if not os.read(commands, 1):
                    break
                os.write(answers, outcome(work))
            os.read(commands, 1)  # until the parent is done with it, or gone
            os._exit(0)
        os.close(commands)
        os.close(answers)

    def start(self) -> None:
        """Let it do the next of its works."""
        os.write(self.commands, b"x")

    def wait(self) -> str:
        """What it says of its last work: a traceback, or nothing where it went well."""
        answer = os.read(self.answers, 65536)
        if not answer:
            raise RuntimeError("the other process is gone")
        return answer[1:].decode()

    def do(self) -> None:
        """Its next work, from beginning to end. Raises RuntimeError for whatever that raised."""
        self.start()
        if said := self.wait():
            raise RuntimeError(f"in the other process: {said}")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.commands)
        os.close(self.answers)
        self.pid = 0


def outcome(work: Callable[[], object]) -> bytes:
    try:
        work()
    except BaseException:
        return b"x" + traceback.format_exc(limit=-3).encode()[-60000:]
    return b"x"


@contextmanager
def child(*works: Callable[[], object]) -> Iterator[Child]:
    process = Child(*works)
    try:
        yield process
    finally:
        if process.pid:
            process.kill()
