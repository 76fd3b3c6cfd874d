"""Table 1 of Ethayarajh 2019, nine benchmarks of static vectors: the published figures with a sweep's beside them."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxexp import Results
from ctxexp.report import LabelledResults, Table, unique_labels
from ctxexp.results import Key

TITLE = "Static vectors from contextual ones (Ethayarajh 2019, Table 1)"
SOURCE = "Ethayarajh 2019, Table 1 (first principal components, STS 2012-2016; its coverage is not published)"
HEADINGS = {
    "simlex999": "SimLex", "men": "MEN", "ws353": "WS353", "rw": "RW", "google": "Google", "msr": "MSR",
    "semeval2012": "SemEval12", "bless": "BLESS", "ap": "AP",
}  # fmt: skip


@dataclass(frozen=True)
class ReleasedVectors:
    """A row of Table 1: first principal components as static vectors, or a file of static vectors (no layer)."""

    model: str
    layer: int | None
    scores: dict[str, float]  # benchmark -> Spearman's rho, accuracy or purity


def published() -> list[ReleasedVectors]:
    """The published rows: GloVe and FastText, then four layers each of ELMo, BERT and GPT-2."""
    lines = Path(__file__).with_suffix(".csv").read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return [
        ReleasedVectors(
            row.pop("model"), int(layer) if (layer := row.pop("layer")) else None, {b: float(row[b]) for b in row}
        )
        for row in rows
    ]


def table_1(runs: Sequence[LabelledResults]) -> Table | None:
    """The paper's table with these runs' rows below; None if none of them measured static vectors.

    Of a run's layers, 1, 2 and the last two, as the paper prints; of a model of one layer that one. Each of our values
    comes with the share of the benchmark's items that the vectors cover.
    """
    import pandas as pd

    entries = [(label, r, m) for label, r in unique_labels(runs) for m in static_measures(r)]
    if not entries:
        return None
    rows: list[dict[str, Any]] = [
        {"source": "published", "model": row.model, "vectors": "", "corpus": "", "layer": row.layer, "n": math.nan}
        | row.scores
        | {f"{name}_covered": math.nan for name in HEADINGS}
        for row in published()
    ]
    for label, results, measure in entries:
        for layer in paper_layers(results.n_layers):
            rows.append(_row(results.info.with_weights(label), results, measure, layer))
    keys = ["source", "model", "vectors", "corpus", "layer", "n"]
    keys += [key for name in HEADINGS for key in (name, f"{name}_covered")]
    numbers = pd.DataFrame({key: ["" if row[key] is None else row[key] for row in rows] for key in keys})
    lines = [
        [row["source"], row["model"], row["vectors"], "" if row["layer"] is None else str(row["layer"])]
        + [cell(row[name], row[f"{name}_covered"]) for name in HEADINGS]
        for row in rows
    ]
    notes = [
        f"published: {SOURCE}",
        "in brackets: the share of pairs, questions or words whose words all have a vector",
    ]
    notes += dict.fromkeys(f"{measure}: {results.info.definition(measure)}" for _, results, measure in entries)
    columns = ["source", "model", "vectors", "layer", *HEADINGS.values()]
    return Table(TITLE, numbers, columns, lines, notes)


def static_measures(results: Results) -> list[str]:
    """The labels under which a run measured static vectors on any benchmark."""
    return [
        measure
        for measure, about in results.info.measures.items()
        if about.name == "static_vectors" and any(Key(measure, b) in results.by_key for b in HEADINGS)
    ]


def paper_layers(n_layers: int) -> list[int]:
    """Layers 1, 2 and the last two; layer 0 where there is no other."""
    return sorted({i for i in (1, 2, n_layers - 2, n_layers - 1) if 0 < i < n_layers}) or [0]


def _row(label: str, results: Results, measure: str, layer: int) -> dict[str, Any]:
    def at(statistic: str) -> float:
        curve = results.by_name.get(f"{measure}/{statistic}")
        return math.nan if curve is None else float(curve[layer])

    row: dict[str, Any] = {
        "source": "measured",
        "model": label,
        "vectors": measure,
        "corpus": " ".join(results.info.corpus.name.split()),
        "layer": layer,
        "n": at("n"),
    }
    for name in HEADINGS:
        row[name], row[f"{name}_covered"] = at(name), at(f"{name}_covered")
    return row


def cell(value: float, covered: float = math.nan) -> str:
    """`.315` as the paper prints it, or `.315 (62%)`; a dash for what is not defined or was not asked."""
    number = "–" if math.isnan(value) else f"{value:.3f}".replace("0.", ".", 1)
    if math.isnan(covered):
        return number
    return f"{number} ({covered:.0%})" if covered >= 0.0995 or not covered else f"{number} ({covered:.1%})"
