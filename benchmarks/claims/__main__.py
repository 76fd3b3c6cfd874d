"""`python -m benchmarks.claims [worlds=400] [planted=200] [paper=NAME] [claim=ID] [out=docs/measures/claims.md]`.

Two tables: type-I error and power of the tests over layers beside the usual one; and for each claim the share of
verdicts in null worlds, with how many of 200 planted truths are found either way. With out= they are written between
the page's marks.
A share of 5% of 400 worlds has a standard error of 1.1%, of 60 worlds 2.8%. All claims take an hour or two;
`join=LOG,LOG` makes the table of rows that were printed before.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ctxexp_papers.claims.court import papers

from benchmarks.claims.layers import tests_over_layers
from benchmarks.claims.worlds import Draw, false_verdicts, share, worlds_of
from docs.numbers.marked import write_marked

PLANTED = 200
HEAD = ("| claim | verdicts in null worlds | holds where it does | fails where it does |", "|---|---|---|---|")


def claims_table(names: list[str], worlds: int, n: int = PLANTED, ids: Sequence[str] = ()) -> list[str]:
    """A row a claim (of these, or each) that has worlds: false verdicts in null worlds, right ones where it holds and
    where it fails; by as many resamples as its own test draws."""
    lines = [*HEAD]
    for paper in papers(names):
        planted = worlds_of(paper)
        for claim in (claim for claim in paper.claims if claim.id in planted and (not ids or claim.id in ids)):
            world = planted[claim.id]

            def right(draw: Draw | None, outcome: str, claim: object = claim) -> str:
                return f"{round(share(claim, draw, {outcome}, n, full=True) * n)} of {n}" if draw else ""

            cells = [
                f"{false_verdicts(claim, world, worlds, full=True):.1%} of {worlds}",
                right(world.true, "pass"),
                right(world.false, "fail"),
            ]
            lines.append(f"| {paper.name}: `{claim.id}` | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    return lines


def joined(logs: list[Path]) -> list[str]:
    """The table of the rows that logs of this bench hold, a claim's last one counts."""
    rows = [line for log in logs for line in log.read_text(encoding="utf-8").splitlines() if ": `" in line]
    return [*HEAD, *sorted({row.split(" | ")[0]: row for row in rows}.values())]


def main(args: list[str]) -> None:
    given = dict(arg.split("=", 1) for arg in args)
    if "join" in given:
        table = joined([Path(log) for log in given["join"].split(",")])
        write_marked(Path(given["out"]), "claims", "\n".join(table))
        return
    worlds, planted = int(given.get("worlds", 400)), int(given.get("planted", PLANTED))
    names = given["paper"].split(",") if "paper" in given else []
    ids = given["claim"].split(",") if "claim" in given else []
    tables = {} if names else {"nulls": tests_over_layers(worlds)}
    tables["claims"] = claims_table(names, worlds, planted, ids)
    for name, table in tables.items():
        print("\n".join([*table, ""]), flush=True)
        if "out" in given:
            write_marked(Path(given["out"]), name, "\n".join(table))


if __name__ == "__main__":
    main(sys.argv[1:])
