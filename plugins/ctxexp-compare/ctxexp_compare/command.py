"""`ctxexp compare RUN ...`: runs, sweeps or models beside each other, layer by layer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ctxexp.errors import DiskError
from ctxexp.files.tables import write_csv
from ctxexp.papers.sweep_tables import SweepTable, markdown
from ctxexp.progress import show
from ctxexp.report.frame import save
from ctxexp_compare import face
from ctxexp_compare.engine import Similarities
from ctxexp_compare.figure import control_said, heat_map, permuted, rows_said, runs_said
from ctxexp_compare.measure import Null, RowChoice


def compare(
    run: str,
    *runs: str,
    options: str = "",
    measures: str = ",".join(face.USUAL),
    sample: int = 2000,
    layers: int | None = None,
    seed: int = 0,
    bootstrap: int = 1000,
    permutations: int = 20,
    null: Null = "words",
    rows: RowChoice = "unit_norm",
    out: Path = Path("compare"),
) -> None:
    """Compare the spaces of runs or models layer by layer, over the very same occurrences, with heat maps.

    run: a run's folder, a sweep's (all of its runs), or a model, quoted with its words: "minilm dtype=bfloat16"
    runs: more of them; one alone is compared with itself, layer by layer
    options: words for every model that is named, such as "dataset=text dataset.path=sentences.txt"
    measures: cka, mutual_knn, neighbourhood_overlap, information_imbalance, shape_distance, linearity, or all;
        with arguments as in "mutual_knn k=30,cka"
    sample: occurrences that are compared, at most
    layers: of each model at most so many, evenly spaced; null: all
    seed: of the sample and of the draws
    bootstrap: replicates behind each interval
    permutations: behind each chance level that has no closed form
    null: chance permutes rows within words (words that occur once are left out) or freely, which finds words alike too
    rows: at norm 1, or as they are, so that a few massive ones (a causal model's first position) decide
    out: the folder for heat maps, numbers and table
    """
    found = face.compare(
        run,
        *runs,
        measures=measures,
        options=options.split(),
        sample=sample,
        layers=layers,
        seed=seed,
        bootstrap=bootstrap,
        permutations=permutations,
        null=null,
        rows=rows,
    )
    for warning in found.warnings:
        show(f"warning: {warning}", sys.stderr)
    show(markdown(table(found)))
    try:
        for path in write(found, out):
            print(path)
    except OSError as error:
        raise DiskError(f"{error} (out=)") from error


def write(found: Similarities, folder: Path) -> list[Path]:
    """Write a heat map a measure and comparison.csv, every number; the paths."""
    paths: list[Path] = []
    for name in found.matrices:
        paths += save(heat_map(found, name), folder, f"compare_{name}")
    write_csv(found.frame, folder / "compare.csv")
    return [*paths, folder / "compare.csv"]


def table(found: Similarities) -> SweepTable:
    """For every two spaces their most alike layers, and both layers 0; or of one space the first and the last layer."""
    labels = list(dict.fromkeys(place.label for place in found.places))
    at = {label: [i for i, place in enumerate(found.places) if place.label == label] for label in labels}
    pairs = [(a, b) for i, a in enumerate(labels) for b in labels[i + 1 :]] or [(labels[0], labels[0])]
    shown = []
    for a, b in pairs:
        for name, matrix in found.matrices.items():
            value, low, high = matrix.adjusted
            rows, columns = (at[a], at[b]) if a != b else (at[a][:1], at[b][-1:])
            part = value[np.ix_(rows, columns)]
            if not np.isfinite(part).any():
                continue
            best = int(np.nanargmax(part))
            cells = [(rows[best // len(columns)], columns[best % len(columns)])]
            inputs = rows[0], columns[0]
            if a != b and inputs not in cells and all(found.places[i].layer == 0 for i in inputs):
                cells.append(inputs)
            for i, j in cells:
                interval = f"{value[i, j]:.3f} [{low[i, j]:.3f}, {high[i, j]:.3f}]"
                raw = [f"{of[i, j]:.3f}" for of in (matrix.value, matrix.chance, matrix.free)]
                shown.append([name, str(found.places[i]), str(found.places[j]), interval, *raw])
    columns_of = ("measure", "A", "B", "adjusted [95%]", "raw", f"chance, {permuted(found.null)}", "chance, freely")
    what = "Most alike layers, and layers 0," if len(labels) > 1 else "First and last layer"
    return SweepTable(f"{what} over {found.text}", found.frame, columns_of, shown, _notes(found))


def _notes(found: Similarities) -> Sequence[str]:
    notes = [f"{name}: {matrix.measure.definition}" for name, matrix in found.matrices.items()]
    notes.append(f"{rows_said(found)}; the interval of the most alike pair of layers doesn't know that it was chosen")
    notes += [told for name in found.matrices if (told := control_said(found, name))]
    notes += [*found.warnings, *([told] if (told := runs_said(found)) else [])]
    if found.same_word is None:
        return notes
    own, chance = found.same_word[:, 0], found.same_word[:, 1]
    told = ", ".join(f"{place} {share:.2f}" for place, share in zip(found.places, own, strict=True))
    return [*notes, f"of 10 nearest neighbours the same word (by chance {chance[0]:.3f}): {told}"]
