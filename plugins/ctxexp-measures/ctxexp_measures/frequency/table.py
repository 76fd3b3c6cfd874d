"""Tables of a sweep: frequency geometry by rank bin, and degeneration, of last layers and embedding tables."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ctxexp import Results
from ctxexp.report import LabelledResults, Table, unique_labels
from ctxexp.results import LAYER

if TYPE_CHECKING:
    import pandas as pd

_BIN = re.compile(r"n_(\d+_\d+|q\d+)")
_STATISTICS = ("n", "first", "last", "norm", "l2_3nn", "dot_3nn", "cosine_3nn")
_DEGENERATION = (
    "mean_cosine", "effective_rank", "energy_1", "energy_2", "cone_aperture", "cone_narrowest", "negative_direction",
    "margin", "chance", "tested",
)  # fmt: skip


def table_frequency(runs: Sequence[LabelledResults]) -> Table | None:
    """Norms and the 3 nearest neighbours by rank bin, of each run's layers and embedding tables; None without any. As
    text the last layers and the tables only."""
    import pandas as pd

    rows, notes = [], []
    for label, results, measure in _measures_named(runs, "frequency_geometry"):
        notes.append(f"{measure}: {results.info.definition(measure)}")
        for vectors, frame in spaces(results, measure):
            values = frame["value"]
            for name in (match[1] for match in map(_BIN.fullmatch, values.index) if match):
                about = {"model": label, "vectors": vectors, "bin": name.replace("_", "-")}
                rows.append(about | {key: values.get(f"{key}_{name}", math.nan) for key in _STATISTICS})
    if not rows:
        return None
    lines = [
        [str(value) if isinstance(value, str) else _cell(float(value)) for value in row.values()]
        for row in rows
        if not str(row["vectors"]).startswith("layer ")
    ]
    notes += [
        "bin: ranks from the first up to the last, most frequent first, or a part of equal size; n: words or pieces"
    ]
    title = "Norms and neighbours by frequency rank (after Li et al. 2020, Table 1)"
    return Table(title, pd.DataFrame(rows), list(rows[0]), lines, list(dict.fromkeys(notes)))


def table_degeneration(runs: Sequence[LabelledResults]) -> Table | None:
    """Cone, spectrum and uniformly negative direction of each run's layers and embedding tables; None without any."""
    import pandas as pd

    rows = [
        {"model": label, "vectors": vectors, **values["value"].reindex(_DEGENERATION)}
        for label, results, measure in _measures_named(runs, "degeneration")
        for vectors, values in spaces(results, measure)
    ]
    if not rows:
        return None
    columns = ["model", "vectors", *_DEGENERATION]
    lines = [
        [str(row["model"]), str(row["vectors"]), *(_cell(float(str(row[name]))) for name in _DEGENERATION)]
        for row in rows
    ]
    notes = [
        "negative_direction: 1 if a vector has a negative product with every tested row, else 0; "
        "chance: its probability for so many random rows; cone_aperture, cone_narrowest: half-angles in degrees"
    ]
    numbers = pd.DataFrame(rows, columns=columns)
    return Table("Degeneration of layers and embedding tables", numbers, columns, lines, notes)


def spaces(results: Results, measure: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yields each layer and embedding table: its name (`layer 0` ... `last layer (4)`, `input table`), and its values
    by statistic (columns value, low, high)."""
    frame = results.frame[results.frame["measure"] == measure].set_index("statistic")
    by_layer = frame["place"] == LAYER
    for layer, group in frame[by_layer].groupby("layer"):
        yield f"last layer ({layer})" if layer == results.n_layers - 1 else f"layer {layer}", group
    for name, group in frame[~by_layer].groupby("place", sort=False):
        tied = name in results.info.tables and results.info.tables[name].tied
        yield f"{name} table" + " (tied)" * tied, group


def _measures_named(runs: Sequence[LabelledResults], name: str) -> Iterator[tuple[str, Results, str]]:
    for label, results in unique_labels(runs):
        for measure, about in results.info.measures.items():
            if about.name == name:
                yield label, results, measure


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:,.0f}" if value == round(value) else f"{value:.3g}"
