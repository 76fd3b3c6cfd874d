"""The calibration league as a table: transforms ranked by Spearman, with what they did to the space."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ctxexp.report import LabelledResults, Table
from ctxexp_measures.calibration.league.standings import GEOMETRY, NONE, Standing, measure_of, standings

TITLE = "Does isotropy help? Transforms by their mean Spearman × 100 (all pairs of a task), model by model"


def table_league(runs: Sequence[LabelledResults]) -> Table | None:
    """The table, best first in each model and place; None unless runs hold `sts` and `sentence_geometry` for several
    transforms of a model."""
    import pandas as pd

    rows = standings(runs)
    if not rows:
        return None
    tasks = list(dict.fromkeys(task for row in rows for task in row.scores))
    columns: dict[str, list[object]] = {
        "model": [row.model for row in rows],
        "vectors": [row.place.name for row in rows],
        "layer": [row.place.at for row in rows],
        "rank": [row.rank for row in rows],
        "transform": [row.transform for row in rows],
        "runs": [len(row.runs) for row in rows],
        "fitted": [_fitted(row) for row in rows],
        **{key: [row.geometry[key] for row in rows] for key in GEOMETRY},
        **{task: [row.scores.get(task, math.nan) for row in rows] for task in tasks},
        "average": [row.score for row in rows],
        "gain": [row.gain for row in rows],
        "gain_ci_low": [row.low for row in rows],
        "gain_ci_high": [row.high for row in rows],
        "interval_over": [row.interval for row in rows],
        "mean_cosine_drop": [row.less_cosine for row in rows],
        "isoscore_gain": [row.more_isoscore for row in rows],
    }
    several = len(tasks) > 1
    head = ["model", "vectors", "#", "transform", "cosine", "IsoScore", *tasks]
    head += [*(["average"] if several else []), "gain over none [95%]", "over"]
    lines = []
    for row in rows:
        cells = [row.model, str(row.place), str(row.rank), row.transform + " †" * bool(row.transductive)]
        cells += [_number(row.geometry["mean_cosine"], 3), _number(row.geometry["isoscore"], 3)]
        cells += [_number(row.scores.get(task, math.nan), 2) for task in tasks]
        cells += [_number(row.score, 2)] if several else []
        gain = "" if row.transform == NONE else f"{row.gain:+.2f}" if math.isfinite(row.gain) else "–"
        has_interval = math.isfinite(row.low)
        over = "pairs" if row.over == "pairs" else row.interval
        lines.append([*cells, gain + f" [{row.low:+.2f}, {row.high:+.2f}]" * has_interval, over * has_interval])
    return Table(TITLE, pd.DataFrame(columns), head, lines, _notes(runs, rows))


def _notes(runs: Sequence[LabelledResults], rows: Sequence[Standing]) -> list[str]:
    notes = []
    for metric in ("sts", "sentence_geometry"):
        definitions = {label: r.info.definition(label) for _, r in runs if (label := measure_of(r, metric))}
        notes += [f"{label}: {definition}" for label, definition in definitions.items()]
    if any(row.place.best for row in rows):
        notes.append(
            "the best layer was chosen without any transform, by the score that is shown: this favours the row none"
        )
    if any(row.over == "pairs" for row in rows):
        notes.append(
            "interval over pairs: paired bootstrap, the same resampled pairs for the transform and for none, drawn "
            "within each sub-set; what another text would give is not covered"
        )
    if any(row.over == "seeds" for row in rows):
        notes.append(
            "interval over seeds: Student's t of the mean gain, for chance in the fit alone (the pairs are the same); "
            "numbers of such a row are means over its runs"
        )
    if any(row.transductive for row in rows):
        notes.append("†: transductive, fitted on the measured sentences themselves (never on their scores)")
    pooled = dict.fromkeys(str(run.info.pooling.name) for row in rows for run in row.runs if run.info.pooling.name)
    return [*notes, f"sentence vectors: {', '.join(pooled)}"] if pooled else notes


def _fitted(row: Standing) -> str:
    return {None: "", True: "measured text", False: "other text"}[row.transductive]


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "–"
