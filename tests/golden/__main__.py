"""`python -m tests.golden --check [--tolerance] | --write [case ...]`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.golden import CASES, ELSEWHERE, FILE, differences, numbers, results_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true", help="compare with the file to the last bit")
    mode.add_argument("--write", action="store_true", help="write the file anew")
    parser.add_argument(
        "--tolerance",
        type=float,
        nargs="?",
        const=ELSEWHERE,
        default=0.0,
        help=f"another machine's; alone {ELSEWHERE:g}",
    )
    parser.add_argument("cases", nargs="*", default=list(CASES), help=", ".join(CASES))
    asked = parser.parse_args()
    held = json.loads(FILE.read_text()) if FILE.exists() else {}
    failed = False
    for name in asked.cases:
        with tempfile.TemporaryDirectory() as folder:
            now = numbers(results_of(CASES[name], Path(folder)))
        found = list(differences(held[name], now, asked.tolerance)) if name in held else ["not on file"]
        equal = f"equal within {asked.tolerance:g}" if asked.tolerance else "equal to the last bit"
        print(f"{name}: {equal if not found else f'{len(found)} differences'}", flush=True)
        for line in found[:20]:
            print(f"  {line}")
        failed = failed or bool(found)
        held[name] = now
    if asked.write:
        FILE.write_text(json.dumps(held, indent=0, sort_keys=True) + "\n")
    return int(failed and not asked.write)


if __name__ == "__main__":
    sys.exit(main())
