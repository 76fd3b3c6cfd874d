"""Table of the measures by class of word, in the last layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ctxexp import Results
from ctxexp.report import LabelledResults, Table
from ctxexp.results import Key
from ctxexp_measures.senses.by_class.metric import LEAST
from ctxexp_measures.senses.components.figure import models

STATISTICS = {
    "self_similarity_by_class": "raw", "sense_separation_by_class": "raw", "variance_components_by_class": "context",
}  # fmt: skip
"""The metrics, and the statistic that the table has of each."""


def table(runs: Sequence[LabelledResults]) -> Table | None:
    """Table with a row for each measure, model and class: words, occurrences, the last layer's value; None if no run
    has classes. The CSV has every layer."""
    import pandas as pd

    numbers = pd.DataFrame(_rows(runs))
    if numbers.empty:
        return None
    columns = ["model", "corpus", "measure", "class", "words", "occurrences", "filled", "layer", "value [95%]"]
    last = numbers[numbers.layer == numbers.groupby(["model", "corpus", "measure"]).layer.transform("max")]
    lines = [
        [r.model, r.corpus, r.measure, r.name, f"{r.words:,}", f"{r.occurrences:,}", r.filled, str(r.layer),
         _format_value(r.value, r.low, r.high)]
        for r in last.rename(columns={"class": "name"}).itertuples(index=False)
    ]  # fmt: skip
    notes = [f"classes of fewer than {LEAST} words are left out"]
    return Table("By class of word, in the last layer", numbers, columns, lines, notes)


def _rows(runs: Sequence[LabelledResults]) -> Iterator[dict[str, Any]]:
    """Yields a row for each measure, run, class and layer; `filled` says how many bands of frequency the class fills
    where it doesn't fill all of them."""
    for name, statistic in STATISTICS.items():
        for label, results in models(runs, name):
            for measure in (m for m, about in results.info.measures.items() if about.name == name):
                for task in sorted(_classes(results, measure), key=_order):
                    curve = results.by_key.get(Key(measure, statistic, task))
                    sizes = {
                        size: int(np.nanmax(results.by_key[Key(measure, size, task)].value))
                        for size in ("words", "occurrences")
                    }
                    about: dict[str, Any] = {
                        "model": label,
                        "corpus": results.info.corpus.name,
                        "measure": name,
                        "class": task,
                    }
                    about |= {**sizes, "filled": _filled(results, Key(measure, "bands", task))}
                    for layer in range(results.n_layers):
                        ends = [float("nan")] * 3 if curve is None else [float(part[layer]) for part in curve]
                        yield {**about, "layer": layer, **dict(zip(("value", "low", "high"), ends, strict=True))}


def _classes(results: Results, measure: str) -> list[str]:
    """The classes of a measure, as `pos NOUN`."""
    return [key.task for key in results.by_key if key.measure == measure and key.statistic == "words"]


def _order(task: str) -> tuple[str, int, str]:
    """Kinds by name; in each classes of numbers by their first, the others by name."""
    kind, _, name = task.partition(" ")
    first = name.rstrip("+").split("-")[0]
    return kind, int(first) if first.isdigit() else -1, name


def _filled(results: Results, bands: Key) -> str:
    every = len(results.info.mix.filled)
    filled = int(np.nanmax(results.by_key[bands].value)) if bands in results.by_key else every
    return f"{filled} of {every} bands" if filled < every else ""


def _format_value(value: float, low: float, high: float) -> str:
    """The value with its interval, where there are resamples."""
    if np.isnan(value):
        return "left out"
    return f"{value:.3f}" if np.isnan(low) else f"{value:.3f} [{low:.3f}, {high:.3f}]"
