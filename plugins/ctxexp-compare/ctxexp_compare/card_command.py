"""`ctxexp card RUN` and `ctxexp diff A B`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np

from ctxexp import Results, load, measure
from ctxexp.errors import ConfigError, DataError
from ctxexp.report import Document, Table
from ctxexp_compare.floors.command import high_cosines, value_errors
from ctxexp_compare.gate import MARGIN, POWER, Gate
from ctxexp_compare.gate import diff as compare_runs
from ctxexp_compare.interface import run_folders
from ctxexp_compare.light.floor import Floor
from ctxexp_compare.model_card import card as card_of
from ctxexp_compare.model_card import number, write

RESULTS = "results.json"  # of a run
STATUS = {"held": 0, "moved": 1, "open": 3}  # 2 is the command's own for what can't be done
MOST, FEW = 20, 4  # rows on the terminal: of what moved, or if nothing did


def card(
    run: str,
    *,
    text: str = "",
    options: str = "",
    title: str = "",
    layer: Path | None = None,
    floor: Path | None = None,
    out: Path = Path("card"),
) -> Document:
    """Write a model's card: Markdown, JSON, its curves as SVG.

    run: a run's folder, or a model, quoted with its words: "minilm dtype=bfloat16"
    text: of a model: a file, a folder or a data set; empty: the embedded one
    options: more words
    title: what the card calls the model; empty: what the run does
    layer: the folder that `ctxexp layer` wrote of the model: which layer to use
    floor: the file that `ctxexp floor` wrote of the model: which cosine is high
    out: the folder for card.md, card.json and card.svg
    example: ctxexp card bert
    """
    words = {"text": text, "options": options, "title": title}
    command = ["ctxexp", "card", run, *(f"{key}={value}" for key, value in words.items() if value)]
    typed = "" if run_folders(run, RESULTS) else shlex.join(command)
    measured = []
    if layer:
        try:
            measured = [str(json.loads((layer / "layer.json").read_text(encoding="utf-8"))["answer"])]
        except (OSError, ValueError, LookupError, TypeError):
            wanted = f"as ctxexp layer MODEL out={layer} writes it"
            raise DataError(f"layer={layer}: it holds no layer.json, {wanted}") from None
    with value_errors():
        measured += high_cosines(Floor.load(floor)) if floor else []
    model_card = card_of(_results(run, text, options), title, typed, measured)
    return Document([f"warning: {line}" for line in model_card.warnings], files=write(model_card, out))


def diff(
    a: str,
    b: str,
    *,
    text: str = "",
    options: str = "",
    margin: float = MARGIN,
    measures: str = "",
    test: Literal["equivalence", "difference"] = "equivalence",
    same_text: bool = True,
    independent_sentences: bool = False,
    out: Path | None = None,
) -> Document:
    """Say whether all curves of b certainly lie within the margin of a's: a gate for CI.

    Intervals are simultaneous over all curves and layers, on the same resamples of one text. The exit status is 0 where
    all of them lie inside the margin, 1 where one lies outside (moved for certain), 3 where neither is certain, and 2
    where the two can't be compared. The last line says how far a curve would have to move to be found on this text.

    a: a run's folder, or a model, quoted with its words: "minilm", ./new
    b: likewise: "minilm dtype=bfloat16"
    text: for both models: a file, a folder or a data set; empty: the embedded one
    options: words for both models, such as "dataset.documents=blank"
    margin: how far a curve may move, in its own unit (cosines and shares)
    measures: these, by comma; empty: the paper's four
    test: equivalence: only what certainly lies within the margin passes; difference: what may have moved passes too
    same_text: false: runs over different texts are compared too, as independent ones
    independent_sentences: true: takes a text without documents, on your word that its sentences are independent
    out: a .csv with every value
    example: ctxexp diff bert "bert dtype=bfloat16" text=sentences.txt
    """
    names = [name.strip() for name in measures.split(",") if name.strip()]
    one, other = _results(a, text, options), _results(b, text, options)
    gate = compare_runs(
        one,
        other,
        margin=margin,
        measures=names,
        same_text=same_text,
        independent_sentences=independent_sentences,
    )
    passes = gate.verdict == "open" and test == "difference"
    return report(gate, one, other, STATUS["held" if passes else gate.verdict])


def report(gate: Gate, a: Results, b: Results, status: int = 0) -> Document:
    """The values that moved or may have, the furthest first, and the verdict."""
    values = [*gate.outside, *gate.open] or list(gate.values)
    most = MOST if gate.outside or gate.open else FEW
    rows = sorted(values, key=lambda one: (one.verdict != "moved", -abs(np.nan_to_num(one.difference))))[:most]
    cells = [
        [str(one.key), str(one.layer), number(one.a), number(one.b), f"{one.difference:+.4f}",
         f"[{one.low:+.4f}, {one.high:+.4f}]", {"held": "", "open": "may have", "moved": "moved"}[one.verdict]]
        for one in rows
    ]  # fmt: skip
    columns = ["curve", "layer", "a", "b", "b - a", "95%, simultaneous", f"beyond {gate.margin:g}"]
    title = f"a: {a.info.title or a.info.model.name}; b: {b.info.title or b.info.model.name}; {a.info.corpus.name}"
    table = Table(title, gate.frame, columns, cells, list(gate.notes))
    return Document([_verdict(gate), *_smallest(gate)], {"diff": table}, status=status)


def _verdict(gate: Gate) -> str:
    outside, may, n = len(gate.outside), len(gate.open), len(gate.values)
    if gate.verdict == "held":
        return f"held: all {n} are certainly within {gate.margin:g}"
    if gate.verdict == "open":
        return f"open: nothing moved for certain, but {may} of {n} may have moved by more than {gate.margin:g}"
    return f"moved: {outside} of {n} values, by more than {gate.margin:g}" + (f"; {may} more may have" if may else "")


def _smallest(gate: Gate) -> list[str]:
    """The smallest change that this text can find, and the smallest margin at which it can pass."""
    top = gate.smallest
    if top is None:
        return []
    where = f"{top.key}, layer {top.layer}"
    if not gate.widest:
        return ["both are equal in every resample: this says nothing of what the text would find between other models"]
    return [
        f"smallest move that this text would find in any value, in {POWER:.0%} of texts like it: {top.smallest:.2g} "
        f"({where}); intervals are up to ±{gate.widest:.2g}, and no smaller margin can pass"
    ]


def _results(run: str, text: str, options: str) -> Results:
    """A run's results from its folder, or a model measured now."""
    if folders := run_folders(run, RESULTS):
        if text or options:
            raise ConfigError(f"{run} is a run, with its own text: leave text= and options= out, or name a model")
        if len(folders) > 1:
            raise ConfigError(f"{run} holds {len(folders)} runs; name one: {', '.join(map(str, folders[:3]))}")
        return load(folders[0])
    with TemporaryDirectory() as place:
        return measure(run, text or None, options=options, folder=place)
