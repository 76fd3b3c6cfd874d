"""The frame: tries the cases of every kind, sorts how they ended, and logs each ending, so that it can go on."""

from __future__ import annotations

import importlib
import json
import signal
import tempfile
import time
import traceback
import unittest
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from ctxexp import CtxexpError

from . import Lost

FULL = {
    "kills": 300,
    "concurrency": 2,  # fresh stores, 16 processes each
    "cache_damage": 24,
    "vector_shards": 20,
    "results_damage": 20,
    "disk": 14,
    "eviction": 24,
    "sum_shards": 13,  # of one pass
    "drivers": 9,
}
"""How many cases of each kind the full run tries."""

LINES = 8
"""A message longer than this is not read."""

BAD = ("lost", "silent", "traceback")


@dataclass(frozen=True)
class Ending:
    """How one case ended; `number` counts from 0 within its kind and seed."""

    kind: str
    seed: int
    number: int
    name: str
    outcome: str
    message: str
    seconds: float

    def __str__(self) -> str:
        again = f"python -m benchmarks.faults --kind {self.kind} --seed {self.seed} --only {self.number}"
        return f"{self.outcome}: {self.kind} {self.number}, {self.name}\n  {self.message}\n  {again}"


def kinds() -> list[str]:
    """The kinds of the full run whose file is there."""
    return [kind for kind in FULL if (Path(__file__).parent / f"{kind}.py").is_file()]


def cases(kind: str, seed: int, count: int, folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """What `kind`'s file yields."""
    return importlib.import_module(f"{__package__}.{kind}").cases(seed, count, folder)


def attempt(case: Callable[[], object], limit: float) -> tuple[str, str]:
    """How a case ended, and with which words; one longer than `limit` seconds hangs: a traceback."""

    def late(*_: object) -> NoReturn:
        raise TimeoutError(f"still going after {limit:.0f} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        case()
    except Lost as e:
        return "lost", str(e)
    except AssertionError as e:
        return "silent", str(e) or traceback.format_exc(limit=-2)
    except unittest.SkipTest as e:
        return "skipped", str(e)
    except CtxexpError as e:
        return judged(str(e))
    except KeyboardInterrupt:
        raise
    except BaseException:
        return "traceback", traceback.format_exc(limit=-4)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return "well", ""


def judged(message: str) -> tuple[str, str]:
    """`refused`, if the message can be read: some words, a few lines, no traceback in them."""
    if not message.strip():
        return "silent", "refused without a word"
    if message.count("\n") >= LINES or "Traceback (most recent call last)" in message:
        return "traceback", message
    return "refused", message


def endings(
    kind: str, seed: int, count: int, *, only: int | None = None, known: Iterable[Ending] = (), limit: float = 300
) -> Iterator[Ending]:
    """The ending of each case of a kind, or of one; those in `known` are not tried again."""
    done = {(e.number, e.name): e for e in known if (e.kind, e.seed) == (kind, seed)}
    with tempfile.TemporaryDirectory(prefix=f"ctxexp-{kind}-", ignore_cleanup_errors=True) as folder:
        for number, (name, case) in enumerate(cases(kind, seed, count, Path(folder))):
            if only not in (None, number):
                continue
            if (number, name) in done:
                yield done[number, name]
                continue
            start = time.perf_counter()
            outcome, message = attempt(case, limit)
            yield Ending(kind, seed, number, name, outcome, message, round(time.perf_counter() - start, 3))


def read_log(file: Path) -> list[Ending]:
    """The endings in a log of JSON lines; a last line cut short by a stop is left out."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            found.append(Ending(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return found


def write_log(file: Path, ending: Ending) -> None:
    """One line more, on a line of its own even after a line that was cut."""
    cut = file.exists() and not file.read_bytes().endswith(b"\n") and file.stat().st_size > 0
    with file.open("a") as out:
        out.write("\n" * cut + json.dumps(asdict(ending)) + "\n")


def table(found: Iterable[Ending]) -> str:
    """A line a kind: tried, ended well (of them refused with a message), lost, silent, tracebacks, seconds."""
    rows = [("kind", "tried", "ended well", "of them refused", "lost", "silent", "tracebacks", "skipped", "seconds")]
    everything = list(found)
    by_kind = {kind: [e for e in everything if e.kind == kind] for kind in dict.fromkeys(e.kind for e in everything)}
    for kind, some in [*by_kind.items(), ("all", everything)]:
        n = Counter(e.outcome for e in some)
        tried, seconds = len(some) - n["skipped"], sum(e.seconds for e in some)
        figures = (tried, n["well"] + n["refused"], n["refused"], *(n[bad] for bad in BAD), n["skipped"])
        rows.append((kind, *map(str, figures), f"{seconds:.0f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "| " + " | ".join([r[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(r[1:], widths[1:], strict=True))]) + " |"
        for r in [rows[0], tuple("-" * w for w in widths), *rows[1:]]
    )
