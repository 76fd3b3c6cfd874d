"""The showcase: its figure and numbers, and its small table."""

from __future__ import annotations

import pandas as pd
from ctxexp_papers.first_word.effects import AS_TOKENIZED, METRICS
from ctxexp_papers.first_word.table import share
from ctxexp_papers.first_word.words import interval, largest, number

from docs.numbers.part import Part, markdown

DECIMALS = 4
SHOWN = "smollm2"  # whose values stand in the table; of others what moves most


def table(numbers: pd.DataFrame) -> str:
    """A row a condition: the shown model's words in the layer that moves most and the layers near 0, against the
    paper's level and the length-matched one; its sentences, where these were measured; the other models' moves."""
    words, sentences = (numbers[numbers.measure == metric] for metric in METRICS)
    own = words[words.model == SHOWN]
    at = int(largest(own).layer)
    others = [str(model) for model in words.model.unique() if model != SHOWN]
    shown = sentences[sentences.model == SHOWN]
    head = [
        "what stands first",
        f"layer {at}",
        "layers within .05 of 0",
        f"length-matched, layer {at}",
        "within .05 of 0",
    ]
    head += [f"STS-B, layer {int(largest(shown).layer)}"] if len(shown) else []
    head += [f"{model} moves at most by" for model in others]
    rows = []
    for condition, curve in own.groupby("condition", sort=False):
        row = curve[curve.layer == at].iloc[0]
        cells = [str(condition), number(row.value, METRICS[0]), share(curve.value)]
        cells += [number(row.matched, METRICS[0]), share(curve.matched)]
        cells += [_sentences(shown, str(condition))] if len(shown) else []
        rows.append(cells + [_moved(words[words.model == model], str(condition)) for model in others])
    return markdown(head, rows)


def _sentences(shown: pd.DataFrame, condition: str) -> str:
    rows = shown[shown.condition == condition]
    rows = rows[rows.layer == largest(shown).layer]
    return number(rows.iloc[0].value, METRICS[1]) if len(rows) else "as tokenized"


def _moved(rows: pd.DataFrame, condition: str) -> str:
    curve = rows[rows.condition == condition]
    return "" if condition == AS_TOKENIZED or curve.empty else interval(largest(curve))


PART = Part(
    mark="first word",
    page="docs/measures/attention-sink.md",
    numbers="first_word.csv",
    kept=lambda summary: pd.read_csv(summary / "table_first_word.csv").round(DECIMALS),
    table=table,
    figures={"first_word.png": "first_word.png"},
)
