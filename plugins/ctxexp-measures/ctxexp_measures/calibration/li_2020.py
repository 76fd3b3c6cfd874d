"""BERT-flow's Tables 2 to 4 (Li et al. 2020) as printed: sentence similarity and QNLI, a sweep's own rows below."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp import Results
from ctxexp.report import LabelledResults, Table, unique_labels
from ctxexp.results import Key
from ctxexp_measures.calibration.league.standings import measure_of, one_line, tasks, value

if TYPE_CHECKING:
    import pandas as pd

PAPER_MIX = "flow_paper_last2"
STS_TASKS = ("STS-B", "SICK-R", "STS12", "STS13", "STS14", "STS15", "STS16")  # in the paper's order
ONLY_TASK = {"sts_b": "STS-B", "sick_r": "SICK-R", "qnli": "QNLI"}  # of a corpus of one
NOTES = (
    "published: Li et al. 2020 (BERT-flow), Tables 2 to 4, doi:10.18653/v1/2020.emnlp-main.733; its own models of "
    "Table 3 were not published, Sentence-BERT's two were trained on the same data",
    "sub-sets of STS12 to STS16: all = one correlation over all pairs (so the rows from Reimers 2019); wmean = "
    "correlations of the sub-sets weighted by their numbers of pairs (so the paper's own); the two don't compare",
    "fitted on: target = the measured sentences, all = those of all splits, as the paper's target is; one flow for all "
    "tasks of a run, the paper's one for each: sweep dataset.tasks=[STS-B],[SICK-R],... for that",
)


def published() -> pd.DataFrame:
    """The rows as printed: table, row, reported_by, aggregation, a column a task, note."""
    import pandas as pd

    return pd.read_csv(Path(__file__).with_suffix(".csv"), comment="#", keep_default_na=True)


def table_li_2020(runs: Sequence[LabelledResults]) -> Table | None:
    """Tables 2 and 3 with these runs' rows below, each of a run's last layer and mixes by both ways of putting sub-sets
    together; None unless a run measured `sts` on the mix that the paper averaged."""
    rows = list(_own(runs, "sts", ("all", "wmean")))
    return _table("Sentence similarity, Spearman × 100", (2, 3), STS_TASKS, rows)


def table_li_2020_qnli(runs: Sequence[LabelledResults]) -> Table | None:
    """Table 4 likewise; None unless a run measured `qnli` on that mix."""
    rows = list(_own(runs, "qnli", ("auc",)))
    return _table("Questions and answers without training, AUC × 100 (50 is chance)", (4,), ("QNLI",), rows)


def _own(runs: Sequence[LabelledResults], metric: str, kinds: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yields the rows that the runs make."""
    for label, results in unique_labels(runs):
        measure, mixes = measure_of(results, metric), results.info.pooling.mixes
        if measure is None or PAPER_MIX not in mixes:
            continue
        fit, name = results.info.transform.fit, results.info.with_weights(label)
        places: dict[str, int | str] = {"last layer": results.n_layers - 1, **{mix: mix for mix in mixes}}
        for place, at in places.items():
            for kind in kinds:
                scores = {
                    task or _only_task(results): value(results, Key(measure, kind, task), at)
                    for task in tasks(results, measure) or [""]
                }
                about = {"row": f"{name}, {place}", "fitted on": one_line(fit.text) if fit else ""}
                yield {"source": "ours", **about, "aggregation": kind, **scores}


def _only_task(results: Results) -> str:
    """The task of a corpus of one, in the paper's spelling."""
    corpus = results.info.corpus
    return ONLY_TASK.get(one_line(corpus.name), one_line(corpus.choices.get("tasks") or ""))


def _table(title: str, numbers: Sequence[int], names: Sequence[str], own: Sequence[dict[str, Any]]) -> Table | None:
    import pandas as pd

    if not own:
        return None
    printed = published()
    printed = printed[printed.table.isin(numbers)].assign(source="published")
    rows = pd.concat([printed, pd.DataFrame(own)], ignore_index=True)
    rows = rows.reindex(columns=["source", "row", "fitted on", "reported_by", "aggregation", *names, "note"])
    rows["mean"] = rows[list(names)].mean(axis=1, skipna=False)
    columns = ["source", "row", "fitted on", "aggregation", *names, "mean"]
    cells = [[_cell(cell) for cell in line] for line in rows[columns].itertuples(index=False)]
    doubts = [f"{row.row}: {row.note}" for row in printed.itertuples() if isinstance(row.note, str)]
    return Table(f"{title} (Li et al. 2020)", rows, columns, cells, [*NOTES, *doubts])


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.2f}"
    return str(value)
