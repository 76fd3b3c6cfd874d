"""What runs found of usages: Word in Context and semantic change, as numbers and tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from ctxexp_measures.senses.components.figure import DECIMALS

import ctxexp
from docs.numbers.part import Part, markdown, one_run_each

KEPT = {
    "wic": ("accuracy", "form", "position"),
    "semantic_change": ("apd_spearman", "prt_spearman", "jsd_spearman", "apd_adjusted_spearman", "apd_changed"),
}
PAIRS = ["Word in Context", "best layer of the dev pairs", "its dev pairs", "its test pairs", "last layer", "layer 0",
         "spelling alone", "place alone"]  # fmt: skip
PERIODS = ["semantic change", "NorDiaChange's", "last layer", "correlation by APD", "by PRT", "by JSD",
           "APD beyond 95% of permuted periods"]  # fmt: skip


def collected(mlruns: Path) -> pd.DataFrame:
    """The values that are spoken of: a row a measure, model, corpus, task, statistic and layer."""
    parts = []
    for results in reversed(ctxexp.runs(mlruns).values()):  # the oldest first
        for measure, about in results.info.measures.items():
            if about.name in KEPT:
                rows = results.frame[results.frame.measure == measure]
                rows = rows[rows.statistic.isin(KEPT[about.name])]
                rows = rows[["task", "statistic", "layer", "value", "low", "high"]].round(DECIMALS)
                rows.insert(0, "corpus", results.info.corpus.name)
                rows.insert(0, "model", results.info.model.name)
                rows.insert(0, "dtype", results.info.model.dtype)
                parts.append(rows.assign(measure=about.name))
    return pd.concat(parts, ignore_index=True)


def table(numbers: pd.DataFrame) -> str:
    """Two Markdown tables, a row a run: Word in Context, then semantic change."""
    wic, change = (numbers[numbers.measure == name] for name in KEPT)
    pairs = [_of_pairs(str(m), str(t), rows) for (m, t), rows in wic.groupby(["model", "dtype"], sort=False)]
    periods = [_of_periods(str(m), str(c), rows) for (m, c), rows in change.groupby(["model", "corpus"], sort=False)]
    tables = [markdown(head, rows) for head, rows in ((PAIRS, pairs), (PERIODS, periods)) if rows]
    return "\n\n".join(tables) + one_run_each(numbers.model)


def _of_pairs(model: str, dtype: str, rows: pd.DataFrame) -> list[str]:
    values = rows.set_index(["task", "statistic", "layer"]).sort_index()
    dev = values.loc[("dev", "accuracy")].value
    best, last = int(dev.idxmax()), int(dev.index.max())
    cells = [_percent(values.loc[(task, "accuracy", i)]) for task, i in (("dev", best), ("test", best))]
    cells += [_percent(values.loc[("test", "accuracy", i)]) for i in (last, 0)]
    alone = [f"{values.loc[('test', name, 0)].value:.1%}" for name in ("form", "position")]
    return [f"`{model}`{'' if dtype == 'float32' else f', {dtype}'}", str(best), *cells, *alone]


def _of_periods(model: str, corpus: str, rows: pd.DataFrame) -> list[str]:
    last = rows[rows.layer == rows.layer.max()].set_index("statistic")
    correlations = [_plain(last.loc[f"{name}_spearman"]) for name in ("apd", "prt", "jsd")]
    return [f"`{model}`", corpus, str(rows.layer.max()), *correlations, f"{last.loc['apd_changed'].value:.0%}"]


def _percent(row: pd.Series) -> str:
    return f"{100 * row.value:.1f}% [{100 * row.low:.1f}, {100 * row.high:.1f}]"


def _plain(row: pd.Series) -> str:
    return f"{row.value:.2f} [{row.low:.2f}, {row.high:.2f}]"


PART = Part(
    mark="usages",
    page="docs/measures/usages.md",
    numbers="usages.csv",
    kept=collected,
    table=table,
)
