"""How far a stage has come: a bar on a terminal or in a notebook, one line at its end otherwise."""

from __future__ import annotations

import io
import logging
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from ctxexp.host import is_terminal

if TYPE_CHECKING:
    from IPython.display import DisplayHandle

log = logging.getLogger("ctxexp")
WIDTH = 160  # characters of a line where nobody says how wide the page is


def show(text: str, stream: TextIO | None = None) -> None:
    """Print to standard output, or to `stream`; a reader that has seen enough, as `head` has, or a full disk behind it
    silences the stream and ends nothing, nor does a sign that the stream's encoding lacks.

    Example:
        >>> show("as the terminal can")
        as the terminal can
    """
    stream = stream or sys.stdout
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        silence(stream)
    except UnicodeEncodeError:
        show(text.encode("ascii", "backslashreplace").decode(), stream)
    except OSError as error:
        silence(stream)
        if stream is not sys.stderr:
            show(f"warning: what is printed can't be written: {error.strerror}", sys.stderr)


def terminal_width() -> int:
    """The characters of a line of the terminal that is printed to; `WIDTH` where it is none."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else WIDTH


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
    """Shows stages: bars where `stream` is a terminal, else one line per stage, at its end, to the log `ctxexp`.

    `stream` is standard error by default, or, in a notebook, a line of the cell that is empty once a stage is done:
    what is saved keeps no bars. `bars=True` or `False` decides by hand. Not `shown`, it shows nothing.

    Example:
        >>> with Progress(bars=False).stage("encoding", total=2) as stage:
        ...     stage.advance(2)
    """

    def __init__(self, *, bars: bool | None = None, stream: TextIO | None = None, shown: bool = True) -> None:
        self.shown = shown
        self.stream: TextIO | _Cell | None = stream or (
            _Cell() if shown and bars is not False and in_notebook() else sys.stderr
        )
        self.bars = shown and (is_terminal(self.stream) if bars is None else bars)

    @classmethod
    def of(cls, choice: Progress | bool | None) -> Progress:
        """What a caller chose: a progress of its own, this one (True), or one that shows nothing (False, None)."""
        return choice if isinstance(choice, Progress) else cls(shown=bool(choice))

    def note(self, text: str, *, is_warning: bool = False) -> None:
        """Give a line to the log `ctxexp`, or show it on standard error where nobody reads the log."""
        if is_warning or (log.isEnabledFor(logging.INFO) and log.hasHandlers()):
            log.log(logging.WARNING if is_warning else logging.INFO, text)
        elif self.shown:
            show(text, sys.stderr)

    @contextmanager
    def stage(self, name: str, total: float, unit: str = "it") -> Iterator[Stage]:
        """A stage of `total` units; the line at its end has the units, the time and the rate."""
        stage = _Bar(name, total, unit, self.stream) if self.bars and self.stream else _Line(name, total, unit)
        done = "stopped after {0:,.0f} of {1:,.0f}"
        try:
            yield stage
            done = "{0:,.0f}"
        finally:
            if self.shown:
                stage.close(done)


class _Line:
    def __init__(self, name: str, total: float, unit: str) -> None:
        self.name, self.total, self.unit, self.info = name, total, unit, ""
        self.done: float = 0
        self.began = time.monotonic()

    def advance(self, n: float, **info: object) -> None:
        self.done += n
        self.info = "".join(f", {value} {key}" for key, value in info.items()) or self.info

    def close(self, done: str) -> None:
        seconds = max(time.monotonic() - self.began, 1e-9)
        rate = f"{self.done / seconds:,.0f} {self.unit}/s"
        if 0 < self.done < seconds:
            rate = f"{seconds / self.done:,.1f} s each"
        log.info("%s: %s %s%s in %.1f s (%s)", self.name, done.format(self.done, self.total), self.unit, self.info,
                 seconds, rate)  # fmt: skip


class _Bar:
    def __init__(self, name: str, total: float, unit: str, stream: TextIO | _Cell) -> None:
        from tqdm import tqdm

        is_cell = isinstance(stream, _Cell)
        self.bar: Any = tqdm(
            desc=name, total=total, unit=" " + unit, unit_scale=True, file=stream, smoothing=0.1,
            leave=not is_cell, position=0 if is_cell else None, dynamic_ncols=not is_cell,
        )  # fmt: skip

    def advance(self, n: float, **info: object) -> None:
        if info:
            self.bar.set_postfix_str(", ".join(f"{value} {key}" for key, value in info.items()), refresh=False)
        self.bar.update(n)

    def close(self, done: str) -> None:
        self.bar.close()


def in_notebook() -> bool:
    """Whether this is a notebook's kernel; other processes have loaded none."""
    if "ipykernel" not in sys.modules:
        return False
    from IPython import get_ipython

    return get_ipython() is not None


class _Cell(io.TextIOBase):
    """One line below a notebook's cell: what is written takes the place of what stood there.

    The notebook's own messages carry it, so that no widgets need to be installed, and none is left in a saved file.
    """

    encoding = "utf-8"  # of the bar's blocks

    def __init__(self) -> None:
        self.line: DisplayHandle | None = None

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        from IPython.display import display

        bundle = {"text/plain": text.strip()}
        if self.line is not None:
            self.line.update(bundle, raw=True)
        elif text.strip():
            self.line = display(bundle, raw=True, display_id=True)
        return len(text)
