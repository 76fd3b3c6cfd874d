"""`ctxexp claims`: papers' claims as tests, over finished runs, released results and models; in a table or a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ctxexp.command import show
from ctxexp.errors import DataError
from ctxexp_papers.claims.source import Inputs, LinkedResults, check_released

FOLDER = Path("mlruns")


def claims(
    *,
    paper: str | None = None,
    model: str | None = None,
    released: Path | None = None,
    folder: Path = FOLDER,
    uri: str | None = None,
    experiment: str = "ctxexp",
    out: Path | None = None,
) -> None:
    """Test papers' claims, on models or finished runs.

    A row a paper with counts of verdicts, or, with paper=, every verdict with its tests.

    A verdict comes from a paper's own protocol or its authors' released results; one on offered models, of which the
    paper speaks in general, is told and counted apart; other runs go through the same tests and are reported as such.
    Without any option theorems and claims on measures, whose instances are drawn in seconds, aren't tried.

    paper: names of papers, several with commas; null: a row for each
    model: models to test the claims on, several with commas; null: those of the finished runs
    released: a folder of released results: a clone of a paper's repository, or a folder with one a paper
    folder: the tracking folder
    uri: an MLflow store to read instead of the folder
    experiment: MLflow's experiment, with uri
    out: a folder for claims.md, claims.json and claims.html
    example: ctxexp claims model=bert,gpt2,elmo
    """
    from ctxexp_papers.claims import court, report
    from ctxexp_papers.claims.writing import write

    names = [word.strip() for word in paper.split(",")] if paper else []
    chosen = court.papers(names)
    models = check_models([word.strip() for word in model.split(",")] if model else [])
    has_draws = bool(names or models or released or out)
    inputs = Inputs(finished_runs(folder, uri, experiment), check_released(released), models, has_draws)
    trials = [court.try_paper(one, inputs) for one in chosen]
    show("\n\n".join(map(report.text, trials)) if paper else report.table(trials, has_draws=has_draws))
    if out:
        for path in write(trials, out):
            print(f"written: {path}")


def check_models(texts: Sequence[str]) -> tuple[str, ...]:
    """The models as they were typed, arguments and all; raises UnknownName for one that isn't registered."""
    from ctxexp.command import registry, typed_model

    for text in texts:
        registry().find("model", typed_model(text)[0])
    return tuple(texts)


def finished_runs(folder: Path, uri: str | None, experiment: str) -> list[LinkedResults]:
    """Finished runs, the newest first; none without a tracking folder of the usual name. Raises DataError where one of
    another name isn't there."""
    from ctxexp_papers.claims.runs import in_mlflow, on_disk

    if uri:
        return list(in_mlflow(uri, experiment))
    if folder != FOLDER and not folder.is_dir():
        raise DataError(f"no folder {folder} (folder=): expected a tracking folder, as runs leave it (mlruns)")
    return list(on_disk(folder))
