"""The table of a sweep with and without first words: where each curve moves most."""

from __future__ import annotations

from collections.abc import Sequence

from ctxexp.papers.sweep_tables import SweepTable
from ctxexp.report.wording import Run, define
from ctxexp_first_word.effects import effects, frame
from ctxexp_first_word.words import NOTE, interval, largest, number, of


def table(runs: Sequence[Run]) -> SweepTable | None:
    """Each model's curve of each measure where it moves most; None without a run of both kinds."""
    found = effects(runs)
    if not found:
        return None
    numbers = frame(found)
    shown = []
    for _, rows in numbers.groupby(["measure", "model"], sort=False):
        row = largest(rows)
        values = [number(row[column], row.measure) for column in ("with_first", "without_first")]
        shown.append([of(row), row.model, str(row.layer), *values, interval(row)])
    notes = dict.fromkeys(f"{effect.metric}: {define(effect.key.measure, effect.whole)}" for effect in found)
    columns = ["measure", "model", "layer", "with first words", "without", "difference [95%]"]
    return SweepTable("With and without the first word of each sentence", numbers, columns, shown, [NOTE, *notes])
