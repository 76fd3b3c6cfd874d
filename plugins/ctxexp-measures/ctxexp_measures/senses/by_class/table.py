"""The measures by class of word in the last layer, as a table of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ctxexp.report import LabelledResults, Table
from ctxexp_measures.senses.by_class.figure import FEW_WORDS_NOTE, MEASURES, TITLES, WordClass, classes_of, runs_with


def table(runs: Sequence[LabelledResults]) -> Table | None:
    """Table with a row for each measure, model and class: words, occurrences, the last layer's value; None if no run
    has classes."""
    import pandas as pd

    numbers = pd.DataFrame(rows_of(runs))
    if numbers.empty:
        return None
    columns = ["model", "corpus", "measure", "class", "words", "occurrences", "filled", "layer", "value [95%]"]
    last = numbers[numbers.layer == numbers.groupby(["model", "corpus", "measure"]).layer.transform("max")]
    lines = [
        [r.model, r.corpus, r.measure, f"{r.kind} {r.name}", f"{r.words:,}", f"{r.occurrences:,}", r.filled,
         str(r.layer), _format_value(r.value, r.low, r.high)]
        for r in last.rename(columns={"class": "name"}).itertuples(index=False)
    ]  # fmt: skip
    facts = {f"{spec.name}: {spec.facts}": None for spec in MEASURES if spec.name in set(numbers.measure)}
    return Table("By class of word, in the last layer", numbers, columns, lines, [*facts, FEW_WORDS_NOTE])


def _format_value(value: float, low: float, high: float) -> str:
    """The value with its interval, where there are resamples."""
    if np.isnan(value):
        return "left out"
    return f"{value:.3f}" if np.isnan(low) else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def rows_of(runs: Sequence[LabelledResults]) -> Iterator[dict[str, Any]]:
    """Yields a row for each measure, run, class and layer."""
    for spec in MEASURES:
        for label, measure, results in runs_with(runs, spec):
            by_kind = classes_of(results, measure, spec.statistic)
            for kind, name, one in ((k, n, c) for k in TITLES for n, c in by_kind.get(k, {}).items()):
                about: dict[str, Any] = {
                    "model": label,
                    "corpus": results.info.corpus.name,
                    "measure": spec.name,
                    "kind": kind,
                }
                about |= {"class": name, "words": one.words, "occurrences": one.occurrences, "filled": one.mark}
                for layer in range(results.n_layers):
                    yield {**about, "layer": layer, **_value_and_interval(one, layer)}


def _value_and_interval(one: WordClass, layer: int) -> dict[str, Any]:
    if one.curve is None:
        return {"value": np.nan, "low": np.nan, "high": np.nan}
    return {name: float(getattr(one.curve, name)[layer]) for name in ("value", "low", "high")}
