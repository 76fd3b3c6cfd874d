"""The table of a sweep's report: what its runs say of the claims of papers that runs are evidence on."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ctxexp.report.sweep_tables import SweepTable
from ctxexp.report.wording import LabelledResults
from ctxexp.results import Results
from ctxexp_papers.claims import report
from ctxexp_papers.claims.court import try_paper
from ctxexp_papers.claims.source import Inputs
from ctxexp_papers.papers import ethayarajh_2019, gari_soler_2021

OF_RUNS = {
    "max_explainable_variance_released": ethayarajh_2019.paper,
    gari_soler_2021.METRIC: gari_soler_2021.paper,
}
"""Papers by a measure that is only taken for them."""
COLUMNS = ["claim", "outcome", "by model", "what it says", "paper", "is it a verdict"]
"""The first names a row in each block of columns on a terminal: claims of `OF_RUNS` have different ids."""
MOST_OPEN = "open tests are left out: `ctxexp claims` has them"


def table(runs: Sequence[LabelledResults]) -> SweepTable | None:
    """Table with one row for each claim that these runs decide, on the paper's protocol or beside it; None of runs that
    weren't made for a paper's claims (`metric=ethayarajh_2019`, `metric=self_similarity_by_senses`)."""
    inputs = Inputs(runs=[(run, "") for _, run in runs], has_draws=False)
    chosen = [paper for measure, paper in OF_RUNS.items() if any(_has(run, measure) for _, run in runs)]
    rows, cells = [], []
    for trial in (try_paper(paper(), inputs) for paper in chosen):
        for verdict in trial.verdicts:
            finding = verdict.finding or next((f for f in verdict.beside if f.source.kind == "other"), None)
            if finding is None or finding.outcome not in ("pass", "fail", "only"):
                continue
            kind = "verdict" if verdict.finding else report.HERE
            claim = verdict.claim
            row = [claim.id, finding.words, report.says(trial.paper, finding), claim.statement, trial.paper.name]
            cells.append([*row, kind])
            rows.append(dict(zip(COLUMNS, cells[-1], strict=True)))
    if not cells:
        return None
    return SweepTable(
        "What the runs say of papers' claims", pd.DataFrame(rows), COLUMNS, cells, [MOST_OPEN, report.TONE]
    )


def _has(run: Results, measure: str) -> bool:
    return measure in run.tables or any(key.measure == measure for key in run.by_key)
