"""`ctxexp compare RUN ...`: runs, sweeps or models beside each other, layer by layer."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ctxexp.report import Document, Table
from ctxexp_compare import interface
from ctxexp_compare.contract import Null, RowNorm
from ctxexp_compare.figure import ALONE, control_note, heat_map, permutation_scope, row_note, training_run_note
from ctxexp_compare.matrices import Similarities


def compare(
    run: str,
    *runs: str,
    text: str = "",
    options: str = "",
    measures: str = ",".join(interface.DEFAULT_MEASURES),
    sample: int = 2000,
    layers: int | None = None,
    seed: int = 0,
    bootstrap: int = 1000,
    null: Null = "words",
    rows: RowNorm = "unit_norm",
    out: Path = Path("compare"),
) -> Document:
    """Compare the vector spaces of models or runs by layer.

    Over the very same occurrences, with heat maps.

    run: a run's folder, a sweep's (all of its runs), or a model, quoted with its words: "minilm dtype=bfloat16"
    runs: more of them; one alone is compared with itself, layer by layer
    text: for every model given by name: a file, a folder or a data set; empty: the embedded one
    options: words for every model given by name, such as "dtype=bfloat16"
    measures: cka, mutual_knn, neighbourhood_overlap, information_imbalance, shape_distance, linearity, or all;
        with arguments as in "mutual_knn k=30,cka"
    sample: occurrences that are compared, at most
    layers: how many layers of each model are compared at most, evenly spaced (a number, not a list); null: all of them
    seed: of the sample and of the draws
    bootstrap: replicates behind each interval
    null: the null hypothesis of the chance level: words permutes rows within words (words that occur once are left
        out); free permutes all rows, so that equal words alone count as similarity
    rows: their normalization: unit_norm, or as_is, where a few massive rows (a causal model's first position) dominate
    out: the folder for heat maps, numbers and table
    example: ctxexp compare bert gpt2
    """
    comparison = interface.compare(
        run,
        *runs,
        measures=measures,
        text=text or None,
        options=shlex.split(options),
        sample=sample,
        layers=layers,
        seed=seed,
        bootstrap=bootstrap,
        null=null,
        rows=rows,
    )
    return document(comparison)


def document(comparison: Similarities) -> Document:
    """The table, every number, and a heat map for each measure."""
    figures = {f"compare_{name}": heat_map(comparison, name) for name in comparison.matrices}
    return Document(tables={"compare": table(comparison)}, figures=figures)


def table(comparison: Similarities) -> Table:
    """Table of the most alike layers, the same of the words alone where these are compared too, and layer 0 of both,
    for each pair of spaces; of a single space, of its first and last layer. Adjusted values grow with similarity in
    every measure."""
    labels = list(dict.fromkeys(place.label for place in comparison.places))
    at = {label: [i for i, place in enumerate(comparison.places) if place.label == label] for label in labels}
    own = [label for label in labels if ALONE not in label] or labels
    pairs = [(a, b) for i, a in enumerate(own) for b in own[i + 1 :]] or [(own[0], own[0])]
    lines = []
    for a, b in pairs:
        for name, matrix in comparison.matrices.items():
            value, low, high = matrix.adjusted
            rows, columns = (at[a], at[b]) if a != b else (at[a][:1], at[b][-1:])
            part = value[np.ix_(rows, columns)]
            if not np.isfinite(part).any():
                continue
            best = int(np.nanargmax(part))
            cells = [(rows[best // len(columns)], columns[best % len(columns)])]
            alone_a, alone_b = (at.get(f"{label} ({ALONE})") for label in (a, b))
            if alone_a and alone_b:
                cells.append((alone_a[cells[0][0] - at[a][0]], alone_b[cells[0][1] - at[b][0]]))
            inputs = rows[0], columns[0]
            if a != b and inputs not in cells and all(comparison.places[i].layer == 0 for i in inputs):
                cells.append(inputs)
            for i, j in cells:
                interval = f"{value[i, j]:.3f} [{low[i, j]:.3f}, {high[i, j]:.3f}]"
                raw = [f"{of[i, j]:.3f}" for of in (matrix.value, matrix.chance, matrix.free)]
                lines.append([name, str(comparison.places[i]), str(comparison.places[j]), interval, *raw])
    columns_of = (
        "measure",
        "A",
        "B",
        "adjusted [95%]",
        "raw",
        f"chance, {permutation_scope(comparison.null)}",
        "chance, freely",
    )
    what = "Most alike layers, and layers 0," if len(own) > 1 else "First and last layer"
    return Table(f"{what} over {comparison.text}", comparison.frame, columns_of, lines, _notes(comparison))


def _notes(comparison: Similarities) -> Sequence[str]:
    notes = [f"{name}: {matrix.measure.definition}" for name, matrix in comparison.matrices.items()]
    notes.append(
        f"{row_note(comparison)}; the interval of the most alike pair of layers doesn't know that it was chosen"
    )
    notes += [note for name in comparison.matrices if (note := control_note(comparison, name))]
    notes += [*comparison.warnings, *([note] if (note := training_run_note(comparison)) else [])]
    return notes
