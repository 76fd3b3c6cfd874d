"""Published tables of the BERT-flow paper (Li et al. 2020): sentence similarity without and with NLI, and QNLI."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ctxexp.errors import UnknownName

SOURCE = "Li et al. 2020 (BERT-flow), Table 2, doi:10.18653/v1/2020.emnlp-main.733"
"""For a legend or caption."""

TASKS = ("STS-B", "SICK-R", "STS12", "STS13", "STS14", "STS15", "STS16")
"""The columns, in the paper's order."""

NLI_SOURCE = "Li et al. 2020 (BERT-flow), Table 3, doi:10.18653/v1/2020.emnlp-main.733"
QNLI_SOURCE = "Li et al. 2020 (BERT-flow), Table 4, doi:10.18653/v1/2020.emnlp-main.733"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class PublishedRow:
    """One row as printed: Spearman x 100 by task, and how the sub-sets of STS12-16 were put together."""

    name: str
    model: str  # bert-base, bert-large (uncased), glove; of Table 3 bert-base-nli ...
    method: str  # avg, cls, last2avg (the first block and the last, as released), flow-nli, flow-target
    reported_by: str  # whose figures: three rows are copied from Sentence-BERT
    aggregation: str  # all or wmean; the two don't compare
    scores: dict[str, float]
    note: str  # what is doubtful about it, else empty

    @property
    def mean(self) -> float:
        """The unweighted mean over the seven tasks."""
        return sum(self.scores.values()) / len(self.scores)


def table(name: Literal["published", "published_nli"] = "published") -> tuple[PublishedRow, ...]:
    """The rows of Table 2, or of Table 3 (`published_nli`), in the paper's order."""
    rows = _rows(name)
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


def qnli_table() -> tuple[tuple[str, str, str, float], ...]:
    """Table 4: name, model, method and area under the ROC curve x 100 of each row, in the paper's order."""
    return tuple((row["row"], row["model"], row["method"], float(row["auc"])) for row in _rows("published_qnli"))


def _rows(name: str) -> list[dict[str, str]]:
    with (_FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def find(name: str) -> PublishedRow:
    """The row of that name; raises UnknownName."""
    rows = {row.name: row for row in table()}
    if name not in rows:
        raise UnknownName("row of BERT-flow's Table 2", name, rows)
    return rows[name]
