"""Published sentence similarity without supervision: Table 2 of the BERT-flow paper (Li et al. 2020)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from ctxexp.errors import UnknownName

SOURCE = "Li et al. 2020 (BERT-flow), Table 2, doi:10.18653/v1/2020.emnlp-main.733"
"""For a legend or caption."""

TASKS = ("STS-B", "SICK-R", "STS12", "STS13", "STS14", "STS15", "STS16")
"""The columns, in the paper's order."""

_FILE = Path(__file__).with_suffix(".csv")


@dataclass(frozen=True)
class PublishedRow:
    """One row as printed: Spearman x 100 by task, and how the sub-sets of STS12-16 were put together."""

    name: str
    model: str  # bert-base, bert-large (uncased), glove
    method: str  # avg, cls, last2avg (the first block and the last, as released), flow-nli, flow-target
    reported_by: str  # whose figures: three rows are copied from Sentence-BERT
    aggregation: str  # all or wmean; the two don't compare
    scores: dict[str, float]
    note: str  # what is doubtful about it, else empty

    @property
    def mean(self) -> float:
        """The unweighted mean over the seven tasks."""
        return sum(self.scores.values()) / len(self.scores)


def table() -> tuple[PublishedRow, ...]:
    """The table's rows, in the paper's order."""
    with _FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return tuple(
        PublishedRow(
            name=row["row"],
            model=row["model"],
            method=row["method"],
            reported_by=row["reported_by"],
            aggregation=row["aggregation"],
            scores={task: float(row[task]) for task in TASKS},
            note=row["note"],
        )
        for row in rows
    )


def find(name: str) -> PublishedRow:
    """The row of that name; raises UnknownName."""
    rows = {row.name: row for row in table()}
    if name not in rows:
        raise UnknownName("row of BERT-flow's Table 2", name, rows)
    return rows[name]
