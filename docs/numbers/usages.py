"""What runs found of usages: Word in Context and semantic change, as numbers and in words."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from ctxexp_senses.components.figure import DECIMALS

import ctxexp
from docs.numbers.part import Part, one_run_each

PUBLISHED = (  # Pilehvar and Camacho-Collados 2019: ELMo, Context2vec and BERT-large on the test pairs
    "Published of contextual vectors on the test pairs: 57.7% (ELMo), 59.3% (Context2vec) and 65.5% (BERT-large; "
    "Pilehvar and Camacho-Collados 2019)."
)
KEPT = {
    "wic": ("accuracy", "form", "position"),
    "semantic_change": ("apd_spearman", "prt_spearman", "jsd_spearman", "apd_adjusted_spearman", "apd_changed"),
}


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


def paragraph(numbers: pd.DataFrame) -> str:
    """What is found, an item a run: Word in Context, then semantic change."""
    wic, change = (numbers[numbers.measure == name] for name in KEPT)
    items = [_of_pairs(str(m), str(t), rows) for (m, t), rows in wic.groupby(["model", "dtype"], sort=False)]
    items[-1:] = [f"{item} {PUBLISHED}" for item in items[-1:]]
    items += [_of_periods(str(m), str(c), rows) for (m, c), rows in change.groupby(["model", "corpus"], sort=False)]
    return "\n".join(items) + one_run_each(numbers.model)


def _of_pairs(model: str, dtype: str, rows: pd.DataFrame) -> str:
    said = rows.set_index(["task", "statistic", "layer"]).sort_index()
    dev = said.loc[("dev", "accuracy")].value
    best, last = int(dev.idxmax()), int(dev.index.max())
    right = {(part, i): _percent(said.loc[(part, "accuracy", i)]) for part in ("dev", "test") for i in (0, best, last)}
    form, place = (said.loc[("test", name, 0)].value for name in ("form", "position"))
    return (
        f"- `{model}`{'' if dtype == 'float32' else f', {dtype}'}, Word in Context: {right['test', best]} of the test "
        f"pairs in layer {best}, the best of the dev pairs ({right['dev', best]}), {right['test', last]} in the last "
        f"layer ({last}) and {right['test', 0]} in layer 0; spelling alone has {form:.1%}, place alone {place:.1%}."
    )


def _of_periods(model: str, corpus: str, rows: pd.DataFrame) -> str:
    last = rows[rows.layer == rows.layer.max()].set_index("statistic")
    apd, prt, jsd = (_plain(last.loc[f"{name}_spearman"]) for name in ("apd", "prt", "jsd"))
    return (
        f"- `{model}`, semantic change on NorDiaChange's {corpus}, last layer ({rows.layer.max()}): Spearman's "
        f"correlation with graded change is {apd} by APD, {prt} by PRT and {jsd} by JSD; "
        f"{last.loc['apd_changed'].value:.0%} of the words have a larger APD than 95% of permuted periods, "
        "where chance alone gives 5%."
    )


def _percent(row: pd.Series) -> str:
    return f"{100 * row.value:.1f}% [{100 * row.low:.1f}, {100 * row.high:.1f}]"


def _plain(row: pd.Series) -> str:
    return f"{row.value:.2f} [{row.low:.2f}, {row.high:.2f}]"


PART = Part(
    mark="usages",
    page="docs/measures/usages.md",
    numbers="usages.csv",
    kept=collected,
    paragraph=paragraph,
)
