"""`ctxexp claims`: the paper's claims as tests over finished runs, in a table, Markdown and HTML."""

from __future__ import annotations

from pathlib import Path

from ctxexp.errors import DataError, DiskError, UnknownName
from ctxexp.progress import show
from ctxexp_papers.claims.evidence import PAPER, Family, families


def claims(
    *,
    folder: Path = Path("mlruns"),
    uri: str | None = None,
    experiment: str = "ctxexp",
    model: str | None = None,
    released: bool = False,
    out: Path | None = None,
) -> None:
    """Test the claims of Ethayarajh (2019) on finished runs, or on the figures that the authors released.

    Verdicts come from runs of the paper's own weights, text and protocol alone; others, and the released figures, go
    through the same tests and are reported as such.

    folder: the tracking folder
    uri: an MLflow store to read instead of the folder
    experiment: MLflow's experiment, with uri
    model: of which models, of bert, gpt2, elmo, several with commas; null: all
    released: the authors' released figures only; needs no run
    out: a folder for claims.md and claims.html
    """
    from ctxexp_papers.claims import report

    summary = report.build([] if released else finished_families(folder, uri, experiment, model))
    show(report.text(summary))
    if out:
        try:
            for path in report.write(summary, out):
                print(f"written: {path}")
        except DiskError as error:
            raise DiskError(f"{error} (out=)") from error


def finished_families(folder: Path, uri: str | None, experiment: str, model: str | None = None) -> list[Family]:
    """The families of finished runs; raises DataError if there is none, UnknownName for a model that isn't one."""
    from ctxexp_papers.claims.runs import in_mlflow, on_disk

    models = PAPER if model is None else tuple(word.strip() for word in model.split(","))
    for name in models:
        if name not in PAPER:
            raise UnknownName("model with claims", name, PAPER)
    every = families(in_mlflow(uri, experiment) if uri else on_disk(folder))
    for family in every:
        family.members = [m for m in family.members if m.model in models or m.model not in PAPER]
        family.controls = [line for line in family.controls if line.partition(",")[0] in models]
    every = [family for family in every if any(member.model in models for member in family.members)]
    if not every:
        where = f"experiment {experiment!r} of {uri}" if uri else f"{folder / 'results'}"
        raise DataError(
            f"no finished run of {', '.join(models)} in {where}; make some (python -m ctxexp -m "
            f"model={','.join(models)}), name another place (folder=, uri=), or see what the released figures say "
            "(released=true)"
        )
    return every
