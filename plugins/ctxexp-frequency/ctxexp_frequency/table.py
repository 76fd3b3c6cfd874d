"""Tables of a sweep: frequency geometry beside the published figures, and degeneration, of last layers and tables."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ctxexp.report.sweep_tables import Cells, SweepTable
from ctxexp.report.wording import LabelledResults, measure_definition, unique_labels
from ctxexp.results import Results
from ctxexp.results.values import LAYER

if TYPE_CHECKING:
    import pandas as pd

SOURCE = "Li et al. 2020 (BERT-flow), Table 1: word embeddings of BERT; among which words neighbours are is not said"
_FILE = Path(__file__).with_name("published.csv")
_STATISTICS = ("norm", "l2_3nn", "dot_3nn", "cosine_3nn")
_DEGENERATION = (
    "mean_cosine", "effective_rank", "energy_1", "energy_2", "cone_aperture", "cone_narrowest", "negative_direction",
    "margin", "chance", "tested",
)  # fmt: skip


def published_values() -> dict[str, dict[tuple[int, int], float]]:
    """The published figures by statistic (norm, l2_3nn ... dot_7nn) and rank bin (first, last)."""
    values: dict[str, dict[tuple[int, int], float]] = {}
    with _FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            values.setdefault(row["statistic"], {})[int(row["first"]), int(row["last"])] = float(row["value"])
    return values


def table_frequency(runs: Sequence[LabelledResults]) -> SweepTable | None:
    """Norms and neighbours by rank bin, published and of each run's last layer and embedding tables; None without any.

    The CSV has every layer, statistic and bin; as text k=3 and the last layers only.
    """
    import pandas as pd

    paper = published_values()
    blank = dict.fromkeys(("spearman", "spearman_ci_low", "spearman_ci_high"), math.nan)
    rows: list[Cells] = [
        {"source": "published", "model": "BERT", "vectors": "word embeddings", "statistic": statistic, "bins": bins}
        for statistic, bins in paper.items()
    ]
    notes = [f"published: {SOURCE}"]
    for label, results, measure in _measures_named(runs, "frequency_geometry"):
        notes.append(f"{measure}: {measure_definition(measure, results)}")
        for vectors, values in spaces(results, measure):
            for statistic, bins in _bins(values["value"]).items():
                row = {"source": "ours", "model": label, "vectors": vectors, "statistic": statistic, "bins": bins}
                if (spearman := f"spearman_{statistic}") in values.index:
                    row |= dict(zip(blank, values.loc[spearman, ["value", "low", "high"]], strict=True))
                rows.append(row)
    if len(rows) == len(paper):
        return None
    edges = sorted({edge for row in rows for edge in row["bins"]})
    full = [
        {**blank, **{k: v for k, v in row.items() if k != "bins"}}
        | {f"{a}_{b}": row["bins"].get((a, b), math.nan) for a, b in edges}
        for row in rows
    ]
    keys = ["source", "model", "vectors", "statistic", *(f"{a}_{b}" for a, b in edges), *blank]
    lines = [
        [row["source"], row["model"], row["vectors"], row["statistic"].replace("_", " ")]
        + [_cell(row[f"{a}_{b}"]) for a, b in edges]
        + [_interval(row)]
        for row in full
        if row["statistic"] in (*_STATISTICS, "n") and not re.fullmatch(r"layer \d+", row["vectors"])
    ]
    columns = ["source", "model", "vectors", "statistic", *(f"[{a}, {b})" for a, b in edges), "Spearman with rank"]
    notes += ["l2, dot, cosine 3nn: mean over the 3 nearest neighbours; n: words or pieces in the bin"]
    title = "Norms and neighbours by frequency rank (Li et al. 2020, Table 1)"
    return SweepTable(title, pd.DataFrame(full)[keys], columns, lines, list(dict.fromkeys(notes)))


def table_degeneration(runs: Sequence[LabelledResults]) -> SweepTable | None:
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
    return SweepTable("Degeneration of layers and embedding tables", numbers, columns, lines, notes)


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


def _bins(values: pd.Series) -> dict[str, dict[tuple[int, int], float]]:
    """The statistics that have bins: name -> (first, last) -> value."""
    bins: dict[str, dict[tuple[int, int], float]] = {}
    for statistic, value in values.items():
        if match := re.fullmatch(r"(norm|n|(?:l2|dot|cosine)_\d+nn)_(\d+)_(\d+)", statistic):
            bins.setdefault(match[1], {})[int(match[2]), int(match[3])] = value
    return bins


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:,.0f}" if value == round(value) else f"{value:.3g}"


def _interval(row: Mapping[str, float]) -> str:
    if math.isnan(row["spearman"]):
        return ""
    return f"{row['spearman']:+.2f} [{row['spearman_ci_low']:+.2f}, {row['spearman_ci_high']:+.2f}]"
