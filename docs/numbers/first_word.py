"""The showcase: its figure and numbers, and their words in the README."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import pandas as pd
from ctxexp_first_word.words import interval, largest, moves, number, of

from docs.numbers.part import Part

DECIMALS = 4


def paragraph(numbers: pd.DataFrame) -> str:
    """The finding as Markdown: by measure each model's layers that move, how far, and the largest with its interval."""
    sentences = []
    for _, by_measure in numbers.groupby("measure", sort=False):
        for model, rows in by_measure.groupby("model", sort=False):
            sentences.append(_sentence(str(model), rows))
    return " ".join(sentences)


def _sentence(model: str, rows: pd.DataFrame) -> str:
    top = largest(rows)
    metric = str(top.measure)
    moving = rows[rows.apply(moves, axis=1)]
    what = f"{of(top)[0].upper()}{of(top)[1:]} of `{model}`"
    if moving.empty:
        return f"{what} moves by no more than {interval(top)} (layer {top.layer})."
    ends = [_range(moving[column], metric) for column in ("with_first", "without_first")]
    said = f"{what} is {ends[0]} with first words and {ends[1]} without in {_layers(moving.layer.tolist())}"
    largest_in = f"; the difference is largest in layer {top.layer}" * (len(moving) > 1)
    return f"{said}{largest_in}: {interval(top)}.{_matched(moving, metric)}"


def _matched(rows: pd.DataFrame, metric: str) -> str:
    """What is left of it against random sentences of the same lengths; nothing where that wasn't measured."""
    columns = ["with_first_matched", "without_first_matched"]
    if not set(columns) <= set(rows.columns) or rows[columns].isna().any(axis=None):
        return ""
    ends = [_range(rows[column], metric) for column in columns]
    return f" Against random sentences of each sentence's own length it is {ends[0]} and {ends[1]} there."


def _range(values: pd.Series, metric: str) -> str:
    low, high = number(values.min(), metric), number(values.max(), metric)
    return low if low == high else f"{low} to {high}"


def _layers(layers: Sequence[int]) -> str:
    """`layers 3, 12–29`: neighbours as a range."""
    runs = [[at for _, at in some] for _, some in groupby(enumerate(layers), lambda pair: pair[1] - pair[0])]
    said = [str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs]
    return f"layer{'s' * (len(layers) > 1)} {', '.join(said)}"


PART = Part(
    mark="first word",
    page="README.md",
    numbers="first_word.csv",
    kept=lambda summary: pd.read_csv(summary / "table_first_word.csv").round(DECIMALS),
    paragraph=paragraph,
    figures={"first_word.png": "first_word.png"},
)
