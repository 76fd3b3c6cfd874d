"""`ctxexp claims`: the paper's claims as tests over finished runs, in a table, Markdown and HTML."""

from __future__ import annotations

from pathlib import Path

from ctxexp.errors import DataError, DiskError, UnknownName
from ctxexp.progress import show
from ctxexp_claims.evidence import PAPER, Family, families


def tell(found: list[Family], out: Path | None) -> None:
    """Print the report, and write it where asked."""
    from ctxexp_claims import report

    made = report.build(found)
    show(report.text(made))
    if out:
        try:
            for path in report.write(made, out):
                print(f"written: {path}")
        except DiskError as error:
            raise DiskError(f"{error} (out=)") from error


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
        family.controls = [line for line in family.controls if line.partition(",")[0] in wanted]
    every = [family for family in every if any(member.model in wanted for member in family.members)]
    if not every:
        where = f"experiment {experiment!r} of {uri}" if uri else f"{folder / 'results'}"
        raise DataError(
            f"no finished run of {', '.join(wanted)} in {where}; make some (python -m ctxexp -m "
            f"model={','.join(wanted)}), name another place (folder=, uri=), or see what the released figures say "
            "(released=true)"
        )
    return every
