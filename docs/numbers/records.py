"""What the minis' card says of their training: tables of the records that lie beside the weights."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]
"""A run.json."""

PREDICTS = {
    "bert": "a masked piece (15% of pieces masked)",
    "gpt2": "the next piece",
    "elmo": "the next and the previous word",
}
NUMERIC = frozenset("-.0123456789")  # what a number begins with
CHECKS = 10  # of a curve that are shown


def losses(records: Mapping[str, Record]) -> list[list[str]]:
    """A row a model: its held-out loss beside that of counts alone, on the same predictions."""
    rows = [
        [
            "model",
            "predicts",
            "loss",
            "unigram",
            "learnt",
            "perplexity",
            "best guess right",
            "on",
            "loss at later positions",
        ]
    ]
    for model, record in records.items():
        found, unit = record["held_out"], record["unit"] + ("s a direction" if model == "elmo" else "s")
        loss, unigram = found["loss"], found["unigram"]
        right = f"{found['right']:.1%}" if "right" in found else "-"
        rows.append([
            f"{model}-mini", PREDICTS[model], f"{loss:.3f}", f"{unigram:.3f}", f"{unigram - loss:.3f}",
            f"{math.exp(loss):.0f}", right, f"{found['predicted']:,.0f} {unit}",
            f"{found['late']:.3f}" if "late" in found else "-",
        ])  # fmt: skip
    return rows


def curves(folders: Mapping[str, Path]) -> list[list[str]]:
    """A row a model: its checks, thinned evenly to about ten and the best."""
    rows = [["model", "step: loss"]]
    for model, folder in folders.items():
        checks: dict[int, float] = {}
        with (folder / "held_out.csv").open(newline="") as file:
            for row in csv.DictReader(file):  # of the last step the check first, then the loss on everything
                checks.setdefault(int(row["step"]), float(row["loss"]))
        every = max(1, round(len(checks) / CHECKS))
        best = json.loads((folder / "run.json").read_text()).get("best_step")
        shown = {*list(checks)[every - 1 :: every], best} & set(checks)
        told = [f"{step:,}: {checks[step]:.2f}" for step in sorted(shown)]
        rows.append([f"{model}-mini", "; ".join(told)])
    return rows


def budget(records: Mapping[str, Record]) -> list[list[str]]:
    """A row a stage of a model's training."""
    rows = [["model", "text", "steps", "units seen", "batch", "objective", "optimiser", "clock minutes"]]
    for model, last in records.items():
        stages = _stages(last)
        for number, one in enumerate(stages, 1):
            recipe = one["recipe"]
            rows.append([
                f"{model}-mini{f', stage {number}' if len(stages) > 1 else ''}", _text(recipe), f"{one['steps']:,}",
                f"{one['units'] / 1e6:.2f} million {one['unit']}s", _batch(one), _objective(recipe["model"]),
                f"{_optimiser(recipe['model'])}; falling over the last {recipe['decay']:.0%} of the steps",
                f"{one['minutes']:.0f}",
            ])  # fmt: skip
    return rows


def _stages(record: Record) -> list[Record]:
    before = record.get("went_on_from")
    return [*(_stages(before) if before else []), record]


def _text(recipe: Mapping[str, Any]) -> str:
    skip = recipe.get("skip", 0)
    words = f"{(recipe['words'] - skip) / 1e6:.1f} million words"
    return f"the next {words}" if skip else f"the first {words}"


def _batch(record: Record) -> str:
    model = record["recipe"]["model"]
    first = f"{model['rows']} windows of {model['window']} {record['unit']}s"
    if "long" not in model:
        return f"{first}, state 0 at each start"
    long = f"{model['rows'] * model['window'] // model['long']} of {model['long']}"
    return f"{first}; the last {model['long_share']:.0%} of the steps {long}"


def _objective(model: Mapping[str, Any]) -> str:
    if "samples" in model:
        return f"next and previous word, {model['samples']:,} noise words"
    return f"{model['mask']:.0%} of pieces masked (80/10/10)" if "mask" in model else "next piece"


def _optimiser(model: Mapping[str, Any]) -> str:
    adamw = f"AdamW {model['adamw_rate']}"
    return f"Muon {model['muon_rate']} for the blocks' matrices, {adamw} for the rest" if model["muon_rate"] else adamw


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table of a head and rows; columns whose first cell begins as a number stand to the right."""
    head, *lines = rows
    ruler = ["---:" if cell[:1] in NUMERIC else "---" for cell in lines[0]]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ruler, *lines))
