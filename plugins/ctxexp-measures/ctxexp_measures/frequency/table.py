"""Tables of a sweep: frequency geometry beside the published figures, and degeneration, of last layers and tables."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxexp import Results
from ctxexp.report import LabelledResults, Table, unique_labels
from ctxexp.results import LAYER

if TYPE_CHECKING:
    import pandas as pd

SOURCE = "Li et al. 2020 (BERT-flow), Table 1: word embeddings of BERT; among which words neighbours are is not said"
_FILE = Path(__file__).with_name("published.csv")
_STATISTICS = ("norm", "l2_3nn", "dot_3nn", "cosine_3nn")
_DEGENERATION = (
    "mean_cosine", "effective_rank", "energy_1", "energy_2", "cone_aperture", "cone_narrowest", "negative_direction",
    "margin", "chance", "tested",
)  # fmt: skip


def published_values() -> dict[str, dict[str, float]]:
    """The published figures by statistic (norm, l2_3nn ... dot_7nn) and rank bin (`0_100` ...)."""
    values: dict[str, dict[str, float]] = {}
    with _FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            values.setdefault(row["statistic"], {})[f"{row['first']}_{row['last']}"] = float(row["value"])
    return values


def table_frequency(runs: Sequence[LabelledResults]) -> Table | None:
    """Norms and neighbours by rank bin, published and of each run's last layer and embedding tables; None without any.

    The CSV has every layer, statistic and bin; as text k=3 and the last layers only.
    """
    import pandas as pd

    paper = published_values()
    blank = dict.fromkeys(("spearman", "spearman_ci_low", "spearman_ci_high"), math.nan)
    rows: list[dict[str, Any]] = [
        {"source": "published", "model": "BERT", "vectors": "word embeddings", "statistic": statistic, "bins": bins}
        for statistic, bins in paper.items()
    ]
    notes = [f"published: {SOURCE}"]
    for label, results, measure in _measures_named(runs, "frequency_geometry"):
        notes.append(f"{measure}: {results.info.definition(measure)}")
        for vectors, values in spaces(results, measure):
            for statistic, bins in _bins(values["value"]).items():
                row = {"source": "ours", "model": label, "vectors": vectors, "statistic": statistic, "bins": bins}
                if (spearman := f"spearman_{statistic}") in values.index:
                    row |= dict(zip(blank, values.loc[spearman, ["value", "low", "high"]], strict=True))
                rows.append(row)
    if len(rows) == len(paper):
        return None
    names = sorted({name for row in rows for name in row["bins"]}, key=_edges)
    full = [
        {**blank, **{k: v for k, v in row.items() if k != "bins"}}
        | {name: row["bins"].get(name, math.nan) for name in names}
        for row in rows
    ]
    keys = ["source", "model", "vectors", "statistic", *names, *blank]
    columns, lines = _shown(rows)
    notes += ["l2, dot, cosine 3nn: mean over the 3 nearest neighbours; n: words or pieces in the bin"]
    notes += ["ranks: of the bin, lowest and highest or [first, past the last), most frequent first"]
    title = "Norms and neighbours by frequency rank (Li et al. 2020, Table 1)"
    return Table(title, pd.DataFrame(full)[keys], columns, lines, list(dict.fromkeys(notes)))


def _shown(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Columns and lines of the table as text: a column a bin, with its ranks as the first line of each space."""
    width = max(len(row["bins"]) for row in rows)
    by_space: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    for row in rows:
        by_space.setdefault((row["source"], row["model"], row["vectors"]), {})[row["statistic"]] = row
    lines = []
    for space, of in by_space.items():
        if re.fullmatch(r"layer \d+", space[2]):
            continue
        names = sorted(of["norm"]["bins"], key=_edges)
        ranks = [
            "[{}, {})".format(*name.split("_")) if "_" in name
            else "-".join(_cell(of[end]["bins"][name]) for end in ("first", "last"))
            for name in names
        ]  # fmt: skip
        lines.append([*space, "ranks", *ranks, *[""] * (width - len(names) + 1)])
        for row in (of[statistic] for statistic in (*_STATISTICS, "n") if statistic in of):
            cells = [_cell(row["bins"].get(name, math.nan)) for name in names] + [""] * (width - len(names))
            lines.append([*space, row["statistic"].replace("_", " "), *cells, _interval(row)])
    heads = [f"bin {i + 1}" for i in range(width)]
    return ["source", "model", "vectors", "statistic", *heads, "Spearman with rank"], lines


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


def _bins(values: pd.Series) -> dict[str, dict[str, float]]:
    """The statistics that have bins: name -> bin (`0_100` or `q1`) -> value."""
    bins: dict[str, dict[str, float]] = {}
    for statistic, value in values.items():
        if match := re.fullmatch(r"(norm|n|first|last|(?:l2|dot|cosine)_\d+nn)_(\d+_\d+|q\d+)", statistic):
            bins.setdefault(match[1], {})[match[2]] = value
    return bins


def _edges(name: str) -> tuple[int, ...]:
    """The order of bins: those with edges by these, then those of equal size."""
    return (0, *map(int, name.split("_"))) if "_" in name else (1, int(name[1:]))


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:,.0f}" if value == round(value) else f"{value:.3g}"


def _interval(row: dict[str, Any]) -> str:
    if math.isnan(row.get("spearman", math.nan)):
        return ""
    return f"{row['spearman']:+.2f} [{row['spearman_ci_low']:+.2f}, {row['spearman_ci_high']:+.2f}]"
