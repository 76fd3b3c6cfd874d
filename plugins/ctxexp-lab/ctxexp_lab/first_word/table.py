"""The table of a sweep over the first position: each condition where the curve as tokenized is moved most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxexp.report import LabelledResults, Table
from ctxexp_lab.first_word.effects import AS_TOKENIZED, effects, frame
from ctxexp_lab.first_word.words import NOTE, interval, largest, near_zero, number, of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = [
    "measure", "model", "condition", "layer", "value", "difference [95%]", "layers within .05 of 0",
    "length-matched", "length-matched within .05 of 0",
]  # fmt: skip


def table(runs: Sequence[LabelledResults]) -> Table | None:
    """One row for each measure, model and condition, in the layer where that model moves most; None without two
    conditions."""
    all_effects = effects(runs)
    if not all_effects:
        return None
    numbers = frame(all_effects)
    cells = [
        _row(rows, layer)
        for _, own in numbers.groupby(["measure", "model"], sort=False)
        for layer in [int(largest(own).layer)]
        for _, rows in own.groupby("condition", sort=False)
    ]
    notes = dict.fromkeys(
        f"{effect.metric}: {effect.results.info.definition(effect.key.measure)}" for effect in all_effects
    )
    return Table("What stands first, and what is measured of words", numbers, COLUMNS, cells, [NOTE, *notes])


def _row(rows: pd.DataFrame, layer: int) -> list[str]:
    """One condition at a layer, and of words the layers that lie near 0 against either chance level."""
    row = rows[rows.layer == layer].iloc[0]
    metric = str(row.measure)
    is_words = metric != "sts"
    return [
        *(of(row), row.model, row.condition, str(layer), number(row.value, metric)),
        "" if row.condition == AS_TOKENIZED else interval(row),
        share(rows.value) if is_words else "",
        number(row.matched, metric) if is_words and row.matched == row.matched else "",
        share(rows.matched) if is_words and rows.matched.notna().any() else "",
    ]


def share(values: pd.Series) -> str:
    """`15 of 31`: the layers within what matters of 0."""
    near, n = near_zero(values)
    return f"{near} of {n}"
