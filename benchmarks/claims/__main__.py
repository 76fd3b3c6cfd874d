"""`python -m benchmarks.claims [worlds=400] [paper=NAME] [out=docs/measures/claims.md]`: two tables.

Type-I error and power of the tests over layers beside the usual one; and for each claim the share of verdicts in null
worlds, with how many of 200 planted truths are found either way. With out= they are written between the page's marks.
A share of 5% of 400 worlds has a standard error of 1.1%.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ctxexp_papers.claims.court import papers

from benchmarks.claims.layers import tests_over_layers
from benchmarks.claims.worlds import Draw, false_verdicts, share, worlds_of
from docs.numbers.marked import write_marked

PLANTED = 200


def claims_table(names: list[str], worlds: int) -> list[str]:
    """A row a claim that has worlds: false verdicts in null worlds, right ones where it holds and where it fails."""
    lines = ["| claim | verdicts in null worlds | holds where it does | fails where it does |", "|---|---|---|---|"]
    for paper in papers(names):
        planted = worlds_of(paper)
        for claim in (claim for claim in paper.claims if claim.id in planted):
            world = planted[claim.id]

            def right(draw: Draw | None, outcome: str, claim: object = claim) -> str:
                return f"{round(share(claim, draw, {outcome}, PLANTED) * PLANTED)} of {PLANTED}" if draw else ""

            cells = [
                f"{false_verdicts(claim, world, worlds):.1%}",
                right(world.true, "pass"),
                right(world.false, "fail"),
            ]
            lines.append(f"| {paper.name}: `{claim.id}` | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    return lines


def main(args: list[str]) -> None:
    given = dict(arg.split("=", 1) for arg in args)
    worlds = int(given.get("worlds", 400))
    names = given["paper"].split(",") if "paper" in given else []
    tables = {} if names else {"nulls": tests_over_layers(worlds)}
    tables["claims"] = claims_table(names, worlds)
    for name, table in tables.items():
        print("\n".join([*table, ""]), flush=True)
        if "out" in given:
            write_marked(Path(given["out"]), name, "\n".join(table))


if __name__ == "__main__":
    main(sys.argv[1:])
