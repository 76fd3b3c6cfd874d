"""Table 4 of BERT-flow (Li et al. 2020), questions and answers without training: published figures and ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ctxexp import Results
from ctxexp.report import LabelledResults, Table
from ctxexp.results import LAYER
from ctxexp_measures.calibration.league.standings import measure_of
from ctxexp_measures.calibration.li_2020 import published as li_2020
from ctxexp_measures.calibration.li_2020.table import METHODS, NLI_MODELS, checkpoint_of, methods, plain_name

TITLE = "Questions and answers without training (Li et al. 2020, Table 4), AUC × 100 on QNLI"


def table_li_2020_qnli(runs: Sequence[LabelledResults]) -> Table | None:
    """The paper's table with these runs' rows below; None unless a run measured `qnli` by one of its methods."""
    import pandas as pd

    ours = [row for _, results in runs for row in _rows(results)]
    if not ours:
        return None
    rows: list[dict[str, Any]] = []
    for name, model, method, auc in li_2020.qnli_table():
        rows.append({"source": "published", "row": name, "model": model, "method": method, "auc": auc})
        mine = [row for row in ours if (row["checkpoint"], row["method"]) == (model, method)]
        missing = {"source": "ours", "row": f"{model}, {METHODS[method]}: not run", "model": model, "method": method}
        rows += mine or [missing | {"note": f"no run with the weights of {NLI_MODELS[model]}"}]
    rows += [row for row in ours if row not in rows]
    columns = ["source", "row", "model", "method", "pairs", "auc", "low", "high", "note"]
    numbers = pd.DataFrame(rows).reindex(columns=columns)
    lines = [[str(row["source"]), str(row["row"]), _number(row, "pairs", 0), _interval(row)] for row in rows]
    notes = [
        f"published: {li_2020.QNLI_SOURCE}: the dev set, 5,463 pairs, without intervals; 50 is chance",
        "the paper's own weights were not published: ours of the same name are Sentence-BERT's, trained likewise",
    ]
    return Table(TITLE, numbers, ["source", "row", "pairs", "AUC × 100 [95%]"], lines, notes)


def _rows(results: Results) -> Iterator[dict[str, Any]]:
    """The paper's methods that a run measured, each with its area and interval."""
    label = measure_of(results, "qnli")
    if label is None:
        return
    model, checkpoint = plain_name(results), checkpoint_of(results)
    for method, at in methods(results):
        place = at if isinstance(at, str) else LAYER
        values = {
            key.statistic: one for key, one in results.by_key.items() if (key.measure, key.place) == (label, place)
        }
        i = 0 if isinstance(at, str) else at
        yield {
            "source": "ours", "row": f"{model}, {METHODS[method]}", "model": model, "checkpoint": checkpoint,
            "method": method, "pairs": float(values["n"].value[i]), "auc": float(values["auc"].value[i]),
            "low": float(values["auc"].low[i]), "high": float(values["auc"].high[i]), "note": "",
        }  # fmt: skip


def _number(row: dict[str, Any], key: str, digits: int) -> str:
    value = float(row.get(key, math.nan))
    return "" if math.isnan(value) else f"{value:,.{digits}f}"


def _interval(row: dict[str, Any]) -> str:
    if math.isnan(float(row.get("auc", math.nan))):
        return ""
    low, high = (_number(row, key, 2) for key in ("low", "high"))
    return f"{row['auc']:.2f}" + f" [{low}, {high}]" * bool(low)
