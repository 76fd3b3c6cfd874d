"""A call in a process of its own, which must end soon and may ask for little memory."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from ctxexp import CtxexpError

MEMORY = 1 << 29  # bytes beside what the process has already
SECONDS = 2.0  # of a processor
LONGEST = 1500  # letters of a message
PATIENCE = 20  # seconds on the clock, after which a wait is for ever
ASKED = re.compile("MemoryError|[Uu]nable to allocate|[Cc]an(no|')t allocate|bad_alloc|[Oo]ut of memory")


class UnboundedError(Exception):
    """The call asked for memory or time without a bound, or ended in a traceback."""


def bounded(call: Callable[[], object], *, seconds: float = SECONDS, memory: int = MEMORY) -> None:
    """Run `call` in a forked process of limited memory and time.

    Raises:
        CtxexpError: The call was refused, with that message.
        AssertionError: The call raised one, with that message.
        UnboundedError: It took more than `seconds` of a processor, never ended, asked for more than `memory` bytes, or
            raised anything else.
    """
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        _child(call, write, seconds, memory)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        report = pipe.read()
    _, status = os.waitpid(pid, 0)
    if not report:
        ended = os.waitstatus_to_exitcode(status)
        signals = {-signal.SIGALRM: f"still waiting after {PATIENCE} s", -signal.SIGXCPU: "worked on and on"}
        raise UnboundedError(signals.get(ended, f"the process ended with {ended}"))
    outcome, message, taken = json.loads(report)
    if outcome == "wrong":
        raise AssertionError(message)
    if outcome == "raised" or ASKED.search(message):
        raise UnboundedError(message)
    if taken > seconds:
        raise UnboundedError(f"{taken:.1f} s of a processor: {message or 'read'}")
    if len(message) > LONGEST:
        raise UnboundedError(f"a message of {len(message):,} letters: {message[:LONGEST]}")
    if outcome == "refused":
        raise CtxexpError(message)


def _child(call: Callable[[], object], write: int, seconds: float, memory: int) -> NoReturn:
    """Try the call, report how it ended and the seconds of a processor that it took, and end the process."""
    outcome = message = ""
    start = time.process_time()
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE)
        present = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (present + memory,) * 2)
        most = int(start + 2 * seconds) + 2
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
        call()
    except CtxexpError as error:
        outcome, message = "refused", str(error)
    except AssertionError as error:
        outcome, message = "wrong", str(error)
    except BaseException:
        outcome, message = "raised", traceback.format_exc(limit=-4)
    report = [outcome, message[-4000:], time.process_time() - start]
    with contextlib.suppress(BaseException):
        os.write(write, json.dumps(report).encode())
    os._exit(0)
