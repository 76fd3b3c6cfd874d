"""`ctxexp claims`: papers' claims as tests, over finished runs, released results and models."""

from __future__ import annotations

from pathlib import Path

import ctxexp
from ctxexp.command import registry, typed_model
from ctxexp.errors import DataError
from ctxexp.report import Document

FOLDER = Path("mlruns")


def claims(
    *,
    paper: str | None = None,
    model: str | None = None,
    released: Path | None = None,
    folder: Path = FOLDER,
    out: Path | None = None,
) -> Document:
    """Test papers' claims, on models or finished runs.

    A row a paper with counts of verdicts, or, with paper=, every verdict with its tests.

    A verdict comes from a paper's own protocol or its authors' released results; one on offered models, of which the
    paper speaks in general, is told and counted apart; other runs go through the same tests and are reported as such.

    paper: names of papers, several with commas, or a file of your own (mine_2026.toml); null: a row for each
    model: models to test the claims on, several with commas; null: those of the finished runs
    released: a folder of released results: a clone of a paper's repository, or a folder with one a paper
    folder: the tracking folder
    out: a folder for verdicts, tests and what follows from definitions, as CSV and Markdown
    example: ctxexp claims model=bert,gpt2,elmo
    """
    from ctxexp_papers.claims import report
    from ctxexp_papers.claims.evidence import Inputs
    from ctxexp_papers.claims.paper import papers
    from ctxexp_papers.claims.verdict import try_paper

    names, models = ([word.strip() for word in text.split(",")] if text else [] for text in (paper, model))
    for text in models:
        registry().find("model", typed_model(text)[0])
    chosen = papers(names)
    inputs = Inputs(_finished(folder), released, tuple(models))
    trials = [try_paper(one, inputs) for one in chosen]
    return report.report(trials) if names or models or released or out else report.overview(trials)


def _finished(folder: Path) -> dict[str, ctxexp.Results]:
    """Finished runs by label, the newest first; none without a tracking folder of the usual name. Raises DataError for
    one of another name that isn't there."""
    if folder != FOLDER and not folder.is_dir():
        raise DataError(f"no folder {folder} (folder=): expected a tracking folder, as runs leave it (mlruns)")
    try:
        return ctxexp.runs(folder)
    except ctxexp.CtxexpError:  # none is finished
        return {}
