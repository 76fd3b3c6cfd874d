"""The measures by class of word in the last layer, as a table of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ctxexp.papers.sweep_tables import Cells, SweepTable
from ctxexp.report.wording import Run
from ctxexp_senses.by_class.figure import FEW, MEASURES, TITLES, Class, classes_of, measured


def table(runs: Sequence[Run]) -> SweepTable | None:
    """A row a measure, model and class: words, occurrences, and the last layer's value; None without any."""
    import pandas as pd

    numbers = pd.DataFrame(rows_of(runs))
    if numbers.empty:
        return None
    columns = ["model", "corpus", "measure", "class", "words", "occurrences", "layer", "value [95%]"]
    last = numbers[numbers.layer == numbers.groupby(["model", "corpus", "measure"]).layer.transform("max")]
    shown = [
        [r.model, r.corpus, r.measure, f"{r.kind} {r.name}", f"{r.words:,}", f"{r.occurrences:,}", str(r.layer),
         _told(r.value, r.low, r.high)]
        for r in last.rename(columns={"class": "name"}).itertuples(index=False)
    ]  # fmt: skip
    drawn = {f"{of.name}: {of.facts}": None for of in MEASURES if of.name in set(numbers.measure)}
    return SweepTable("By class of word, in the last layer", numbers, columns, shown, [*drawn, FEW])


def _told(value: float, low: float, high: float) -> str:
    """The value with its interval, where there are resamples."""
    if np.isnan(value):
        return "left out"
    return f"{value:.3f}" if np.isnan(low) else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def rows_of(runs: Sequence[Run]) -> Iterator[Cells]:
    """A row a measure, run, class and layer."""
    for of in MEASURES:
        for label, measure, results in measured(runs, of):
            of_kind = classes_of(results, measure, of.statistic)
            for kind, name, one in ((k, n, c) for k in TITLES for n, c in of_kind.get(k, {}).items()):
                about: Cells = {"model": label, "corpus": results.info.corpus.name, "measure": of.name, "kind": kind}
                about |= {"class": name, "words": one.words, "occurrences": one.occurrences}
                for layer in range(results.n_layers):
                    yield {**about, "layer": layer, **_ends(one, layer)}


def _ends(one: Class, layer: int) -> Cells:
    if one.curve is None:
        return {"value": np.nan, "low": np.nan, "high": np.nan}
    return {name: float(getattr(one.curve, name)[layer]) for name in ("value", "low", "high")}
