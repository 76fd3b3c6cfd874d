"""How far a stage has come: a bar on a terminal, one line at its end otherwise."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

log = logging.getLogger("ctxexp")


def show(text: str, stream: TextIO | None = None) -> None:
    """Print to standard output, or to `stream`; a reader that has seen enough, as `head` has, or a full disk behind it
    silences the stream and ends nothing."""
    stream = stream or sys.stdout
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        silence(stream)
    except OSError as error:
        silence(stream)
        if stream is not sys.stderr:
            show(f"warning: what is printed can't be written: {error.strerror}", sys.stderr)


def silence(stream: TextIO) -> None:
    """Let what is still in the stream's buffer, and what follows, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class Stage(Protocol):
    """A stage under way."""

    def advance(self, n: float, **info: object) -> None:
        """`n` more of the stage's units are done; `info` is shown beside the bar."""


class Progress:
    """Shows stages: bars where `stream` (standard error by default) is a terminal, else one line each, at their end.

    `bars=True` or `False` decides by hand.
    """

    def __init__(self, *, bars: bool | None = None, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.bars = self.stream.isatty() if bars is None else bars

    @contextmanager
    def stage(self, name: str, total: float, unit: str = "it") -> Iterator[Stage]:
        """A stage of `total` units; the line at its end has the units, the time and the rate."""
        stage = _Bar(name, total, unit, self.stream) if self.bars else _Line(name, total, unit)
        try:
            yield stage
        except BaseException:
            stage.close(whole=False)
            raise
        stage.close(whole=True)


class Silent(Progress):
    """Shows nothing."""

    def __init__(self) -> None:
        super().__init__(bars=False)

    @contextmanager
    def stage(self, name: str, total: float, unit: str = "it") -> Iterator[Stage]:
        yield _Line(name, total, unit)


class _Line:
    def __init__(self, name: str, total: float, unit: str) -> None:
        self.name, self.total, self.unit = name, total, unit
        self.done: float = 0
        self.info: dict[str, object] = {}
        self.began = time.monotonic()

    def advance(self, n: float, **info: object) -> None:
        self.done += n
        self.info.update(info)

    def close(self, *, whole: bool) -> None:
        seconds = max(time.monotonic() - self.began, 1e-9)
        done = f"{self.done:,.0f}" if whole else f"stopped after {self.done:,.0f} of {self.total:,.0f}"
        info = "".join(f", {value} {key}" for key, value in self.info.items())
        log.info("%s: %s %s%s in %.1f s (%s %s/s)", self.name, done, self.unit, info, seconds,
                 f"{self.done / seconds:,.0f}", self.unit)  # fmt: skip


class _Bar:
    def __init__(self, name: str, total: float, unit: str, stream: TextIO) -> None:
        from tqdm import tqdm

        self.bar: Any = tqdm(desc=name, total=total, unit=" " + unit, unit_scale=True, file=stream, dynamic_ncols=True,
                             smoothing=0.1)  # fmt: skip

    def advance(self, n: float, **info: object) -> None:
        if info:
            self.bar.set_postfix_str(", ".join(f"{value} {key}" for key, value in info.items()), refresh=False)
        self.bar.update(n)

    def close(self, *, whole: bool) -> None:
        self.bar.close()
