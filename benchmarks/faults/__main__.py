"""`python -m benchmarks.faults --kind kills --count 100`, or `--all`: a table, and what repeats failures."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .bench import BAD, FULL, Ending, endings, kinds, read_log, table, write_log


def options(argv: list[str] | None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser("python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--kind", action="append", choices=list(FULL), help="a kind of fault; may be given again")
    parser.add_argument("--all", action="store_true", help=f"every kind in full: {FULL}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, help="cases of each kind (default: the full run's)")
    parser.add_argument("--only", type=int, help="only the case of this number, from 0")
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a case hangs")
    parser.add_argument("--log", type=Path, help="JSON lines of endings; what stands there is not tried again")
    asked = parser.parse_args(argv)
    if not (asked.all or asked.kind):
        parser.error("which? --kind ... or --all")
    return asked


def main(argv: list[str] | None = None) -> int:
    """0 if nothing was lost, silently wrong or a traceback, else 1."""
    asked = options(argv)
    known = read_log(asked.log) if asked.log else []
    found: list[Ending] = []
    for kind in asked.kind or kinds():
        count = asked.count or FULL[kind]
        for ending in endings(kind, asked.seed, count, only=asked.only, known=known, limit=asked.limit):
            found.append(ending)
            if asked.log and ending not in known:
                write_log(asked.log, ending)
            if ending.outcome in BAD:
                print(ending, file=sys.stderr, flush=True)
    print(table(found))
    return int(any(e.outcome in BAD for e in found))


if __name__ == "__main__":
    sys.exit(main())
