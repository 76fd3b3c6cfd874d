"""`ctxexp claims`: the paper's claims as tests over finished runs, in a table, Markdown and HTML."""

from __future__ import annotations

import argparse
from pathlib import Path

from ctxexp.errors import DataError, DiskError, UnknownName
from ctxexp.progress import show
from ctxexp_claims.evidence import PAPER, Family, families


def main(argv: list[str]) -> int:
    """Print the report, and write it where asked: 0, whatever it says."""
    parser = argparse.ArgumentParser(
        prog="ctxexp claims",
        description="Test the claims of Ethayarajh (2019) on finished runs. Verdicts come from runs of the paper's own "
        "weights alone; others, and the released figures, go through the same tests and are reported as such.",
    )
    parser.add_argument("--folder", type=Path, default=Path("mlruns"), help="the tracking folder (default: mlruns)")
    parser.add_argument("--uri", help="an MLflow store to read instead of the folder")
    parser.add_argument("--experiment", default="ctxexp", help="MLflow's experiment, with --uri (default: ctxexp)")
    parser.add_argument("--model", help="of which models: bert, gpt2, elmo, or several with commas (default: all)")
    parser.add_argument("--released", action="store_true", help="the authors' released figures only; needs no run")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write claims.md and claims.html there")
    asked = parser.parse_args(argv)
    found = [] if asked.released else finished(asked.folder, asked.uri, asked.experiment, asked.model)
    from ctxexp_claims import report

    made = report.build(found)
    show(report.text(made))
    if asked.out:
        try:
            for path in report.write(made, asked.out):
                print(f"written: {path}")
        except DiskError as error:
            raise DiskError(f"{error} (--out)") from error
    return 0


def finished(folder: Path, uri: str | None, experiment: str, model: str | None = None) -> list[Family]:
    """The families of finished runs; raises DataError if there is none, UnknownName for a model that isn't one."""
    from ctxexp_claims.runs import in_mlflow, on_disk

    wanted = PAPER if model is None else tuple(word.strip() for word in model.split(","))
    for name in wanted:
        if name not in PAPER:
            raise UnknownName("model with claims", name, PAPER)
    every = families(in_mlflow(uri, experiment) if uri else on_disk(folder))
    for family in every:
        family.members = [m for m in family.members if m.model in wanted or m.model not in PAPER]
    every = [family for family in every if any(member.model in wanted for member in family.members)]
    if not every:
        where = f"experiment {experiment!r} of {uri}" if uri else f"{folder / 'results'}"
        raise DataError(
            f"no finished run of {', '.join(wanted)} in {where}; make some (python -m ctxexp -m "
            f"model={','.join(wanted)}), name another place (--folder, --uri), or see what the released figures say "
            "(--released)"
        )
    return every
