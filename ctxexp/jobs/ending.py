"""How a command ends: what its jobs leave, told and sent, and its exit status."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ctxexp.errors import CtxexpError, Terminated, line
from ctxexp.files import is_disk_full
from ctxexp.files.credentials import mask
from ctxexp.files.process import defer_signals, end_workers, raise_on_termination
from ctxexp.jobs import error_message
from ctxexp.jobs.sending import Sinks, send_sweep
from ctxexp.jobs.sweep import close_sweep
from ctxexp.progress import show, terminal_width
from ctxexp.report.page import show_page
from ctxexp.report.reference_curves import NO_CONTEXT, control_lines
from ctxexp.report.related_runs import average_seeds
from ctxexp.report.terminal import answer, fitted_markdown, table_texts
from ctxexp.report.wording import LabelledResults
from ctxexp.sinks import Sweep


@dataclass
class _Command:
    """The state of the command that this process runs: Hydra itself calls jobs and callbacks, so that what they leave
    for the command's end has no other way to it."""

    sweep: tuple[Sweep, Sinks] | None = None  # None: it has started none
    verbose: bool = False
    failure: str = ""  # the error of this process's last job that failed
    printed: set[str] = field(default_factory=set)  # errors
    answer: tuple[Sequence[LabelledResults], Path] = ((), Path())  # what was found, and the folder of its page


_command = _Command()


def note_failure(error: Exception) -> None:
    """Note a job's failure, and say it once a command: of a bug, ours or a plugin's, the traceback."""
    message = _command.failure = error_message(error)
    is_bug = not (isinstance(error, CtxexpError) or is_disk_full(error))
    text = mask(message if is_bug else f"error: {line(message)}")
    if is_bug or text not in _command.printed:
        show(text, sys.stderr)
    _command.printed.add(text)


def show_answer(folder: Path, runs: Sequence[LabelledResults]) -> None:
    """Print what was found: the tables of the folder, the answer of the runs, and the page's path."""
    _command.answer = (runs, folder)
    texts = [fitted_markdown(table, terminal_width()) for table in table_texts(folder)]
    texts += [answer(runs, terminal_width())] if runs else []
    if texts:
        show("\n\n".join(texts))
    show_page(folder)


def open_sweep(sweep: Sweep, sinks: Sinks, *, verbose: bool = False) -> None:
    """Remember the sweep that this process starts, and its sinks; `verbose`: its end prints more than the answer."""
    _command.sweep, _command.verbose = (sweep, sinks), verbose


def last_failure() -> str:
    """The error of this process's last job that failed; empty if none did."""
    return _command.failure


def last_answer() -> tuple[Sequence[LabelledResults], Path]:
    """What the last command of this process found, and the folder of its page."""
    return _command.answer


@dataclass
class Ending:
    """How a command ended: its exit status."""

    status: int = 0


@contextmanager
def settle_command() -> Iterator[Ending]:
    """Settle what the jobs of the block leave, however it ends: by itself, interrupted, or with a worker killed. What
    isn't an end of these is raised, after all is settled."""
    global _command
    _command = _Command()  # an earlier one's failures and sweep are no part of this
    ending = Ending()
    stopped: str | None = None
    other: Exception | SystemExit | None = None
    with raise_on_termination() as heard:
        try:
            yield ending
        except KeyboardInterrupt:
            ending.status, stopped = 130, "interrupted"
        except BrokenProcessPool as error:
            ending.status, stopped = 1, _killed_worker(error)
        except (SystemExit, Exception) as error:
            if isinstance(error, Terminated) or heard:
                number = heard[0] if heard else int(str(error)) - 128
                ending.status, stopped = 128 + number, f"ended by {signal.Signals(number).name}"
            elif isinstance(error, SystemExit):
                other = error
            else:
                stopped, other = f"stopped by {type(error).__name__}", error
        if ending.status == 1:
            show(f"error: {stopped}", sys.stderr)
        elif ending.status:
            show(f"{stopped}: the runs that were under way are KILLED", sys.stderr)
        with defer_signals():
            closed = end_command(stopped=stopped)
            end_workers()
    if other:
        raise other
    ending.status = ending.status or closed


def _killed_worker(error: BaseException) -> str:
    """A worker process that the system killed, in one line."""
    signals = ", ".join(sorted(set(re.findall(r"\b(SIG[A-Z]+)\(", str(error)))))
    return (
        f"a worker process was killed{f' ({signals})' if signals else ''}, most often for want of memory: have fewer "
        "at a time (hydra.launcher.n_jobs=1), and repeat the command with resume=true, which skips what finished"
    )


def end_command(*, stopped: str | None) -> int:
    """Settle the sweep, if there is one, after Hydra has returned, print how its jobs ended and send them; the exit
    status."""
    if _command.sweep is None:
        return 1 if _command.failure else 0
    sweep, sinks = _command.sweep
    report = close_sweep(sweep, stopped=stopped)
    if not report.rows:
        return 1
    for row in report.rows:
        if row.status == "FINISHED" and not _command.verbose:
            continue
        note = " ".join((row.error or "").strip().splitlines()[-1:])
        show(f"{row.label}: {row.status.lower()}{' before' if row.reused else ''}{note and ', '}{note}")
    if problems := (report.error or "").removeprefix(stopped or "").strip():
        show(f"error: {problems}", sys.stderr)
    averages = average_seeds(report.compared)
    if _command.verbose and (controls := control_lines(averages)):
        show("\n".join([f"{NO_CONTEXT}:", *controls]))
    show_answer(sweep.summary, averages)
    link, unsent = send_sweep(sweep, report, sinks)
    if link:
        show(f"charts: {link}")
    for problem in unsent:
        show(f"error: {problem}", sys.stderr)
    return 0 if report.status == "FINISHED" and not report.error and not unsent else 1
