"""`ctxexp card RUN` and `ctxexp diff A B`."""

from __future__ import annotations

import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ctxexp.command.words import model_words
from ctxexp.errors import DiskError, TrackingError
from ctxexp.face import load, measure
from ctxexp.files.paths import user_path
from ctxexp.files.tables import write_csv
from ctxexp.papers.sweep_tables import SweepTable, markdown
from ctxexp.progress import show
from ctxexp.report.side_by_side import number
from ctxexp.results import FILE, Results
from ctxexp_card.card import card as card_of
from ctxexp_card.card import write
from ctxexp_card.gate import MARGIN, Gate
from ctxexp_card.gate import diff as compared

HELD, DRIFT, OPEN = 0, 1, 3  # exit statuses; 2 is the command's own for what can't be done
MOST, FEW = 20, 4  # rows on the terminal: of what moved, or if nothing did


def card(run: str, *, options: str = "", title: str = "", out: Path = Path("card")) -> None:
    """Write a model's geometry card: Markdown for its hub page, JSON, and the curves as SVG.

    run: a run's folder, or a model, quoted with its words: "minilm dataset=text dataset.path=sentences.txt"
    options: more of these words
    title: what the card calls the model; empty: what the run does
    out: the folder for card.md, card.json and card.svg
    """
    made = card_of(_results(run, options), title)
    try:
        for path in write(made, out):
            print(path)
    except OSError as error:
        raise DiskError(f"{error} (out=)") from error
    for line in made.warnings:
        show(f"warning: {line}")


def diff(
    a: str,
    b: str,
    *,
    options: str = "",
    margin: float = MARGIN,
    measures: str = "",
    same_text: bool = True,
    strict: bool = False,
    out: Path | None = None,
) -> int:
    """Say whether a curve of b lies further from a's than the margin, for certain: a gate for CI.

    Intervals are simultaneous over all curves and layers, on the same resamples of one text. The exit status is 0 where
    nothing moved for certain, 1 where something did, 2 where the two can't be compared, and with strict=true 3 where
    something may have (its interval reaches beyond the margin).

    a: a run's folder, or a model, quoted with its words: "minilm", "huggingface model.checkpoint=./new"
    b: likewise: "minilm dtype=bfloat16"
    options: words for both models, such as "dataset=text dataset.path=sentences.txt"
    margin: how far a curve may move, in its own unit (cosines and shares)
    measures: these, by comma; empty: anisotropy and the paper's three, adjusted
    same_text: false: runs over different texts are compared too, as independent ones
    strict: whether what may have moved fails too
    out: a CSV with every value
    """
    chosen = [name.strip() for name in measures.split(",") if name.strip()]
    one, other = _results(a, options), _results(b, options)
    found = compared(one, other, margin=margin, measures=chosen, same_text=same_text)
    if out is not None:
        try:
            write_csv(found.frame, out)
        except OSError as error:
            raise DiskError(f"{error} (out=)") from error
    show(report(found, one, other))
    return DRIFT if found.moved else OPEN if strict and found.open else HELD


def report(found: Gate, a: Results, b: Results) -> str:
    """What moved and what may have, the furthest first, and the verdict."""
    said = [*found.moved, *found.open] or list(found.values)
    most = MOST if found.moved or found.open else FEW
    rows = sorted(said, key=lambda one: (one.verdict != "moved", -abs(np.nan_to_num(one.difference))))[:most]
    shown = [
        [str(one.key), str(one.layer), number(one.a), number(one.b), f"{one.difference:+.4f}",
         f"[{one.low:+.4f}, {one.high:+.4f}]", {"held": "", "open": "may have", "moved": "moved"}[one.verdict]]
        for one in rows
    ]  # fmt: skip
    columns = ["curve", "layer", "a", "b", "b - a", "95%, simultaneous", f"beyond {found.margin:g}"]
    notes = [*found.notes, *([f"without an interval, not judged: {', '.join(found.bare)}"] if found.bare else [])]
    title = f"a: {a.info.title or a.info.model.name}; b: {b.info.title or b.info.model.name}; {a.info.corpus.name}"
    moved, may = len(found.moved), len(found.open)
    n = len(found.values)
    verdict = f"{moved} of {n} values moved by more than {found.margin:g}" if moved else "nothing moved for certain"
    verdict += f"; {may} may have" if may else f"; all {n} are within {found.margin:g}" if not moved else ""
    return f"{markdown(SweepTable(title, found.frame, columns, shown, notes))}\n{verdict}"


def _results(run: str, options: str) -> Results:
    """A run's results from its folder, or a model measured now. Raises ConfigError for what is neither."""
    folder = user_path(run)
    if folder.is_dir() or "/" in run.partition("=")[0]:
        if not (folder / FILE).exists():
            raise TrackingError(f"no {FILE} in {folder}: name a finished run's folder in <tracking.folder>/results")
        return load(folder)
    model, own = model_words(run)
    with TemporaryDirectory() as place:
        return measure(model, options=[*shlex.split(options), *own], folder=place)
