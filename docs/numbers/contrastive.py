"""Sentence vectors by contrast beside flow and whitening: STS-B of the mini, of what objective=contrastive made of it,
and of untrained networks before and after the same."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from ctxexp_measures.calibration.league.standings import measure_of, paired_interval

import ctxexp
from ctxexp import Results
from docs.numbers.part import Part, markdown, one_run_each

DECIMALS = 3


def collected(mlruns: Path) -> pd.DataFrame:
    """A row a run: model, transform, Spearman x 100 in the last layer, and its gain over the plain mini's on the same
    resamples of pairs."""
    runs = [one for one in ctxexp.runs(mlruns).values() if measure_of(one, "sts")]
    named = [(_name(one), one.info.transform.name, one) for one in runs]
    (plain,) = [one for name, transform, one in named if (name, transform) == ("the mini", "none")]
    last = plain.n_layers - 1
    rows = []
    for name, transform, one in named:
        values = one.frame[(one.frame.measure == "sts") & (one.frame.statistic == "all") & (one.frame.layer == last)]
        row = values.iloc[0]
        (low, high), _ = paired_interval(one, plain, last)
        rows.append((name, transform, row.value, row.low, row.high, low, high))
    columns = ["model", "transform", "spearman", "low", "high", "gain_low", "gain_high"]
    return pd.DataFrame(rows, columns=columns).round(DECIMALS).sort_values(["model", "transform"])


def _name(results: Results) -> str:
    place = str(results.info.model.details.get("checkpoint", ""))
    if results.info.model.name == "bert":
        return "untrained" if results.info.model.weights.startswith("untrained") else "the mini"
    return "contrastive, from untrained weights" if "untrained" in place else "contrastive, from the mini"


def table(numbers: pd.DataFrame) -> str:
    """A row a model, a column a transform; the gain over the mini without any below each."""
    transforms = ["none", "whitening", "flow"]
    by = numbers.set_index(["model", "transform"])
    rows = []
    for model in ("the mini", "contrastive, from the mini", "untrained", "contrastive, from untrained weights"):
        cells = []
        for transform in transforms:
            if (model, transform) not in set(by.index):
                cells.append("")
                continue
            one = by.loc[(model, transform)]
            is_reference = (model, transform) == ("the mini", "none")
            gain = "" if is_reference else f"; {one.gain_low:+.1f} to {one.gain_high:+.1f}"
            cells.append(f"{one.spearman:.1f} [{one.low:.1f}, {one.high:.1f}]{gain}")
        if any(cells):
            rows.append([model, *cells])
    return markdown(["model", *transforms], rows) + one_run_each(row[0] for row in rows)


PART = Part(
    mark="contrastive",
    page="docs/how-to/does-isotropy-help-the-calibration-league.md",
    numbers="contrastive.csv",
    kept=collected,
    table=table,
)
